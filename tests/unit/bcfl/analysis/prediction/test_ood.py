from dataclasses import replace

import numpy as np
import pytest
import torch
from scipy.special import logsumexp
from scipy.stats import multivariate_normal

from bcfl import Federation, Objective
from bcfl.data.clients import ClientData
from bcfl.data.view import View
from bcfl.methods import build
from bcfl.protocol.statistics.features import MAX_FEATURES
from experiments import models

GROUPS = {"a": 4.0, "b": 4.0, "c": -4.0, "d": -4.0}


@pytest.fixture(scope="module")
def clients():
    """Two groups with opposite inputs and rules."""
    random, found = np.random.default_rng(0), []
    for name, shift in GROUPS.items():
        x = random.normal(shift, 1, size=(50, 3)).astype(np.float32)
        y = (x[:, 0] > shift).astype(np.int64)
        found.append(ClientData.from_arrays(name, (x, y if shift > 0 else 1 - y), group=shift > 0))
    return found


@pytest.fixture(scope="module")
def run(clients):
    method = build(
        "bcfl-mh-2",
        num_clusters=2,
        objective=Objective(local_steps=5, batch_size=16),
        temperature=20.0,
    )
    return Federation(clients, models.linear(3, 2), method, evaluate=False).run(3)


def test_ood_scores_are_those_of_scipy(run, clients):
    """Features of a linear network are its inputs; clusters count clients by probability."""
    rows = run.association_probabilities()
    inputs = [data.views["train"].inputs.numpy().astype(np.float64) for data in clients]
    every = np.concatenate(inputs)
    spread = np.cov(every.T, bias=True)
    spread = spread + 1e-3 * spread.diagonal().mean() * np.eye(3)
    parts = []
    for share in rows.T:
        weights = np.repeat(share, 50)
        mean = np.average(every, axis=0, weights=weights)
        parts.append((weights.sum(), mean, (every - mean).T @ ((every - mean) * weights[:, None])))
    within = sum(scatter for _, _, scatter in parts) / len(every)
    within = within + 1e-3 * within.diagonal().mean() * np.eye(3)
    x = np.random.default_rng(1).normal(0, 4, size=(9, 3)).astype(np.float32)
    logs = [
        multivariate_normal(mean, (scatter + 3 * within) / (count + 3)).logpdf(x)
        for count, mean, scatter in parts
    ]
    broad = multivariate_normal(every.mean(0), 4 * spread).logpdf(x)
    own = logsumexp(logs, axis=0, b=rows[:1].T)
    other = np.logaddexp(logsumexp(logs, axis=0) - np.log(2), broad)
    found = run.predict("a", x).ood_score
    np.testing.assert_allclose(found, other - own, rtol=1e-5)


def test_own_samples_score_lower_than_other_groups_and_noise(run):
    random = np.random.default_rng(2)
    own, other = (random.normal(m, 1, size=(40, 3)).astype(np.float32) for m in (4, -4))
    noise = random.uniform(-40, 40, size=(40, 3)).astype(np.float32)
    found = [np.median(run.predict("a", x).ood_score) for x in (own, other, noise)]
    assert found[0] < found[1]
    assert found[0] < 1 < found[2]


def test_a_newcomer_scores_as_the_clusters_it_joins(run, clients):
    view = clients[0].views["train"]
    x = view.inputs[:5]
    known = run.predict("a", x).ood_score
    new = run.predict_new(x, (view.inputs.numpy(), view.targets.numpy())).ood_score
    np.testing.assert_allclose(new, known, atol=0.5)


def test_without_clients_there_is_no_ood_score(run):
    assert replace(run, executor=None).predict("a", torch.zeros(1, 3)).ood_score is None


def test_many_features_are_projected_always_in_the_same_way(clients):
    model = models.mlp(3, 100, 2)
    run = Federation(clients, model, build("wecfl", num_clusters=2), evaluate=False).run(1)
    first, again = (replace(run).feature_density for _ in range(2))
    assert first is not again
    assert first.background.mean.shape == (MAX_FEATURES,)
    x = clients[0].views["train"].inputs
    rows = run.association_probabilities()
    np.testing.assert_array_equal(first.ood_score(rows[0], x), again.ood_score(rows[0], x))


def test_the_samples_of_the_last_time_step_count(run, clients):
    moved = [
        ClientData(d.client, {**d.views, "train:1": View(v.inputs + 50, v.targets)}, d.group)
        for d in clients
        for v in [d.views["train"]]
    ]
    federation = Federation(moved, run.model, build("wecfl", num_clusters=2), evaluate=False)
    later = replace(run, executor=federation.executor_of(3)).feature_density
    density = run.feature_density
    np.testing.assert_allclose(later.background.mean, density.background.mean + 50, rtol=1e-4)


@pytest.mark.parametrize("seed", range(6))
def test_clients_of_one_sample_leave_proper_densities(seed):
    """Each cluster then holds shares of one sample, whose scatter is zero up to rounding."""
    random = np.random.default_rng(seed)
    one = [ClientData.from_arrays(n, (random.normal(size=(1, 3)), [0])) for n in "abcd"]
    method = build(
        "bcfl-mh-2",
        num_clusters=4,
        objective=Objective(local_steps=1, batch_size=1),
        temperature=20.0,
    )
    run = Federation(one, models.linear(3, 2), method, seed=seed, evaluate=False).run(1)
    assert np.isfinite(run.predict("a", np.zeros((2, 3), np.float32)).ood_score).all()


@pytest.mark.filterwarnings("ignore::bcfl.rounds.UntrainedWarning")
def test_scores_are_zero_where_no_cluster_has_clients(clients):
    run = Federation(
        clients, models.linear(3, 2), build("wecfl", num_clusters=2), drop_out=1.0, evaluate=False
    ).run(1)
    x = torch.zeros(2, 3)
    np.testing.assert_array_equal(run.predict("a", x).ood_score, [0.0, 0.0])
