"""Filtering and smoothing of associations, against hidden Markov models written on their own."""

import itertools
from dataclasses import replace

import numpy as np
import pytest

from bcfl.analysis.run import Run
from bcfl.hypotheses.history import ancestor_shares, smoothed_associations
from bcfl.policies.bayes.association_prior import AssociationPrior
from bcfl.trackers import Exact, MultiHypothesis

ROUNDS = 3


def log_density(design, values, mean):
    residual = values - design @ mean
    return -0.5 * float(residual @ residual) - 0.5 * len(values) * np.log(2 * np.pi)


def log_transition(before, now, num_clusters, staying):
    """Uniform in the first round; then staying, or leaving for any of the others alike."""
    if staying is None or before is None:
        return -np.log(num_clusters)
    return np.log(staying if now == before else (1 - staying) / (num_clusters - 1))


def label_histories(world, rounds, staying):
    """Log weight of every history of all clients' labels.

    Clusters are linear-Gaussian and learn from the clients that the history puts there; a round's
    samples are weighed at the means of before the round (one sample point).
    """
    clients, k = world.clients, world.num_clusters
    each_round = list(itertools.product(range(k), repeat=len(clients)))
    weights = {}
    for history in itertools.product(each_round, repeat=rounds):
        precision = np.repeat(world.prior_precisions[:, None], world.prior_means.shape[1], axis=1)
        shift = precision * world.prior_means
        total, before = 0.0, [None] * len(clients)
        for round, labels in enumerate(history):
            means = shift / precision
            for client, label, old in zip(clients, labels, before, strict=True):
                design, values = world.of(client, round)
                total += log_transition(old, label, k, staying)
                total += log_density(design, values, means[label])
            for client, label in zip(clients, labels, strict=True):
                design, values = world.of(client, round)
                precision[label] += (design**2).sum(axis=0)
                shift[label] += design.T @ values
            before = list(labels)
        weights[history] = total
    return weights


def probabilities(weights):
    peak = max(weights.values())
    total = sum(np.exp(w - peak) for w in weights.values())
    return {history: np.exp(w - peak) / total for history, w in weights.items()}


def paths_of(history, round):
    """Labels of all rounds that led to each hypothesis of a round."""
    paths = []
    for index in range(len(history[round - 1].associations)):
        path = []
        for snapshot in reversed(history[:round]):
            path.append(tuple(map(int, snapshot.associations[index].labels)))
            (index,) = snapshot.parents[index]
        paths.append(tuple(reversed(path)))
    return paths


def tracked(world, tracker, staying):
    return world.run(world.method(tracker, prior=AssociationPrior(staying)), ROUNDS)


@pytest.fixture(params=[None, 0.6, 0.95])
def staying(request):
    return request.param


@pytest.fixture(params=[(11, 3, 2), (12, 2, 2), (13, 1, 3)], ids="{0[1]} in {0[2]}".format)
def world(request, linear_world):
    seed, clients, clusters = request.param
    return linear_world(seed, clients=clients, clusters=clusters, rounds=ROUNDS)


def test_weights_are_those_of_all_label_histories(world, staying, by_path):
    for round, state in enumerate(tracked(world, Exact(), staying), 1):
        expected = probabilities(label_histories(world, round, staying))
        found = by_path(state)
        assert found.keys() == expected.keys()
        for history, probability in expected.items():
            assert np.exp(found[history].log_weight) == pytest.approx(probability, rel=1e-8)


def test_shares_of_ancestors_are_the_smoothing_marginals(world, staying):
    state = tracked(world, Exact(), staying)[-1]
    expected = probabilities(label_histories(world, ROUNDS, staying))
    differs = False
    for round in range(1, ROUNDS + 1):
        shares = ancestor_shares(state.history, round)
        filtered = np.exp(state.history[round - 1].log_weights)
        for path, share, before in zip(
            paths_of(state.history, round), shares, filtered, strict=True
        ):
            marginal = sum(p for h, p in expected.items() if h[:round] == path)
            assert share == pytest.approx(marginal, rel=1e-8)
            differs |= abs(share - before) > 0.01
    assert differs


def test_enough_hypotheses_smooth_exactly(linear_world):
    world = linear_world(11, clients=3, clusters=2, rounds=ROUNDS)
    exact = tracked(world, Exact(), 0.8)[-1]
    kept = tracked(world, MultiHypothesis(512, max_per_parent=8), 0.8)[-1]
    for round in range(1, ROUNDS + 1):
        shares = [
            dict(zip(paths_of(s.history, round), ancestor_shares(s.history, round), strict=True))
            for s in (exact, kept)
        ]
        assert shares[0] == {path: pytest.approx(p) for path, p in shares[1].items()}


def test_smoothed_associations_are_sums_of_marginals(linear_world, staying):
    """Three clients in two clusters: one of the two ways to match always shares most clients."""
    world = linear_world(21, clients=3, clusters=2, rounds=ROUNDS)
    state = tracked(world, Exact(), staying)[-1]
    expected = probabilities(label_histories(world, ROUNDS, staying))
    for round in range(1, ROUNDS + 1):
        prefixes = {h[:round] for h in expected}
        shares = {p: sum(w for h, w in expected.items() if h[:round] == p) for p in prefixes}
        leading = np.array(max(shares, key=shares.get)[-1])
        table = np.zeros((3, 2))
        for path, share in shares.items():
            labels = np.array(path[-1])
            if (labels == leading).sum() < 2:
                labels = 1 - labels
            table[range(3), labels] += share
        np.testing.assert_allclose(smoothed_associations(state.history, round), table, rtol=1e-7)
        run = Run(model=world.model, state=state, records=(), groups={})
        np.testing.assert_allclose(run.smoothed(round), table, rtol=1e-7)


def forward_backward(emissions, staying):
    """(rounds, states) smoothing marginals of a chain that starts uniformly."""
    rounds, states = emissions.shape
    moves = np.full((states, states), (1 - staying) / (states - 1))
    np.fill_diagonal(moves, staying)
    forward, backward = np.zeros_like(emissions), np.ones_like(emissions)
    for t in range(rounds):
        before = np.full(states, 1 / states) if t == 0 else forward[t - 1] @ moves
        forward[t] = before * emissions[t]
        forward[t] /= forward[t].sum()
    for t in range(rounds - 2, -1, -1):
        backward[t] = moves @ (emissions[t + 1] * backward[t + 1])
        backward[t] /= backward[t].sum()
    joint = forward * backward
    return joint / joint.sum(axis=1, keepdims=True)


@pytest.mark.parametrize("staying", [0.3, 0.7, 0.95])
def test_with_clusters_that_do_not_move_each_client_is_a_hidden_markov_chain(linear_world, staying):
    drawn = linear_world(31, clients=2, clusters=3, rounds=ROUNDS)
    world = replace(drawn, prior_precisions=np.full(3, 1e12))
    state = tracked(world, Exact(), staying)[-1]
    for row, client in enumerate(world.clients):
        emissions = np.array(
            [
                [np.exp(log_density(*world.of(client, t), m)) for m in world.prior_means]
                for t in range(ROUNDS)
            ]
        )
        expected = forward_backward(emissions, staying)
        for round in range(1, ROUNDS + 1):
            marginal = np.zeros(3)
            shares = ancestor_shares(state.history, round)
            for share, association in zip(
                shares, state.history[round - 1].associations, strict=True
            ):
                marginal[association.labels[row]] += share
            np.testing.assert_allclose(marginal, expected[round - 1], rtol=1e-6)
