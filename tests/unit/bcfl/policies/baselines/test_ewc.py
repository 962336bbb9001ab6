from dataclasses import replace

import numpy as np
import pytest
import torch

from bcfl import Association, Hypothesis, Objective, drive
from bcfl.policies.baselines.ewc import EWC
from bcfl.protocol.regularizers import Consolidation
from bcfl.protocol.requests import Score
from bcfl.protocol.statistics.evidence import Evidence, EvidenceSum

NAMES = ("a", "b")
TWO = EWC(Objective(curvature_samples=7))


@pytest.fixture
def parent(linear, newborn):
    return Hypothesis(clusters=(newborn(linear),), association=Association.unseen(NAMES, 1))


@pytest.fixture
def associated(context):
    """Let a policy associate; a time step has two rounds; `silent` clients report nothing."""

    def of(policy, hypothesis, round, silent=()):
        def answer(r):
            if r.client not in silent:
                return {r.models[0]: EvidenceSum(-3.0, torch.zeros(8), torch.full((8,), 6.0), 3)}

        steps = policy.associate(hypothesis, replace(context(NAMES, round), step=round // 2))
        (chosen,), exchanges = drive(steps, answer, return_exchanges=True)
        return [request for exchange in exchanges for request in exchange.requests], chosen

    return of


def after(parent, chosen):
    return replace(parent, carried_models=chosen.carried_models, state=chosen.state)


def test_the_time_step_before_is_remembered_once(linear, parent, associated):
    for round in (0, 1):
        asked, chosen = associated(TWO, parent, round)
        assert not asked
        assert not chosen.carried_models
        assert not any(training.objective.regularizers for training in chosen.trainings)
    asked, chosen = associated(TWO, parent, 2, silent=("b",))
    key = parent.clusters[0].key
    assert asked == [
        Score(
            client=client,
            models=(key,),
            statistic=Evidence(),
            view="memory:0",
            samples=7,
            reported=False,
        )
        for client in NAMES
    ]
    assert set(chosen.carried_models) == {"anchor of a", "Fisher information of a"}
    assert chosen.carried_models["anchor of a"] is parent.clusters[0]
    assert chosen.carried_models["Fisher information of a"].mean(linear).tolist() == [2.0] * 8
    asked, _ = associated(TWO, after(parent, chosen), 3)
    assert [score.client for score in asked] == ["b"]


def test_who_remembers_is_held(parent, associated):
    _, chosen = associated(TWO, parent, 2, silent=("b",))
    held, free = chosen.trainings
    keys = tuple(
        chosen.carried_models[f"{what} of a"].key for what in ("anchor", "Fisher information")
    )
    assert held.objective.regularizers == (Consolidation(10.0),)
    assert held.references == (keys,)
    assert free.objective == Objective(curvature_samples=7)
    assert {model.key for model in chosen.models} == set(keys)


def test_earlier_information_decays(linear, parent, associated):
    policy = replace(TWO, decay=0.5)
    _, first = associated(policy, parent, 2)
    asked, second = associated(policy, after(parent, first), 4)
    assert {score.view for score in asked} == {"memory:1"}
    assert second.carried_models["Fisher information of b"].mean(linear).tolist() == [3.0] * 8


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
        EWC(Objective(), **wrong)
