from dataclasses import replace

import numpy as np
import pytest
import torch

from bcfl import Aggregation
from bcfl.policies import Continue
from bcfl.trackers.proposals import Birth, Death, Merge, SplitAndFree, all_proposals

NAMES = "abcdefgh"
LABELS = {"a": 0, "b": 0, "c": 0, "d": 0, "e": 1, "f": 1, "g": 1, "h": 1}
PLACES = {"a": 0, "b": 1, "c": 50, "d": 51, "e": 100, "f": 130, "g": 102, "h": 128}
"""Cluster 0 falls into two fully, cluster 1 nearly so."""
COSTS = {
    **dict.fromkeys("abcd", (1, 4, 2, 9)),
    **dict.fromkeys("efgh", (6, 2, 8, 9)),
}
"""Freeing cluster 0 costs 4 x 1, cluster 1 costs 4 x 4; clusters 2 and 3 are empty."""
CENTRES = [(0, 0), (100, 0), (300, 0), (400, 0)]


@pytest.fixture
def parent(hypothesis_at):
    return hypothesis_at("x", CENTRES, [LABELS[c] for c in NAMES])


@pytest.fixture
def chosen(parent, chosen_with):
    return chosen_with(parent, LABELS, COSTS)


@pytest.fixture
def due(context):
    """Round 1, the second, in which proposals that come every two rounds are due."""
    return context(tuple(NAMES), round=1)


def halves(candidate, clusters):
    names = candidate.association.clients
    return [
        {c for c, label in zip(names, candidate.association.labels, strict=True) if label == k}
        for k in clusters
    ]


def assert_partition(made, chosen):
    """Every client in one cluster, every training feeding at most one, none made up."""
    seen = chosen.association.labels >= 0
    labels = made.association.labels
    assert ((labels >= 0) == seen).all()
    assert (
        labels.max()
        < made.association.num_clusters
        == len(made.origins)
        == made.contribution_weights.shape[1]
    )
    assert set(np.unique(made.contribution_weights)) <= {0.0, 1.0}
    assert (made.contribution_weights.sum(axis=1) <= 1).all()
    assert made.trainings == chosen.trainings
    for training, row in zip(made.trainings, made.contribution_weights, strict=True):
        if row.any():
            assert made.association.label(training.client) == row.argmax()


def test_the_best_divisions_meet_the_cheapest_slots(chosen, trained_at, due):
    made = SplitAndFree().propose(chosen, trained_at(chosen, PLACES), due)
    assert [one.kind for one in made] == ["split"] * 4
    origins = [[i for i, o in enumerate(one.origins) if o != Continue(i)] for one in made]
    assert origins == [[2], [3], [2], [3]]
    assert [one.origins[slot] for one, (slot,) in zip(made, origins, strict=True)] == [
        Continue(0, is_copy=True),
        Continue(0, is_copy=True),
        Continue(1, is_copy=True),
        Continue(1, is_copy=True),
    ]
    for one, (slot,) in zip(made[:2], origins[:2], strict=True):
        assert {frozenset(h) for h in halves(one, (0, slot))} == {
            frozenset("ab"),
            frozenset("cd"),
        }
        assert halves(one, [1]) == [set("efgh")]
    for one, (slot,) in zip(made[2:], origins[2:], strict=True):
        assert {frozenset(h) for h in halves(one, (1, slot))} == {
            frozenset("eg"),
            frozenset("fh"),
        }
    for one in made:
        assert_partition(one, chosen)


def test_slots_are_freed_in_the_order_of_their_price(hypothesis_at, chosen_with, trained_at, due):
    """Three clusters, none empty: to split cluster 0, cluster 2 (price 1) goes before 1 (price 6).

    A cluster is never freed for its own half.
    """
    labels = {**dict.fromkeys("abcd", 0), "e": 1, "f": 1, "g": 2, "h": 2}
    costs = {
        **dict.fromkeys("abcd", (1, 1.1, 1.1)),
        **dict.fromkeys("ef", (9, 1, 4)),
        **dict.fromkeys("gh", (1.5, 8, 1)),
    }
    parent = hypothesis_at("x", CENTRES[:3], [labels[c] for c in NAMES])
    chosen = chosen_with(parent, labels, costs)
    made = SplitAndFree(slots=5).propose(chosen, trained_at(chosen, PLACES), due)
    freed = [next(i for i, o in enumerate(m.origins) if o != Continue(i)) for m in made]
    assert freed == [2, 1]
    assert halves(made[0], [1]) == [set("ef")]
    assert set("gh") <= halves(made[0], [0])[0]
    assert set("efgh") <= halves(made[1], [2])[0]


@pytest.mark.parametrize(("splits", "slots"), [(1, 1), (1, 3), (2, 1), (9, 9)])
def test_as_many_as_asked_for(chosen, trained_at, due, splits, slots):
    one = SplitAndFree(splits=splits, slots=slots, max_cost_ratio=10)
    made = one.propose(chosen, trained_at(chosen, PLACES), due)
    assert len(made) == min(splits, 2) * min(slots, 3)
    assert len({(tuple(m.association.labels), m.origins) for m in made}) == len(made)


