"""The multi-hypothesis tracker that keeps everything is the exact recursion."""

import itertools

import numpy as np
import pytest
import torch

import bcfl
from bcfl.policies import LikelihoodAssociation
from bcfl.protocol.objective import Objective
from bcfl.trackers import Exact, MultiHypothesis
from experiments.models import linear


def assert_same_hypotheses(found, expected):
    assert found.keys() == expected.keys()
    for path, hypothesis in expected.items():
        assert found[path].log_weight == pytest.approx(hypothesis.log_weight, abs=1e-12)
        for ours, theirs in zip(found[path].clusters, hypothesis.clusters, strict=True):
            assert ours.key == theirs.key
            assert torch.equal(ours.blocks[0].gaussian.mean, theirs.blocks[0].gaussian.mean)
            assert torch.equal(
                ours.blocks[0].gaussian.precision, theirs.blocks[0].gaussian.precision
            )


@pytest.mark.parametrize("evidence", ["separable", "joint"])
@pytest.mark.parametrize("memory", ["accumulate", "forget", "replace"])
def test_all_hypotheses_kept_is_exact(linear_world, by_path, memory, evidence):
    rounds, every = 3, 2**3
    world = linear_world(rounds, clients=3, clusters=2)
    exact = world.run(world.method(Exact(), memory=memory, evidence=evidence), rounds)
    enough = MultiHypothesis(every**rounds, max_per_parent=every)
    kept = world.run(world.method(enough, memory=memory, evidence=evidence), rounds)
    for state in (*exact, *kept):
        assert len(state.hypotheses) == every**state.round
        assert state.hypotheses.log_captured_mass == pytest.approx(0.0, abs=1e-12)
    for ours, theirs in zip(kept, exact, strict=True):
        assert_same_hypotheses(by_path(ours), by_path(theirs))


def test_every_history_is_kept(linear_world, by_path):
    world = linear_world(5, clients=2, clusters=3)
    state = world.run(world.method(Exact()), 2)[-1]
    associations = list(itertools.product(range(3), repeat=2))
    assert set(by_path(state)) == set(itertools.product(associations, repeat=2))
    assert state.hypotheses.weights.sum() == pytest.approx(1.0)


def test_one_hypothesis_short_is_not_exact(linear_world, by_path):
    world = linear_world(6, clients=3, clusters=2)
    exact = by_path(world.run(world.method(Exact()), 1)[-1])
    state = world.run(world.method(MultiHypothesis(7, max_per_parent=8)), 1)[-1]
    (lost,) = exact.keys() - by_path(state).keys()
    assert exact[lost].log_weight == min(h.log_weight for h in exact.values())
    captured = np.log1p(-np.exp(exact[lost].log_weight))
    assert state.hypotheses.log_captured_mass == pytest.approx(captured, rel=1e-9)


def test_on_networks_trained_by_gradient_steps(by_path):
    random = np.random.default_rng(3)
    clients = [
        bcfl.ClientData.from_arrays(
            f"c{index}", (random.normal(size=(12, 4)), random.integers(3, size=12))
        )
        for index in range(3)
    ]
    objective = Objective(local_steps=2, batch_size=4, curvature="ggn")

    def run(tracker):
        method = bcfl.Method(
            policy=LikelihoodAssociation(num_clusters=2, objective=objective, temperature=1.0),
            tracker=tracker,
            aggregation=bcfl.Aggregation(memory="accumulate"),
        )
        return bcfl.Federation(clients, linear(4, 3), method, seed=1, device="cpu").run(2)

    exact, kept = run(Exact()), run(MultiHypothesis(64, max_per_parent=8))
    assert_same_hypotheses(by_path(kept.state), by_path(exact.state))
