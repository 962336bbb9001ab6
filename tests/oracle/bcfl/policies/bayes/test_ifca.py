"""IFCA, BCFL-G with flat posteriors, and a plain numpy statement of IFCA are one algorithm.

What the equality with BCFL-G needs: curvature `samples`, prior_weight 0, `precision_weighted`
fusion, one hypothesis, and free cluster sizes (so that each client decides alone and dividing its
row of losses by any temperature, or by its own number of samples, moves no minimum).
"""

from dataclasses import replace

import numpy as np
import pytest
import torch

import bcfl
from bcfl import methods
from bcfl.executors import LoopExecutor
from bcfl.executors.batches import training_batches
from bcfl.hypotheses.posterior import from_initial
from bcfl.policies import LikelihoodAssociation
from bcfl.protocol.objective import Objective
from bcfl.protocol.requests import Score, Train
from bcfl.trackers import Greedy
from experiments.models import linear

ROUNDS = 6
SIZES = (20, 33, 12, 41, 20, 27, 9)
OBJECTIVE = Objective(local_steps=4, batch_size=10, learning_rate=0.2, momentum=0.0)


def ifca_round(softmax, models, served, data, batches):
    """A plain statement of IFCA (Ghosh et al. 2020, algorithm 1); `served` is updated in place."""
    updates = [[] for _ in models]
    for client, (inputs, labels) in data.items():
        losses = [softmax.mean_loss(weights, inputs, labels) for weights in models]
        served[client] = int(np.argmin(losses))
        weights = softmax.trained(models[served[client]], data[client], batches[client], 0.2)
        updates[served[client]].append((len(labels), weights))
    return [
        sum(n * w for n, w in update) / sum(n for n, _ in update) if update else old
        for update, old in zip(updates, models, strict=True)
    ]


def federation(clients, method, **options):
    options = {"seed": 5, "device": "cpu", "dtype": torch.float64, **options}
    return bcfl.Federation(clients, linear(4, 3), method, **options)


def ifca(num_clusters, objective=OBJECTIVE):
    return methods.build("ifca", num_clusters=num_clusters, objective=objective)


@pytest.mark.parametrize("num_clusters", [2, 3, 5])
@pytest.mark.parametrize("client_fraction", [1.0, 0.6])
def test_ifca_against_numpy(turned_clients, states_of, softmax, num_clusters, client_fraction):
    clients = turned_clients(SIZES)
    one = federation(clients, ifca(num_clusters), client_fraction=client_fraction)
    start = one.initial_state().hypotheses.best.clusters
    models = [softmax.weights(c.mean(one.model), 3) for c in start]
    data, empty = softmax.arrays(clients), 0
    served = dict.fromkeys(data, -1)
    for round, (state, record) in enumerate(states_of(one, ROUNDS)):
        here = {client: data[client] for client in record.participants}
        batches = {
            client: training_batches(len(y), 10, 4, 5, round, client).numpy()
            for client, (_, y) in here.items()
        }
        models = ifca_round(softmax, models, served, here, batches)
        best = state.hypotheses.best
        assert {c: best.association.label(c) for c in served} == served
        for ours, theirs in zip(best.clusters, models, strict=True):
            np.testing.assert_allclose(
                softmax.weights(ours.mean(one.model), 3), theirs, rtol=0, atol=1e-11
            )
        empty += num_clusters - len({served[client] for client in here})
    if num_clusters == 5:
        assert empty > 0


@pytest.mark.parametrize("memory", ["replace", "forget", "accumulate"])
@pytest.mark.parametrize("temperature", ["mean", 1.0, 10.0])
def test_ifca_is_greedy_with_flat_posteriors(turned_clients, states_of, temperature, memory):
    """The models have the same bits; keys and precisions may differ with the memory."""
    clients = turned_clients(SIZES)
    policy = LikelihoodAssociation(
        num_clusters=3, objective=replace(OBJECTIVE, curvature="samples"), temperature=temperature
    )
    flat = bcfl.Method(
        policy=policy,
        tracker=Greedy(),
        aggregation=bcfl.Aggregation(fusion="precision_weighted", memory=memory),
    )
    for options in ({}, {"client_fraction": 0.6, "drop_out": 0.3}):
        pairs = zip(
            states_of(federation(clients, ifca(3), **options), ROUNDS),
            states_of(federation(clients, flat, **options), ROUNDS),
            strict=True,
        )
        for (state, _), (twin, _) in pairs:
            one, other = state.hypotheses.best, twin.hypotheses.best
            np.testing.assert_array_equal(one.association.labels, other.association.labels)
            for ours, theirs in zip(one.clusters, other.clusters, strict=True):
                assert torch.equal(ours.mean(linear(4, 3)), theirs.mean(linear(4, 3)))


