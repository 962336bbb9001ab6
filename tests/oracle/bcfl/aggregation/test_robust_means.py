"""Median and trimmed mean against numpy and scipy, and a hostile client in a federation."""

from dataclasses import dataclass, replace

import numpy as np
import pytest
import torch
from scipy.stats import trim_mean
from torch import nn

from bcfl import ClientData, Federation, Model, Objective, methods
from bcfl.aggregation.robust import Median, TrimmedMean
from bcfl.protocol.requests import Train

OPTIONS = {
    "median": ({}, lambda values: np.median(values, axis=0)),
    "trimmed-mean": ({"trimmed_share": 0.2}, lambda values: trim_mean(values, 0.2)),
}


@pytest.fixture
def random():
    return np.random.default_rng(4)


@pytest.mark.parametrize("count", [1, 2, 3, 4, 7, 10])
def test_equal_weights_give_the_median_of_numpy(count, random):
    values = random.normal(size=(count, 20))
    found = Median().of(torch.tensor(values), torch.full((count,), 0.1))
    np.testing.assert_allclose(found, np.median(values, axis=0), rtol=1e-12)


@pytest.mark.parametrize(("count", "share"), [(5, 0.2), (10, 0.1), (10, 0.4), (8, 0.25), (20, 0.3)])
def test_equal_weights_give_the_trimmed_mean_of_scipy(count, share, random):
    values = random.normal(size=(count, 20))
    found = TrimmedMean(share).of(torch.tensor(values), torch.full((count,), 0.1))
    np.testing.assert_allclose(found, trim_mean(values, share), rtol=1e-12)


def test_a_whole_weight_counts_as_so_many_values(random):
    values, weights = random.normal(size=(6, 20)), np.array([1, 4, 2, 5, 3, 1])
    found = Median().of(torch.tensor(values), torch.tensor(weights))
    np.testing.assert_allclose(found, np.median(values.repeat(weights, axis=0), axis=0))


def trimmed_by_hand(values, weights, share):
    order = np.argsort(values)
    low, high, cut = list(order), list(order), share * weights.sum() - 1e-9
    while sum(weights[i] for i in order if i not in low) < cut:
        low.pop(0)
    while sum(weights[i] for i in order if i not in high) < cut:
        high.pop()
    kept = sorted(set(low) & set(high))
    if not kept:
        return None
    return np.average(values[kept], weights=weights[kept])


@pytest.mark.parametrize("share", [0.05, 0.2, 0.34, 0.49])
def test_whole_clients_are_trimmed_until_the_share_is_gone(share, random):
    values, weights = random.normal(size=(7, 30)), random.uniform(0.1, 2, 7)
    inputs = torch.tensor(values), torch.tensor(weights)
    found, median = TrimmedMean(share).of(*inputs), Median().of(*inputs)
    for column in range(values.shape[1]):
        expected = trimmed_by_hand(values[:, column], weights, share)
        other = float(median[column])
        assert float(found[column]) == pytest.approx(other if expected is None else expected)


@pytest.mark.parametrize("rule", [Median(), TrimmedMean(0.2)])
@pytest.mark.parametrize("lie", [1e15, -1e15])
def test_one_of_three_cannot_leave_the_range_of_the_others(rule, lie, random):
    honest = torch.tensor(random.normal(size=(2, 50)))
    found = rule.of(torch.cat([honest, torch.full((1, 50), lie)]), torch.ones(3))
    assert (found >= honest.min(dim=0).values).all()
    assert (found <= honest.max(dim=0).values).all()


@dataclass(frozen=True)
class Recording:
    """Keeps the answers to trainings, with one client's replaced."""

    executor: object
    trained: dict
    lie: float | None = None

    def answer(self, requests, models, round):
        outcomes = self.executor.answer(requests, models, round)
        for request in requests:
            if isinstance(request, Train):
                answer = outcomes[request]
                if self.lie is not None and request.client == "c0":
                    count = 2**40
                    outcomes[request] = replace(
                        answer, mean=torch.full_like(answer.mean, self.lie), num_samples=count
                    )
                self.trained[request.client] = outcomes[request]
        return outcomes