def test_an_empty_slot_is_filled_only_by_halves_that_fall_apart(
    hypothesis_at, chosen_with, trained_at, due
):
    """Two halves of four of a line from 1 to 8 explain 1 - 10 / 42 of the variance.

    That is a gain of 8 log 4.2 - log 8 = 9.4 nats.
    """
    parent = hypothesis_at("x", CENTRES[:3], [0] * 8)
    costs = dict.fromkeys(NAMES, (1, 2, 3))
    chosen = chosen_with(parent, dict.fromkeys(NAMES, 0), costs)
    answers = trained_at(chosen, dict(zip(NAMES, range(1, 9), strict=True)))
    assert len(SplitAndFree(min_gain=9.3).propose(chosen, answers, due)) == 2
    assert SplitAndFree(min_gain=9.5).propose(chosen, answers, due) == []


def test_a_slot_with_clients_is_freed_whatever_the_gain(parent, chosen, trained_at, due):
    one = SplitAndFree(min_gain=1e9, slots=4, max_cost_ratio=10)
    made = one.propose(chosen, trained_at(chosen, PLACES), due)
    freed = [next(i for i, o in enumerate(m.origins) if o != Continue(i)) for m in made]
    assert freed == [1, 0]


@pytest.mark.parametrize(
    ("max_cost_ratio", "freed"), [(0.4, []), (1, [0]), (3.9, [0]), (4.1, [1, 0])]
)
def test_what_cannot_be_won_back_is_not_proposed(
    parent, chosen, trained_at, due, max_cost_ratio, freed
):
    """The members of cluster 0 cost 4 and of cluster 1 8 nats; freeing them costs 4 and 16."""
    one = SplitAndFree(min_gain=1e9, max_cost_ratio=max_cost_ratio)
    made = one.propose(chosen, trained_at(chosen, PLACES), due)
    slots = [next(i for i, o in enumerate(m.origins) if o != Continue(i)) for m in made]
    assert slots == freed


def test_a_cost_ratio_of_zero_is_refused():
    with pytest.raises(ValueError, match="max_cost_ratio must be above 0 and finite, got 0"):
        SplitAndFree(max_cost_ratio=0)


@pytest.mark.parametrize("proposal", [SplitAndFree(), Birth(), Death(), Merge()])
def test_only_every_second_round_is_due(proposal, chosen, trained_at, context):
    answers = trained_at(chosen, PLACES)
    due = [bool(proposal.propose(chosen, answers, context(tuple(NAMES), r))) for r in range(6)]
    assert due == [False, True] * 3
    always = replace(proposal, every=1)
    assert all(always.propose(chosen, answers, context(tuple(NAMES), r)) for r in range(3))
    third = replace(proposal, every=3)
    assert [bool(third.propose(chosen, answers, context(tuple(NAMES), r))) for r in range(6)] == [
        False,
        False,
        True,
    ] * 2


def test_a_single_cluster_can_only_bear(hypothesis_at, chosen_with, trained_at, due):
    parent = hypothesis_at("x", CENTRES[:1], [0] * 8)
    chosen = chosen_with(parent, dict.fromkeys(NAMES, 0), dict.fromkeys(NAMES, (1,)))
    answers = trained_at(chosen, PLACES)
    assert SplitAndFree().propose(chosen, answers, due) == []
    assert Death().propose(chosen, answers, due) == []
    assert Merge().propose(chosen, answers, due) == []
    (one,) = Birth().propose(chosen, answers, due)
    assert {frozenset(h) for h in halves(one, (0, 1))} == {frozenset("abcd"), frozenset("efgh")}
    assert (one.kind, one.origins) == ("birth", (Continue(0), Continue(0, is_copy=True)))
    assert_partition(one, chosen)


@pytest.mark.parametrize("proposal", [SplitAndFree(), Birth()])
def test_too_few_trained_members_are_not_split(proposal, chosen, trained_at, due):
    places = {c: PLACES[c] for c in "abcefg"}
    assert proposal.propose(chosen, trained_at(chosen, places), due) == []
    assert proposal.propose(chosen, {}, due) == []
    assert replace(proposal, min_members=3).propose(chosen, trained_at(chosen, places), due)


def test_without_costs_nothing_is_freed_or_taken_away(chosen, trained_at, due):
    free = replace(chosen, costs=None)
    answers = trained_at(chosen, PLACES)
    assert SplitAndFree().propose(free, answers, due) == []
    assert Death().propose(free, answers, due) == []
    assert len(Birth().propose(free, answers, due)) == 2


