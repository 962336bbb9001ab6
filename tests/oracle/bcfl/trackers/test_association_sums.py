"""Sums over hypotheses: association probabilities and co-association, against brute force."""

import itertools
from dataclasses import replace

import networkx as nx
import numpy as np
import pytest
import torch

import bcfl
from bcfl.analysis.graphs import client_cluster_graph
from bcfl.hypotheses.association import UNSEEN
from bcfl.hypotheses.posterior import from_initial
from bcfl.protocol.objective import Objective
from experiments.models import linear, mlp
from tests.recipes import built

SETTINGS = dict(num_clusters=3, objective=Objective(local_steps=3, batch_size=16), temperature=40.0)
SIZES = (30, 24, 25, 36, 30, 21, 28)
SCATTERED = {"client_fraction": 0.5, "drop_out": 0.3}


def run_of(clients, name, **options):
    method = built(name, **SETTINGS)
    one = bcfl.Federation(clients, mlp(64, 8, 10), method, seed=6, device="cpu", **options)
    return one.run(4)


@pytest.mark.parametrize("options", [{}, SCATTERED], ids=["all", "unreliable"])
@pytest.mark.parametrize("name", ["wecfl", "bcfl-g", "bcfl-c-4", "bcfl-mh-4"])
def test_co_association_by_loops_over_rounds_hypotheses_and_pairs(digits_clients, name, options):
    run = run_of(digits_clients(SIZES), name, **options)
    graph = run.accumulated_association_graph()
    assert set(graph) == set(run.clients)
    unseen = 0
    for one, other in itertools.combinations(range(len(SIZES)), 2):
        expected = 0.0
        for snapshot in run.state.history:
            for log_weight, association in zip(
                snapshot.log_weights, snapshot.associations, strict=True
            ):
                shared = 0.0
                for weight, member in association.components:
                    mine, yours = member.labels[[one, other]]
                    shared += weight * (mine == yours != UNSEEN)
                expected += np.exp(log_weight) * shared
                unseen += association.labels[one] == UNSEEN
        expected /= len(run.state.history)
        pair = (run.clients[one], run.clients[other])
        found = graph.edges[pair]["probability"] if graph.has_edge(*pair) else 0.0
        assert found == pytest.approx(expected, abs=1e-12)
    assert (unseen > 0) == bool(options)


@pytest.mark.parametrize("options", [{}, SCATTERED], ids=["all", "unreliable"])
def test_merged_associations_have_the_marginals_of_their_mixture(digits_clients, options):
    run = run_of(digits_clients(SIZES), "bcfl-c-4", **options)
    for snapshot in run.state.history:
        (association,) = snapshot.associations
        served = np.zeros((len(SIZES), 3))
        for weight, member in association.components:
            for row, label in enumerate(member.labels):
                served[row, label] += weight * (label != UNSEEN)
        np.testing.assert_allclose(served, association.serving, atol=1e-12)


def test_hard_associations_share_a_cluster_or_do_not(digits_clients):
    """One hypothesis without merging: the probability is the share of rounds spent together."""
    run = run_of(digits_clients(SIZES), "bcfl-g")
    labels = np.array([s.associations[0].labels for s in run.state.history])
    graph = run.accumulated_association_graph()
    together = {
        (a, b): np.mean(labels[:, i] == labels[:, j])
        for (i, a), (j, b) in itertools.combinations(enumerate(run.clients), 2)
    }
    expected = nx.Graph([(*pair, {"probability": p}) for pair, p in together.items() if p > 0])
    assert {frozenset(e) for e in graph.edges} == {frozenset(e) for e in expected.edges}
    for pair, probability in together.items():
        if probability > 0:
            assert graph.edges[pair]["probability"] == pytest.approx(probability, abs=1e-12)


@pytest.mark.parametrize("least", [0.0, 0.3, 0.75, 1.0])
def test_edges_below_the_least_probability_are_left_out(digits_clients, least):
    run = run_of(digits_clients(SIZES), "bcfl-mh-4")
    every = run.accumulated_association_graph().edges(data="probability")
    kept = run.accumulated_association_graph(least).edges
    assert set(kept) == {(a, b) for a, b, p in every if p >= least}


def hypothesis_set(random, num_clients, num_clusters, count, moved, shared_models=False):
    """Hypotheses near one association, each under labels of its own."""
    names = tuple(f"c{i}" for i in range(num_clients))
    model = linear(2, 2)
    base = random.integers(num_clusters, size=num_clients)
    pool = [
        from_initial(model, f"m{i}", torch.zeros(6), torch.empty(0), 1.0)
        for i in range(num_clusters)
    ]
    hypotheses = []
    for index in range(count):
        labels = base.copy()
        labels[random.choice(num_clients, size=moved, replace=False)] = random.integers(
            num_clusters, size=moved
        )
        order = random.permutation(num_clusters)
        own = [
            from_initial(model, f"h{index} {i}", torch.zeros(6), torch.empty(0), 1.0)
            for i in range(num_clusters)
        ]
        clusters = pool if shared_models else own
        hypotheses.append(
            bcfl.Hypothesis(
                clusters=tuple(clusters[i] for i in np.argsort(order)),
                association=bcfl.Association(names, order[labels], num_clusters),
                log_weight=float(random.normal()),
            )
        )
    return bcfl.HypothesisSet.weighted(hypotheses, 1, 0.0)


