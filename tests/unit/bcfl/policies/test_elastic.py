from dataclasses import replace

import numpy as np
import pytest
import torch

from bcfl import Association, Hypothesis, Objective
from bcfl.consolidation import Consolidation
from bcfl.policies.elastic import ElasticCluster
from bcfl.policies.time_steps import TimeSteps
from bcfl.requests import EvidenceSum, Score

NAMES = ("a", "b")
TWO = ElasticCluster(Objective(curvature_samples=7), steps=TimeSteps(2))


@pytest.fixture
def parent(linear, newborn):
    return Hypothesis((newborn(linear),), Association.unseen(NAMES, 1))


@pytest.fixture
def associated(context):
    """Let a policy associate in a run of four rounds; `silent` clients report nothing."""

    def of(policy, hypothesis, round, silent=()):
        steps = policy.associate(hypothesis, replace(context(NAMES, round), num_rounds=4))
        asked, replies = [], None
        try:
            while True:
                exchange = next(steps) if replies is None else steps.send(replies)
                asked += exchange.requests
                replies = {
                    r: {r.models[0]: EvidenceSum(-3.0, torch.zeros(8), torch.full((8,), 6.0), 3)}
                    for r in exchange.requests
                    if r.client not in silent
                }
        except StopIteration as end:
            (chosen,) = end.value
        return asked, chosen

    return of


def test_the_last_round_of_a_time_step_is_remembered(linear, parent, associated):
    asked, chosen = associated(TWO, parent, 0)
    assert not asked
    assert not chosen.kept
    asked, chosen = associated(TWO, parent, 1, silent=("b",))
    key = parent.clusters[0].key
    assert asked == [Score(client, (key,), "evidence", samples=7) for client in NAMES]
    assert set(chosen.kept) == {"anchor of a", "Fisher information of a"}
    assert chosen.kept["anchor of a"] is parent.clusters[0]
    assert chosen.kept["Fisher information of a"].mean(linear).tolist() == [2.0] * 8
    assert not any(training.objective.terms for training in chosen.trainings)
    asked, _ = associated(TWO, parent, 3)
    assert not asked


def test_who_remembers_is_held(parent, associated):
    _, first = associated(TWO, parent, 1, silent=("b",))
    later = replace(parent, kept=first.kept)
    _, chosen = associated(TWO, later, 2)
    held, free = chosen.trainings
    keys = tuple(first.kept[f"{what} of a"].key for what in ("anchor", "Fisher information"))
    assert held.objective.terms == (Consolidation(100.0),)
    assert held.references == (keys,)
    assert free.objective == Objective(curvature_samples=7)
    assert {model.key for model in chosen.models} == set(keys)
    assert chosen.kept == first.kept


def test_earlier_information_decays(linear, parent, associated):
    policy = replace(TWO, steps=TimeSteps(4), decay=0.5)
    _, first = associated(policy, parent, 0)
    _, second = associated(policy, replace(parent, kept=first.kept), 1)
    assert second.kept["Fisher information of b"].mean(linear).tolist() == [3.0] * 8


def test_static_data_are_one_time_step_without_penalty(parent, associated):
    for round in range(4):
        asked, chosen = associated(ElasticCluster(Objective()), parent, round)
        assert not asked
        assert not chosen.kept


def test_time_steps_are_equally_long(context):
    def at(round, rounds=10):
        return replace(context(NAMES, round), num_rounds=rounds)

    steps = TimeSteps(3)
    assert [steps.number(at(round)) for round in range(10)] == [0, 0, 0, 0, 1, 1, 1, 2, 2, 2]
    assert [round for round in range(10) if steps.ends(at(round))] == [3, 6]
    assert steps.number(at(50, None)) == 1
    with pytest.raises(ValueError, match="count must be at least 1, got 0"):
        TimeSteps(0)


@pytest.mark.parametrize(
    ("wrong", "message"),
    [
        ({"weight": 0.0}, "weight must be positive and finite, got 0.0"),
        ({"decay": 1.1}, r"decay must lie in \[0, 1\], got 1.1"),
        ({"decay": np.nan}, r"decay must lie in \[0, 1\], got nan"),
    ],
)
def test_bad_numbers(wrong, message):
    with pytest.raises(ValueError, match=message):
        ElasticCluster(Objective(), **wrong)