def test_births_end_at_the_most_clusters(chosen, trained_at, due):
    answers = trained_at(chosen, PLACES)
    assert Birth(max_clusters=4).propose(chosen, answers, due) == []
    made = Birth(max_clusters=5).propose(chosen, answers, due)
    assert [one.association.num_clusters for one in made] == [5, 5]
    assert [one.origins[4] for one in made] == [Continue(i, is_copy=True) for i in range(2)]
    for one in made:
        assert_partition(one, chosen)


def test_the_cheapest_clusters_die_first(chosen, trained_at, due):
    answers = trained_at(chosen, PLACES)
    made = Death(slots=4).propose(chosen, answers, due)
    assert [one.origins for one in made] == [
        tuple(Continue(i) for i in range(4) if i != dead) for dead in (2, 3, 0, 1)
    ]
    assert [halves(one, range(3)) for one in made] == [
        [set("abcd"), set("efgh"), set()],
        [set("abcd"), set("efgh"), set()],
        [set("efgh"), set("abcd"), set()],
        [set(NAMES), set(), set()],
    ]
    for one in made:
        assert_partition(one, chosen)


def test_the_pairs_that_lose_least_are_united_first(chosen, trained_at, due):
    """Clusters 2 and 3 are empty: they cost nothing. Then 0 into 1 costs 4 x 3, not 4 x 4.

    An empty cluster is removed once, with any partner, and no client moves into one.
    """
    answers = trained_at(chosen, PLACES)
    made = Merge(pairs=9).propose(chosen, answers, due)
    assert [one.kind for one in made] == ["merge"] * 3
    gone = [({0, 1, 2, 3} - {o.index for o in one.origins}).pop() for one in made]
    assert gone == [2, 3, 0]
    assert halves(made[2], [0]) == [set(NAMES)]
    assert len(Merge(pairs=2).propose(chosen, answers, due)) == 2
    for one in made:
        assert_partition(one, chosen)


def test_halves_of_absent_clients_stay_where_they_were(parent, chosen_with, trained_at, context):
    chosen = chosen_with(parent, LABELS, COSTS, absent="dg")
    present = tuple("abcefh")
    made = SplitAndFree(min_members=3).propose(
        chosen, trained_at(chosen, PLACES), context(present, round=1)
    )
    assert len(made) == 4
    for one in made:
        assert one.association.label("d") == 0
        assert one.association.label("g") == 1
        assert_partition(one, chosen)


def test_a_half_knows_its_own_members_alone(linear, parent, chosen, trained_at, due):
    """Precision of each half: base 1, and 3 for each of its two members; mean: theirs alone.

    What the whole cluster has learned so far counts for neither, its mean is where both begin.
    """
    answers = trained_at(chosen, PLACES, curvature=3.0)
    (made,) = SplitAndFree(splits=1, slots=1).propose(chosen, answers, due)
    rule = Aggregation(fusion="precision_weighted", memory="replace")
    clusters, _ = rule.combine(linear, parent, made, answers, {}, 1)
    gaussians = [posterior.blocks[0].gaussian for posterior in clusters]
    first, second = sorted((gaussians[0], gaussians[2]), key=lambda g: float(g.mean[0]))
    assert (float(first.mean[0]), float(second.mean[0])) == pytest.approx((0.5, 50.5))
    assert torch.equal(first.precision, torch.full((8,), 7.0, dtype=torch.float64))
    assert torch.equal(second.precision, torch.full((8,), 7.0, dtype=torch.float64))
    assert float(gaussians[1].mean[0]) == pytest.approx((100 + 130 + 102 + 128) / 4)
    assert torch.equal(gaussians[1].precision, torch.full((8,), 13.0, dtype=torch.float64))
    assert clusters[3] is parent.clusters[3]
    assert len({posterior.key for posterior in clusters}) == 4


def test_all_kinds_are_put_together(chosen, trained_at, due):
    answers = trained_at(chosen, PLACES)
    kinds = [
        m.kind for m in all_proposals((Birth(), Death(), SplitAndFree()), chosen, answers, due)
    ]
    assert kinds == ["birth"] * 2 + ["death"] + ["split"] * 4
    assert all_proposals((), chosen, answers, due) == []


@pytest.mark.parametrize(
    ("kind", "name", "value", "least"),
    [
        (SplitAndFree, "every", 0, 1),
        (SplitAndFree, "splits", 0, 1),
        (SplitAndFree, "slots", 0, 1),
        (SplitAndFree, "min_members", 1, 2),
        (Birth, "every", 0, 1),
        (Birth, "splits", 0, 1),
        (Birth, "min_members", 1, 2),
        (Birth, "max_clusters", 0, 1),
        (Death, "every", 0, 1),
        (Death, "slots", 0, 1),
        (Merge, "every", 0, 1),
        (Merge, "pairs", 0, 1),
    ],
)
def test_numbers_out_of_range_are_refused(kind, name, value, least):
    with pytest.raises(ValueError, match=f"{name} must be at least {least}, got {value}"):
        kind(**{name: value})
