import json
from dataclasses import replace
from fractions import Fraction

import numpy as np
import pytest

from bcfl import Aggregation, Objective, drive
from bcfl.hypotheses.association import Association
from bcfl.policies import Ranking
from bcfl.policies.policy import Costs, Given
from bcfl.trackers.absent_clients import (
    LastCosts,
    WithAbsentClients,
    with_inherited_costs,
    with_last_costs,
)
from bcfl.trackers.moves import (
    Split,
    next_best_clusters,
    removal_cost,
    remove_cluster,
    split_cluster,
)

LABELS = {"a": 0, "b": 0, "c": 1, "d": 2}
COSTS = {"a": (1, 5, 9), "b": (2, 6, 8), "c": (7, 3, 4), "d": (8, 2.5, 2)}
LAST = {"c": [50.0, 10.0, 30.0], "d": [60.0, 25.0, 20.0], "a": [3.0, 4.0, 5.0]}


@pytest.fixture
def parent(hypothesis_at):
    """A hypothesis that remembers c, d and a; e was never seen."""
    state = LastCosts(LAST).state(0)
    return hypothesis_at("x", [(0, 0), (10, 0), (20, 0)], [0, 0, 1, 2, -1], state=state)


class Hand:
    """A policy that ranks two associations whose costs it was given."""

    num_clusters, objective = 3, Objective()

    def __init__(self, candidates, log_total=-1.0):
        self.candidates, self.log_total = candidates, log_total

    def associate(self, hypothesis, context):
        yield from ()
        return Ranking(iter(self.candidates), self.log_total)


@pytest.fixture
def ranked(parent, chosen_with, context):
    def of(policy=WithAbsentClients, labels=LABELS, absent="cd", step=0, costs=True):
        best = replace(chosen_with(parent, labels, COSTS, absent), log_weight=-3.0)
        best = best if costs else replace(best, costs=None)
        hand = Hand([best, replace(best, log_weight=-5.0)])
        return drive(policy(hand).associate(parent, replace(context(("a", "b")), step=step)))

    return of


def test_absent_clients_count_with_their_last_cost_in_their_cluster(ranked):
    """C cost 10 in cluster 1, d 20 in cluster 2; a is present, e was never seen."""
    ranking = ranked()
    assert [one.log_weight for one in ranking] == [-3, -5]
    assert (ranking.log_total, ranking.reference) == (-1, -30)


def test_where_weights_are_carried_absent_clients_count_once(ranked):
    carried = [
        WithAbsentClients.within(Hand([]), Aggregation(memory=memory)).counts
        for memory in ("accumulate", "forget", "replace")
    ]
    assert carried == [False, False, True]
    ranking = ranked(lambda hand: WithAbsentClients(hand, counts=False))
    best, other = ranking
    assert (best.log_weight, other.log_weight, ranking.log_total) == (-3, -5, -1)
    assert ranking.reference == 0
    assert LastCosts.of(best.state, 0).rows["c"] == LAST["c"]


def test_rows_of_participants_are_replaced(ranked):
    for one in ranked():
        rows = LastCosts.of(one.state, 0).rows
        assert rows == {"a": [1, 5, 9], "b": [2, 6, 8], "c": LAST["c"], "d": LAST["d"]}


def test_costs_of_another_time_step_are_dropped(ranked):
    ranking = ranked(step=1)
    best = next(iter(ranking))
    assert (best.log_weight, ranking.log_total, ranking.reference) == (-3, -1, 0)
    assert set(LastCosts.of(best.state, 1).rows) == {"a", "b"}


def test_without_any_answer_all_clients_count_as_absent(ranked, parent):
    """A and b are in cluster 0, where a said 3; b has never said anything."""
    ranking = ranked(costs=False)
    best, other = ranking
    assert (best.log_weight, other.log_weight) == (-3, -5)
    assert (ranking.log_total, ranking.reference) == (-1, -33)
    assert best.state == parent.state