def brute_force(hypotheses):
    """Permute each hypothesis' clusters to share most clients with the leading one, then sum.

    A model in common counts half a client.
    """
    leading = hypotheses.best
    num_clusters = leading.association.num_clusters
    total, unique = np.zeros_like(leading.association.serving), True
    for hypothesis in hypotheses:
        gains = {}
        for order in itertools.permutations(range(num_clusters)):
            renamed = np.array(order)[hypothesis.association.labels]
            shared = sum(
                0.5
                for own, theirs in enumerate(order)
                if hypothesis.clusters[own].key == leading.clusters[theirs].key
            )
            gains[order] = np.sum(renamed == leading.association.labels) + shared
        best = max(gains, key=gains.get)
        unique &= sum(gain == gains[best] for gain in gains.values()) == 1
        for client, row in enumerate(hypothesis.membership):
            for cluster, share in enumerate(row):
                total[client, best[cluster]] += np.exp(hypothesis.log_weight) * share
    return total, unique


@pytest.mark.parametrize("shared_models", [False, True])
@pytest.mark.parametrize("num_clusters", [2, 3, 4])
def test_association_probabilities_by_all_permutations(num_clusters, shared_models):
    checked = 0
    for seed in range(12):
        random = np.random.default_rng(seed)
        hypotheses = hypothesis_set(random, 14, num_clusters, 5, 3, shared_models)
        expected, unique = brute_force(hypotheses)
        found = hypotheses.association_probabilities()
        np.testing.assert_allclose(found.sum(axis=1), 1.0, atol=1e-12)
        if unique:
            np.testing.assert_allclose(found, expected, atol=1e-12)
            checked += 1
    assert checked >= 6


def test_relabelled_copies_are_certain():
    """Hypotheses that differ in labels alone leave no doubt."""
    random = np.random.default_rng(1)
    hypotheses = hypothesis_set(random, 12, 3, 6, moved=0)
    expected = hypotheses.best.association.serving
    np.testing.assert_allclose(hypotheses.association_probabilities(), expected, atol=1e-12)


def test_client_cluster_graph_shows_the_same_numbers(digits_clients):
    run = run_of(digits_clients(SIZES), "bcfl-mh-4")
    expected, _ = brute_force(run.hypotheses)
    graph = client_cluster_graph(run.hypotheses)
    for row, client in enumerate(run.clients):
        for cluster in range(3):
            edge = graph.get_edge_data(client, f"cluster-{cluster}", {"probability": 0.0})
            assert edge["probability"] == pytest.approx(expected[row, cluster], abs=1e-12)


def test_clients_never_seen_have_no_probability(digits_clients):
    run = run_of(digits_clients(SIZES), "bcfl-mh-4", client_fraction=0.2)
    rows = run.association_probabilities().sum(axis=1)
    labels = run.hypotheses.best.association.labels
    assert (labels == UNSEEN).any()
    np.testing.assert_allclose(rows, np.where(labels == UNSEEN, 0.0, 1.0), atol=1e-12)


def test_served_mixture_by_loops(digits_clients):
    """Equation 10 seen from one client: predictions average over hypotheses and clusters."""
    clients = digits_clients(SIZES)
    for name in ("bcfl-mh-4", "bcfl-c-4"):
        run = run_of(clients, name)
        inputs = clients[0].views["test"].inputs
        expected = np.zeros((len(inputs), 10))
        for hypothesis in run.hypotheses:
            serving = hypothesis.association.serving[0]
            for share, posterior in zip(serving, hypothesis.clusters, strict=True):
                flat = posterior.mean(run.model).numpy().astype(np.float64)
                hidden = inputs.numpy() @ flat[:512].reshape(8, 64).T + flat[512:520]
                logits = np.maximum(hidden, 0) @ flat[520:600].reshape(10, 8).T + flat[600:]
                weights = np.exp(logits - logits.max(axis=1, keepdims=True))
                probabilities = weights / weights.sum(axis=1, keepdims=True)
                expected += np.exp(hypothesis.log_weight) * share * probabilities
        found = run.predict("c00", inputs, by="association").mean
        np.testing.assert_allclose(found, expected, atol=1e-5)


def test_weights_of_a_set_are_normalised_and_sorted():
    hypotheses = hypothesis_set(np.random.default_rng(0), 6, 2, 5, 2)
    shifted = bcfl.HypothesisSet.weighted(
        [replace(h, log_weight=h.log_weight - 5000.0) for h in hypotheses], 1, 0.0
    )
    np.testing.assert_allclose(shifted.log_weights, hypotheses.log_weights, atol=1e-9)
    assert (np.diff(hypotheses.log_weights) <= 0).all()
    assert np.exp(hypotheses.log_weights).sum() == pytest.approx(1.0)
    assert hypotheses.effective_number == pytest.approx(
        1 / (np.exp(hypotheses.log_weights) ** 2).sum()
    )