def test_the_recipe_of_bcfl_g_made_flat_is_ifca(turned_clients, states_of, assert_same_bits):
    """With the recipes' own defaults even keys and precisions agree."""
    clients = turned_clients(SIZES)
    settings = dict(num_clusters=3, objective=OBJECTIVE, curvature="samples")
    named = methods.build("bcfl-g", **settings)
    pairs = zip(
        states_of(federation(clients, ifca(3)), ROUNDS),
        states_of(federation(clients, named), ROUNDS),
        strict=True,
    )
    for (state, _), (twin, _) in pairs:
        assert_same_bits(state.hypotheses, twin.hypotheses)


@pytest.mark.parametrize(
    "change", [{"curvature": "ggn"}, {"prior_weight": 1.0}], ids=["curvature", "prior term"]
)
def test_informative_posteriors_give_other_models(turned_clients, change):
    """Informative posteriors or a prior term give other models."""
    clients = turned_clients(SIZES)
    settings = dict(num_clusters=3, objective=replace(OBJECTIVE, **change), curvature="samples")
    settings = {**settings, "curvature": change.get("curvature", "samples")}
    plain = federation(clients, ifca(3)).run(2).hypotheses.best
    other = federation(clients, methods.build("bcfl-g", **settings)).run(2).hypotheses.best
    assert any(
        not torch.equal(a.mean(linear(4, 3)), b.mean(linear(4, 3)))
        for a, b in zip(plain.clusters, other.clusters, strict=True)
    )


def test_ties_go_to_the_first_cluster(turned_clients, states_of):
    """Equal models tie exactly; all clients then join cluster 0 and the others keep theirs."""
    clients = turned_clients(SIZES)
    method = replace(ifca(3), common_start=True)
    one = federation(clients, method)
    (state, _), *_ = states_of(one, 1)
    assert set(state.hypotheses.best.association.labels) == {0}
    start = one.initial_state().hypotheses.best.clusters[0]
    assert [c.key == start.key for c in state.hypotheses.best.clusters] == [False, True, True]


# Values worked out by hand (and in numpy) for two inputs, two classes and no offset.

INPUTS = np.array([[1.0, 0], [0, 1], [1, 1], [-1, 0.5]])
LABELS = np.array([0, 1, 0, 1])
FIRST = np.array([[1.0, -1], [-1, 1]])
CANDIDATES = {"first": FIRST, "half turned": -FIRST / 2, "zero": FIRST * 0}


def scored_by_hand(labels):
    model = linear(2, 2, bias=False)
    posteriors = {
        name: from_initial(model, name, torch.from_numpy(w.ravel()), torch.empty(0), 1.0)
        for name, w in CANDIDATES.items()
    }
    by_key = {p.key: p for p in posteriors.values()}
    client = bcfl.ClientData.from_arrays("c", (INPUTS, labels))
    executor = LoopExecutor.on([client], model, 0, torch.device("cpu"), torch.float64)
    return posteriors, by_key, executor


@pytest.mark.parametrize(
    ("labels", "expected"),
    [(LABELS, (0.248898, 1.255271, 0.693147)), (1 - LABELS, (1.998898, 0.380271, 0.693147))],
)
def test_losses_by_hand(labels, expected):
    posteriors, by_key, executor = scored_by_hand(labels)
    score = Score(client="c", models=tuple(by_key))
    sums = executor.answer([score], by_key, 0)[score]
    means = [sums[p.key].total / sums[p.key].num_samples for p in posteriors.values()]
    np.testing.assert_allclose(means, expected, atol=5e-7)


def test_gradient_step_by_hand():
    posteriors, by_key, executor = scored_by_hand(LABELS)
    step = Objective(local_steps=1, batch_size=4, learning_rate=0.1, momentum=0.0)
    train = Train("c", posteriors["first"].key, step)
    reply = executor.answer([train], by_key, 0)[train]
    expected = [[1.016666, -0.991073], [-1.016666, 0.991073]]
    np.testing.assert_allclose(reply.mean.reshape(2, 2), expected, atol=5e-7)
    slope = (FIRST - reply.mean.reshape(2, 2).numpy()) / 0.1
    np.testing.assert_allclose(slope[0], [-0.166657, -0.089271], atol=5e-6)