def test_a_policy_that_never_has_costs_is_left_alone(ranked):
    best, other = ranked(costs=False, step=1)
    assert (best.log_weight, other.log_weight) == (-3, -5)


def test_costs_that_judge_are_the_ones_remembered():
    judged = np.array([[0.5, 0.25]])
    costs = Costs(clients=("z",), values=np.array([[1.0, 2.0]]), judged=judged)
    held = LastCosts({"y": [7.0, 8.0]}).updated(costs)
    assert held.rows == {"y": [7, 8], "z": [0.5, 0.25]}
    full = held.completed(costs)
    assert full.clients == ("z", "y")
    assert full.values.tolist() == [[1, 2], [7, 8]]
    assert full.judged.tolist() == [[0.5, 0.25], [7, 8]]


def test_offsets_are_remembered_and_counted_exactly():
    """Offsets of 1e16 whose difference of 0.25 no sum of numbers of that size would keep."""
    offsets = np.array([[1e16, 0.25], [-1e16, 0.5]])
    costs = Costs(clients=("a", "b"), values=np.array([[0.0, 1.0], [2.0, 0.0]]), offsets=offsets)
    held = LastCosts({}).updated(costs)
    again = LastCosts.of(json.loads(json.dumps(held.state(3))), 3)
    association = Association(("a", "b"), np.array([1, 0]), 2)
    assert again.log_weight(association) == -(1 + 2 + 0.75)
    assert again.reindexed([1]).rows == {"a": [1], "b": [0]}
    assert again.without({"a"}).log_weight(association) == Fraction(1e16) - Fraction(5, 2)
    assert again.completed(replace(costs, clients=("c", "d"))).offsets.tolist() == [
        *offsets.tolist(),
        *offsets.tolist(),
    ]


def test_a_slot_whose_members_are_absent_is_not_free(ranked):
    best = next(iter(ranked()))
    assert [removal_cost(best, slot) for slot in (1, 2)] == [0, 0]
    known = with_last_costs(best, 0)
    assert [removal_cost(known, slot) for slot in range(3)] == [8, 30 - 10, 25 - 20]
    assert next_best_clusters(known, 1) == {"c": 2}
    assert next_best_clusters(known, 2) == {"d": 1}


def test_a_proposal_that_gives_up_absent_clients_is_charged_for_them(ranked, parent):
    """D moves from cluster 2, where it said 20, to its next best, where it said 25."""
    best = next(iter(ranked()))
    known = with_last_costs(best, 0)
    made = with_inherited_costs(
        split_cluster(known, Split(0, frozenset("b"), 0.9, 4), 2), parent, 0
    )
    rows = LastCosts.of(made.state, 0).rows
    assert rows["d"] == [60, 25, 60]
    assert rows["b"] == [2, 6, 2]
    held = LastCosts.of(made.state, 0).without("ab")
    assert held.log_weight(made.association) == -(10 + 25)
    assert LastCosts.of(best.state, 0).without("ab").log_weight(best.association) == -30


def test_a_cluster_taken_away_takes_its_column(ranked, parent):
    best = next(iter(ranked()))
    made = with_inherited_costs(remove_cluster(with_last_costs(best, 0), 1), parent, 0)
    rows = LastCosts.of(made.state, 0).rows
    assert rows["c"] == [50, 30]
    assert made.association.label("c") == 1


def test_of_clusters_that_come_from_nowhere_nothing_is_known(ranked, parent, cluster_at):
    best = next(iter(ranked()))
    fresh = replace(best, origins=(*best.origins[:2], Given(cluster_at("new", (5, 5)))))
    assert LastCosts.of(with_inherited_costs(fresh, parent, 0).state, 0).rows == {}


def test_what_is_remembered_can_be_saved(ranked):
    best = next(iter(ranked()))
    assert json.loads(json.dumps(best.state)) == best.state
