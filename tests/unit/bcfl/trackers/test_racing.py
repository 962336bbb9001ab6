"""Several starts, of which the evidence leaves some."""

from dataclasses import dataclass, replace

import numpy as np
import pytest

from bcfl import Federation, Objective
from bcfl.methods import build
from bcfl.policies import Policy
from bcfl.policies.wrappers.policy_wrapper import PolicyWrapper
from bcfl.trackers import RacingStarts

OBJECTIVE = Objective(local_steps=3, batch_size=4)


def run_of(clients, model, rounds=8, **options):
    given = {"num_clusters": 2, "starts": 3, "objective": OBJECTIVE, **options}
    return Federation(clients, model, build("bcfl-race", **given), device="cpu").run(rounds)


def test_starts_are_kept_until_the_race_begins(clients, linear):
    run = run_of(clients, linear, burn_in=4, min_weight=0.9, same=1.0)
    counts = [len(record.snapshot.associations) for record in run.records]
    assert counts[:4] == [3] * 4
    assert counts[4:] == [1] * 4


def test_without_a_threshold_only_equal_starts_are_merged(clients, linear):
    run = run_of(clients, linear, burn_in=0, min_weight=0.0, same=1.0)
    for record in run.records:
        kept = [a.serving for a in record.snapshot.associations]
        for index, first in enumerate(kept):
            for second in kept[:index]:
                together = [(s @ s.T).tolist() for s in (first, second)]
                assert together[0] != together[1]
        assert np.exp(record.snapshot.log_weights).sum() == pytest.approx(1)


def test_weights_sum_to_one_in_falling_order(clients, linear):
    run = run_of(clients, linear, burn_in=1.0, annealing=None)
    for record in run.records:
        weights = np.exp(record.snapshot.log_weights)
        assert weights.sum() == pytest.approx(1)
        assert (np.diff(weights) <= 1e-12).all()


def test_trainings_fall_with_the_starts(clients, linear):
    run = run_of(clients, linear, burn_in=3, min_weight=0.9, same=1.0, annealing=None)
    trainings = [record.ledger.trainings_requested for record in run.records]
    assert trainings[:3] == [12] * 3
    assert trainings[3:] == [4] * 5


@dataclass(frozen=True)
class TellsStart(PolicyWrapper):
    """A policy that logs which start it has followed."""

    policy: Policy

    def associate(self, hypothesis, context):
        ranking = yield from self.policy.associate(hypothesis, context)
        return replace(ranking, facts={"start": hypothesis.lineage[0]})


def test_what_is_logged_is_of_the_most_probable_start(clients, linear):
    method = build("bcfl-race", num_clusters=2, starts=3, warm_starts=0, objective=OBJECTIVE)
    method = replace(method, policy=TellsStart(method.policy))
    federation = Federation(clients, linear, method, seed=3, device="cpu")
    best = []
    run = federation.run(6, on_round=lambda state, _: best.append(state.hypotheses.best.lineage[0]))
    assert len(set(best)) > 1
    assert [record.info.facts["start"] for record in run.records] == best


@pytest.mark.parametrize(
    ("options", "words"),
    [
        ({"burn_in": -0.5}, "burn_in must be"),
        ({"min_weight": 1.0}, r"min_weight must lie in \[0, 1\)"),
        ({"same": 0.0}, r"same must lie in \(0, 1\]"),
    ],
)
def test_bad_numbers_are_refused(options, words):
    with pytest.raises(ValueError, match=words):
        RacingStarts(**options)


def test_warm_starts_train_before_they_associate_and_are_scored_by_cavities_after(clients, linear):
    run = run_of(clients, linear, rounds=3, burn_in=1.0, warm_starts=1)
    first = run.records[0]
    scored = run_of(clients, linear, rounds=1, warm_starts=0).records[0]
    assert first.ledger.scores_requested < scored.ledger.scores_requested
    assert all(hypothesis.cavities for hypothesis in run.hypotheses.hypotheses)