@pytest.fixture
def federation(random):
    def of(name, **options):
        clients = [
            ClientData.from_arrays(
                f"c{index}",
                (
                    random.normal(size=(4 + 3 * index, 3)).astype(np.float32),
                    random.integers(0, 2, 4 + 3 * index),
                ),
                None,
            )
            for index in range(5)
        ]
        model = Model(
            name="normalised",
            build=lambda: nn.Sequential(nn.Linear(3, 4), nn.BatchNorm1d(4), nn.Linear(4, 2)),
            input_shape=(3,),
            num_outputs=2,
        )
        training = Objective(local_steps=3, batch_size=4)
        return Federation(clients, model, methods.build(name, objective=training, **options))

    return of


def ran(setup, rounds=1, lie=None):
    trained = {}
    run = setup.run(rounds, executor=Recording(setup.engine, trained, lie))
    return run, trained


@pytest.mark.parametrize("rule", OPTIONS)
def test_clusters_are_the_robust_means_of_their_clients(rule, federation):
    options, expected = OPTIONS[rule]
    setup = federation(f"fedavg-{rule}", **options)
    run, trained = ran(setup)
    (cluster,) = run.hypotheses.best.clusters
    means = np.stack([answer.mean.numpy() for answer in trained.values()])
    buffers = np.stack([answer.buffers.numpy() for answer in trained.values()])
    np.testing.assert_allclose(cluster.mean(run.model), expected(means), rtol=1e-5, atol=1e-6)
    np.testing.assert_allclose(cluster.buffers(run.model), expected(buffers), rtol=1e-5, atol=1e-6)


@pytest.mark.parametrize("rule", OPTIONS)
def test_weighted_by_samples_a_client_with_most_of_them_is_the_median(rule, federation):
    run, trained = ran(federation(f"fedavg-{rule}", robust_weighting="samples"), lie=3.0)
    torch.testing.assert_close(run.hypotheses.best.clusters[0].mean(run.model), trained["c0"].mean)


@pytest.mark.parametrize("rule", OPTIONS)
def test_a_hostile_client_is_outvoted_whatever_it_says_of_its_samples(rule, federation):
    (robust, _), (plain, _) = (
        ran(federation(f"fedavg-{rule}"), 3, 1e9),
        ran(federation("fedavg"), 3, 1e9),
    )
    assert robust.hypotheses.best.clusters[0].mean(robust.model).abs().max() < 10
    assert plain.hypotheses.best.clusters[0].mean(plain.model).abs().max() > 1e8


@pytest.mark.parametrize("rule", OPTIONS)
def test_a_cavity_is_the_robust_mean_of_the_other_clients(rule, federation):
    options, expected = OPTIONS[rule]
    run, trained = ran(federation(f"ifca-{rule}", num_clusters=1, scored_by="cavity", **options))
    cavities = run.hypotheses.best.cavities
    assert len(cavities) == 5
    for (client, _), cavity in cavities.items():
        others = [answer.mean.numpy() for name, answer in trained.items() if name != client]
        values = np.sort(np.stack(others), axis=0)
        wanted = expected(values) if rule == "median" else values[1:-1].mean(axis=0)
        np.testing.assert_allclose(cavity.mean(run.model), wanted, rtol=1e-5, atol=1e-6)


@pytest.mark.parametrize(
    ("name", "options", "text"),
    [
        ("bcfl-g-median", {}, "curvature must be 'samples' or 'uniform', got 'ggn'"),
        ("ewc-median", {}, None),
        ("fedweit-trimmed-mean", {}, "needs all parameters of each client"),
        ("bcfl-g-median", {"curvature": "samples", "fusion": "exact"}, "got 'exact'"),
        ("ifca-trimmed-mean", {"trimmed_share": 0.5}, r"must lie in \(0, 0.5\)"),
        ("bcfl-g-trimmed-mean", {"curvature": "samples"}, None),
    ],
)
def test_what_cannot_be_combined_says_so(name, options, text):
    if text is None:
        methods.build(name, **options)
    else:
        with pytest.raises(ValueError, match=text):
            methods.build(name, **options)
