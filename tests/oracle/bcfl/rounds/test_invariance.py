"""What must not matter: the order of clients, their names, and the labels of clusters."""

import itertools
from dataclasses import replace

import numpy as np
import pytest
import torch

import bcfl
from bcfl.protocol.objective import Objective
from bcfl.trackers import Consensus, Exact, Greedy, MultiHypothesis
from experiments.models import linear, mlp
from tests.recipes import built

NAMES = (
    "fedavg",
    "ifca",
    "fesem",
    "wecfl",
    "bcfl-g",
    "bcfl-c-3",
    "bcfl-mh-3",
    "bcfl-mht-4",
    "bcfl-g-w",
)
SIZES = (30, 44, 25, 36, 30, 51, 28)
SETTINGS = dict(
    num_clusters=3, objective=Objective(local_steps=4, batch_size=16, learning_rate=0.1)
)
SCATTERED = {"client_fraction": 0.8, "drop_out": 0.2}
WHOLE = replace(SETTINGS["objective"], batch_size=1000)


def digits_federation(clients, name, **options):
    method = built(name, **SETTINGS)
    return bcfl.Federation(clients, mlp(64, 12, 10), method, seed=4, device="cpu", **options)


@pytest.mark.parametrize("options", [{}, SCATTERED], ids=["all", "unreliable"])
@pytest.mark.parametrize("name", NAMES)
def test_order_of_clients(digits_clients, states_of, assert_same_bits, name, options):
    plain = states_of(digits_federation(digits_clients(SIZES), name, **options), 3)
    mixed = states_of(digits_federation(digits_clients(SIZES, shuffled=1), name, **options), 3)
    for (state, record), (twin, twin_record) in zip(plain, mixed, strict=True):
        assert_same_bits(state.hypotheses, twin.hypotheses)
        assert record.participants == twin_record.participants
        assert record.ledger.bytes_down == twin_record.ledger.bytes_down
        assert {c: e.nll for c, e in record.evaluations.items()} == {
            c: e.nll for c, e in twin_record.evaluations.items()
        }


def renamed(clients, names):
    return [bcfl.ClientData(names[d.client], d.views, d.group) for d in clients]


def whole_batch_run(clients, name):
    """Whole batches leave no randomness but the initial models (and the starts of K-means)."""
    method = built(name, **{**SETTINGS, "objective": WHOLE, "temperature": 5.0})
    one = bcfl.Federation(clients, linear(4, 3), method, seed=4, device="cpu", dtype=torch.float64)
    return one.run(4)


def assert_same_up_to_rounding(run, other, rows):
    """Client i of `run` is client rows[i] of `other`."""
    np.testing.assert_allclose(
        run.hypotheses.log_weights, other.hypotheses.log_weights, rtol=0, atol=1e-9
    )
    for one, twin in zip(run.hypotheses, other.hypotheses, strict=True):
        serving = twin.association.serving[rows]
        np.testing.assert_allclose(one.association.serving, serving, rtol=0, atol=1e-9)
        for mine, yours in zip(one.clusters, twin.clusters, strict=True):
            np.testing.assert_allclose(mine.mean(run.model), yours.mean(run.model), atol=1e-9)


@pytest.mark.parametrize(
    "name", ["fedavg", "ifca", "wecfl", "bcfl-g", "bcfl-c-3", "bcfl-mh-3", "bcfl-mht-4"]
)
def test_renaming_in_the_same_order(turned_clients, name):
    clients = turned_clients((20, 33, 12, 41, 20, 27))
    names = {d.client: f"hospital {index:03}" for index, d in enumerate(clients)}
    run = whole_batch_run(clients, name)
    other = whole_batch_run(renamed(clients, names), name)
    assert other.clients == tuple(names.values())
    assert_same_up_to_rounding(run, other, range(6))


@pytest.mark.parametrize(
    "name", ["fedavg", "ifca", "bcfl-g", "bcfl-c-3", "bcfl-mh-3", "bcfl-mht-4"]
)
def test_permuting_names_permutes_the_results(turned_clients, name):
    clients = turned_clients((20, 33, 12, 41, 20, 27))
    order = np.random.default_rng(2).permutation(6)
    names = {f"c{index}": f"c{order[index]}" for index in range(6)}
    run = whole_batch_run(clients, name)
    other = whole_batch_run(renamed(clients, names), name)
    assert_same_up_to_rounding(run, other, order)


