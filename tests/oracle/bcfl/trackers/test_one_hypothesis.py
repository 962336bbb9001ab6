"""BCFL-G, BCFL-MH-1 and BCFL-C-1 are one algorithm: equal to the last bit."""

from dataclasses import replace

import numpy as np
import pytest

import bcfl
from bcfl import methods
from bcfl.protocol.objective import Objective
from bcfl.trackers import Consensus, Greedy, MultiHypothesis
from experiments.models import mlp
from tests.recipes import built

ROUNDS = 4
SIZES = (30, 44, 25, 36, 30, 51)
SETTINGS = dict(
    num_clusters=3,
    objective=Objective(local_steps=5, batch_size=16, learning_rate=0.1),
    memory="accumulate",
)
UNRELIABLE = {"client_fraction": 0.7, "drop_out": 0.3}


def federation(clients, method, **options):
    return bcfl.Federation(clients, mlp(64, 12, 10), method, seed=3, device="cpu", **options)


def assert_same_run(one, other, assert_same_bits):
    seen_one, seen_other = [], []
    one.run(ROUNDS, on_round=lambda state, record: seen_one.append((state, record)))
    other.run(ROUNDS, on_round=lambda state, record: seen_other.append((state, record)))
    for (state, record), (twin, twin_record) in zip(seen_one, seen_other, strict=True):
        assert_same_bits(state.hypotheses, twin.hypotheses)
        assert record.participants == twin_record.participants
        assert record.evaluations.keys() == twin_record.evaluations.keys()
        for client, sums in record.evaluations.items():
            np.testing.assert_array_equal(sums.confusion, twin_record.evaluations[client].confusion)
            assert sums.nll == twin_record.evaluations[client].nll
    return seen_one


@pytest.mark.parametrize("options", [{}, UNRELIABLE], ids=["all", "unreliable"])
@pytest.mark.parametrize("memory", ["replace", "forget", "accumulate"])
@pytest.mark.parametrize("name", ["bcfl-mh-1", "bcfl-c-1"])
def test_names_with_one_are_greedy(digits_clients, assert_same_bits, name, memory, options):
    settings = {**SETTINGS, "memory": memory}
    clients = digits_clients(SIZES)
    greedy = federation(clients, methods.build("bcfl-g", **settings), **options)
    other = federation(clients, built(name, **settings), **options)
    seen = assert_same_run(greedy, other, assert_same_bits)
    if options:
        assert any(len(record.participants) < len(SIZES) for _, record in seen)
        assert any(record.ledger.failures for _, record in seen)


@pytest.mark.parametrize("temperature", ["mean", 1.0, 30.0])
def test_more_associations_are_ranked_than_kept(digits_clients, assert_same_bits, temperature):
    settings = {**SETTINGS, "temperature": temperature}
    clients = digits_clients(SIZES)
    greedy = methods.build("bcfl-g", **settings)
    wider = replace(greedy, tracker=MultiHypothesis(1, max_per_parent=9))
    one, other = federation(clients, greedy), federation(clients, wider)
    assert_same_run(one, other, assert_same_bits)


@pytest.mark.parametrize("evidence", ["separable", "joint"])
@pytest.mark.parametrize("tracker", [MultiHypothesis(1), Consensus(1)])
def test_with_both_evidences(linear_world, assert_same_bits, tracker, evidence):
    world = linear_world(31, clients=6, clusters=3, rounds=3)
    greedy = world.run(world.method(Greedy(), evidence=evidence), 3)
    other = world.run(world.method(tracker, evidence=evidence), 3)
    for state, twin in zip(greedy, other, strict=True):
        assert_same_bits(state.hypotheses, twin.hypotheses)


@pytest.mark.parametrize("solver", ["argmin", "heap", "murty"])
def test_best_association_is_the_same_for_all_solvers(digits_clients, assert_same_bits, solver):
    clients = digits_clients(SIZES)
    auto = methods.build("bcfl-g", **SETTINGS)
    named = replace(auto, policy=replace(auto.policy, solver=solver))
    assert_same_run(federation(clients, auto), federation(clients, named), assert_same_bits)


def test_heap_and_murty_rank_alike(digits_clients, assert_same_bits):
    clients = digits_clients(SIZES)
    heap = methods.build("bcfl-mh-6", **{**SETTINGS, "temperature": 7.0})
    murty = replace(heap, policy=replace(heap.policy, solver="murty"))
    ours, theirs = (federation(clients, m).run(6).hypotheses for m in (heap, murty))
    np.testing.assert_allclose(ours.log_weights, theirs.log_weights, rtol=0, atol=1e-9)
    for one, other in zip(ours, theirs, strict=True):
        assert [c.key for c in one.clusters] == [c.key for c in other.clusters]


def test_two_hypotheses_are_not_one(digits_clients):
    """The tests above could tell."""
    clients = digits_clients(SIZES)
    runs = {
        name: federation(clients, built(name, **SETTINGS)).run(2)
        for name in ("bcfl-g", "bcfl-c-2", "bcfl-mh-2")
    }
    keys = {
        name: tuple(c.key for h in run.hypotheses for c in h.clusters) for name, run in runs.items()
    }
    assert len(set(keys.values())) == 3
