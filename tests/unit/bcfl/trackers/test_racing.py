"""Several starts, of which the evidence leaves some."""

from dataclasses import dataclass, replace

import numpy as np
import pytest

from bcfl import Association, Federation, Objective
from bcfl.methods import build
from bcfl.policies import Policy
from bcfl.policies.policy import Candidate, Costs
from bcfl.policies.wrappers.policy_wrapper import PolicyWrapper
from bcfl.rounds.checkpoint import load, save
from bcfl.trackers import RacingStarts
from bcfl.trackers.start_evidence import start_weights, with_evidence

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


def chosen_with(values, log_prior=None, state=None, clients=("a", "b")):
    """A candidate of which only the costs matter."""
    costs = Costs(clients=clients, values=np.array(values, float), log_prior=log_prior)
    return Candidate(
        association=Association.unseen(clients, 2),
        trainings=(),
        contribution_weights=np.zeros((0, 2)),
        origins=(),
        costs=costs,
        state=state or {},
    )


def test_a_start_is_weighed_by_its_mean_evidence_in_the_race(context):
    """What it was before the race, and in another time step, does not count."""
    better, worse = [[0.0, 9.0], [0.0, 9.0]], [[2.0, 9.0], [2.0, 9.0]]
    chosen = [chosen_with(better), chosen_with(worse)]
    chosen = with_evidence(chosen, context(("a", "b"), 3), 4)
    evidence = []
    for round, (first, second) in enumerate([(worse, better), (better, better)], 4):
        now = [chosen_with(v, state=c.state) for v, c in zip((first, second), chosen, strict=True)]
        chosen = with_evidence(now, context(("a", "b"), round), 4)
        rows = [np.array(one.state["start_evidence"]["rows"]["a"]) for one in chosen]
        evidence.append([(row[1:] / row[0]).sum() for row in rows])
    np.testing.assert_allclose(np.diff(evidence), [[2.0], [1.0]], atol=1e-3)
    assert start_weights(chosen, context(("a", "b"), 5))[1] > 0.8


def test_starts_are_compared_over_the_rounds_that_they_share(context):
    """A start that was not scored while others did badly is no better for it."""
    early, late = [[9.0, 9.0], [9.0, 9.0]], [[0.0, 9.0], [0.0, 9.0]]
    chosen = [chosen_with(early), replace(chosen_with(late), costs=None)]
    chosen = with_evidence(chosen, context(("a", "b"), 0), 0)
    assert start_weights(chosen, context(("a", "b"), 0)).tolist() == [0.5, 0.5]
    now = [
        chosen_with(late, state=chosen[0].state),
        chosen_with(late[:1], state=chosen[1].state, clients=("a",)),
    ]
    first, second = (
        one.state["start_evidence"]["rows"] for one in with_evidence(now, context(("a", "b"), 1), 0)
    )
    assert first == second
    assert {client: row[0] for client, row in first.items()} == {"a": 1}


@pytest.mark.parametrize("options", [{}, {"burn_in": 0}, {"held_rounds": 9}])
def test_a_race_goes_on_from_a_checkpoint_as_if_it_had_not_stopped(
    options, clients, linear, tmp_path
):
    given = {"num_clusters": 2, "starts": 3, "objective": OBJECTIVE, "min_weight": 0.0, **options}

    def run(rounds, state=None):
        federation = Federation(
            clients, linear, build("bcfl-race", **given), client_fraction=0.75, device="cpu"
        )
        return federation.run(rounds, planned_rounds=8, state=state)

    whole = run(8)
    resumed = run(8, load(save(run(4).state, tmp_path)))
    assert resumed.hypotheses.log_weights.tolist() == whole.hypotheses.log_weights.tolist()
    assert [h.state for h in resumed.hypotheses] == [h.state for h in whole.hypotheses]
    np.testing.assert_array_equal(resumed.co_association(), whole.co_association())


@pytest.mark.parametrize("temperature", [1.0, 0.05])
def test_evidence_is_divided_by_the_belief_temperature_and_the_prior_is_not(temperature, context):
    log_prior = np.log([[0.9, 0.1]])
    values = np.array([[0.0, 500.0]]) - log_prior
    one = chosen_with(values, log_prior, clients=("a",))
    one = replace(one, costs=replace(one.costs, belief_temperature=temperature))
    (kept,) = with_evidence([one], context(("a",), 0), 0)
    parts = kept.state["start_evidence"]["rows"]["a"][1:]
    np.testing.assert_allclose(parts, [0, 0, 0, np.log(0.9)], atol=1e-12)


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