def relabelled(state, orders):
    """The same hypotheses; cluster orders[h][i] of hypothesis h is called i now."""
    hypotheses = []
    for hypothesis, order in zip(state.hypotheses, orders, strict=True):
        old = hypothesis.association
        new_label = np.argsort(order)
        labels = np.where(old.labels < 0, old.labels, new_label[old.labels])
        soft = None if old.probabilities is None else old.probabilities[:, order]
        association = bcfl.Association(old.clients, labels, old.num_clusters, soft)
        clusters = tuple(hypothesis.clusters[i] for i in order)
        hypotheses.append(replace(hypothesis, clusters=clusters, association=association))
    return replace(state, hypotheses=replace(state.hypotheses, hypotheses=tuple(hypotheses)))


def fingerprint(hypothesis):
    """What a hypothesis says without labels: which models there are and whom each serves."""
    serving = hypothesis.association.serving
    return frozenset(
        (posterior.key, tuple(np.round(serving[:, k], 9)))
        for k, posterior in enumerate(hypothesis.clusters)
    )


def assert_same_but_labels(ours, theirs, tolerance=1e-9):
    assert len(ours) == len(theirs)
    weights = {fingerprint(h): h.log_weight for h in ours}
    assert len(weights) == len(ours)
    for hypothesis in theirs:
        assert weights[fingerprint(hypothesis)] == pytest.approx(
            hypothesis.log_weight, abs=tolerance
        )
    assert ours.log_captured_mass == pytest.approx(
        theirs.log_captured_mass, abs=tolerance, nan_ok=True
    )


@pytest.mark.parametrize("evidence", ["separable", "joint"])
@pytest.mark.parametrize("tracker", [Greedy(), MultiHypothesis(4), Exact()])
@pytest.mark.parametrize("order", list(itertools.permutations(range(3)))[1:])
def test_labels_of_the_first_clusters(linear_world, order, tracker, evidence):
    rounds = 1 if isinstance(tracker, Exact) else 3
    world = linear_world(41, clients=4, clusters=3, rounds=rounds)
    method = world.method(tracker, evidence=evidence)
    plain = world.run(method, rounds)
    other = world.run(method, rounds, world.start(order))
    for state, twin in zip(plain, other, strict=True):
        assert_same_but_labels(state.hypotheses, twin.hypotheses)
        best, labels = state.hypotheses.best, twin.hypotheses.best.association.labels
        np.testing.assert_array_equal(np.array(order)[labels], best.association.labels)


def test_labels_of_the_first_clusters_under_merging(linear_world):
    """Merged models agree to rounding: the weights enter their keys."""
    world = linear_world(42, clients=4, clusters=3, rounds=3)
    order = (2, 0, 1)
    plain = world.run(world.method(Consensus(5)), 3)
    other = world.run(world.method(Consensus(5)), 3, world.start(order))
    for state, twin in zip(plain, other, strict=True):
        one, two = state.hypotheses.best, twin.hypotheses.best
        np.testing.assert_allclose(two.association.serving, one.association.serving[:, order])
        for i, old in enumerate(order):
            for what in ("mean", "precision"):
                mine = getattr(two.clusters[i], what)(world.model)
                yours = getattr(one.clusters[old], what)(world.model)
                np.testing.assert_allclose(mine, yours, rtol=1e-9)


@pytest.mark.parametrize("name", ["ifca", "fesem", "wecfl", "bcfl-g", "bcfl-mh-3"])
def test_labels_in_the_middle_of_a_run(digits_clients, name):
    """Each hypothesis gets other labels after two rounds; nothing but labels changes."""
    one = digits_federation(digits_clients(SIZES), name)
    state = one.run(2).state
    assert all((h.association.labels >= 0).all() for h in state.hypotheses)
    orders = [np.roll(np.arange(3), 1 + index % 2) for index in range(len(state.hypotheses))]
    plain = one.run(4, state=state)
    other = one.run(4, state=relabelled(state, orders))
    assert_same_but_labels(plain.hypotheses, other.hypotheses)
    for snapshot, twin in zip(plain.state.history, other.state.history, strict=True):
        ours, theirs = snapshot.co_association(), twin.co_association()
        np.testing.assert_allclose(
            (ours @ ours.T).toarray(), (theirs @ theirs.T).toarray(), atol=1e-9
        )
