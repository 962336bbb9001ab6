from dataclasses import replace
from itertools import product

import numpy as np
import pytest

from bcfl.architecture.model import BlockSpec
from bcfl.policies import Continue
from bcfl.trackers.moves import (
    Split,
    cluster_scope_mask,
    explained_share,
    find_splits,
    merge_clusters,
    merge_cost,
    next_best_clusters,
    removal_cost,
    remove_cluster,
    split_cluster,
    with_empty_cluster,
)

LABELS = {"a": 0, "b": 0, "c": 0, "d": 0, "e": 1, "f": 2}
COSTS = {
    "a": (1, 5, 9),
    "b": (1, 5, 9),
    "c": (1, 5, 9),
    "d": (1, 5, 9),
    "e": (7, 3, 4),
    "f": (8, 2.5, 2),
}


@pytest.fixture
def here(context):
    return context(tuple("abcdef"))


@pytest.fixture
def parent(hypothesis_at):
    return hypothesis_at("x", [(0, 0), (10, 0), (20, 0)], [0, 0, 0, 0, 1, 2])


@pytest.fixture
def chosen(parent, chosen_with):
    return chosen_with(parent, LABELS, COSTS)


def labels_of(candidate):
    return dict(
        zip(candidate.association.clients, candidate.association.labels.tolist(), strict=True)
    )


def best_division(points, weights):
    """The division into two non-empty parts of least weighted squared distance to the centres."""

    def within(inside):
        total = 0.0
        for part in (inside, ~inside):
            centre = (weights[part, None] * points[part]).sum(axis=0) / weights[part].sum()
            total += (weights[part] * ((points[part] - centre) ** 2).sum(axis=1)).sum()
        return total

    divisions = [
        np.array((True, *rest))
        for rest in product([True, False], repeat=len(points) - 1)
        if not all(rest)
    ]
    best = min(divisions, key=within)
    centre = (weights[:, None] * points).sum(axis=0) / weights.sum()
    spread = (weights * ((points - centre) ** 2).sum(axis=1)).sum()
    return best, 1 - within(best) / spread


@pytest.mark.parametrize("seed", range(8))
def test_halves_are_the_best_of_all_divisions(parent, chosen_with, trained_at, here, seed):
    random = np.random.default_rng(seed)
    labels = dict.fromkeys("abcdef", 0)
    chosen = chosen_with(parent, labels, COSTS)
    groups = 4.0 * random.permutation([0, 0, 0, 1, 1, seed % 2])
    points = random.normal(size=(6, 2)) + groups[:, None]
    samples = dict(zip("abcdef", map(int, random.integers(1, 30, size=6)), strict=True))
    answers = trained_at(chosen, dict(zip("abcdef", points, strict=True)), samples=samples)
    (found,) = find_splits(chosen, answers, 4, replace(here, seed=seed, round=3))
    weights = np.array([samples[c] for c in "abcdef"], dtype=float)
    inside, explained = best_division(points, weights)
    halves = [
        {c for c, i in zip("abcdef", inside.tolist(), strict=True) if i == b} for b in (True, False)
    ]
    assert found.leaving in halves
    assert found.explained == pytest.approx(explained)
    assert found.cluster == 0


def test_clusters_with_too_few_trained_members_are_left_whole(chosen, trained_at, here):
    places = {"a": 0, "b": 1, "c": 5, "d": 6, "e": 0, "f": 0}
    assert [s.cluster for s in find_splits(chosen, trained_at(chosen, places), 4, here)] == [0]
    assert find_splits(chosen, trained_at(chosen, places), 5, here) == []
    del places["d"]
    assert find_splits(chosen, trained_at(chosen, places), 4, here) == []
    (found,) = find_splits(chosen, trained_at(chosen, places), 3, here)
    assert found.leaving in ({"a", "b"}, {"c"})


def test_equal_models_are_no_division(chosen, trained_at, here):
    places = dict.fromkeys("abcdef", 3.0)
    assert find_splits(chosen, trained_at(chosen, places), 2, here) == []


def test_the_share_explained_by_hand():
    """Points 0, 2 and 10 with weights 1, 1 and 2: mean 5.5; 81 of 83 parts lie between."""
    points, weights = np.array([[0.0], [2.0], [10.0]]), np.array([1.0, 1.0, 2.0])
    total = 5.5**2 + 3.5**2 + 2 * 4.5**2
    between = 2 * 4.5**2 + 2 * 4.5**2
    share = explained_share(points, weights, np.array([1, 1, 0]))
    assert share == pytest.approx(between / total)
    assert explained_share(points[:1], weights[:1], np.array([0])) == 0.0


def test_prices_are_what_members_lose_by_moving_on(chosen, parent, chosen_with):
    assert removal_cost(chosen, 0) == pytest.approx(4 * (5 - 1))
    assert removal_cost(chosen, 1) == pytest.approx(4 - 3)
    assert removal_cost(chosen, 2) == pytest.approx(2.5 - 2)
    empty = chosen_with(parent, {**LABELS, "f": 1}, COSTS)
    assert removal_cost(empty, 2) == 0


def test_without_costs_no_cluster_has_a_price(chosen):
    assert removal_cost(replace(chosen, costs=None), 0) == float("inf")


def test_a_split_frees_a_slot_for_one_half(chosen, parent):
    made = split_cluster(chosen, Split(0, frozenset("cd"), 0.9, 4), 2)
    assert labels_of(made) == {"a": 0, "b": 0, "c": 2, "d": 2, "e": 1, "f": 1}
    assert made.origins == (Continue(0), Continue(1), Continue(0, is_copy=True))
    assert made.contribution_weights.tolist() == [
        [1, 0, 0],
        [1, 0, 0],
        [0, 0, 1],
        [0, 0, 1],
        [0, 1, 0],
        [0, 0, 0],
    ]
    assert made.trainings == chosen.trainings
    assert made.kind == "split"
    assert chosen.contribution_weights[2].tolist() == [1, 0, 0]
    assert labels_of(chosen) == LABELS


def test_absent_members_stay_with_the_half_that_keeps_the_number(parent, chosen_with):
    chosen = chosen_with(parent, LABELS, COSTS, absent="d")
    made = split_cluster(chosen, Split(0, frozenset("c"), 0.9, 4), 1)
    assert labels_of(made) == {"a": 0, "b": 0, "c": 1, "d": 0, "e": 2, "f": 2}
    assert len(made.trainings) == len(made.contribution_weights) == 5


def test_absent_members_of_a_freed_slot_go_to_the_largest_cluster(parent, chosen_with):
    chosen = chosen_with(parent, LABELS, COSTS, absent="f")
    assert next_best_clusters(chosen, 2) == {"f": 0}
    assert next_best_clusters(chosen, 1) == {"e": 2}
    made = split_cluster(chosen, Split(0, frozenset("ab"), 0.9, 4), 2)
    assert labels_of(made) == {"a": 2, "b": 2, "c": 0, "d": 0, "e": 1, "f": 0}


def test_clients_never_seen_stay_unseen(hypothesis_at, chosen_with):
    parent = hypothesis_at("x", [(0, 0), (10, 0)], [0, 0, 1, -1])
    chosen = chosen_with(parent, {"a": 0, "b": 0, "c": 1}, dict.fromkeys("abc", (1, 2)))
    assert labels_of(split_cluster(chosen, Split(0, frozenset("a"), 1.0, 4), 1))["d"] == -1
    assert labels_of(remove_cluster(chosen, 0))["d"] == -1
    assert labels_of(with_empty_cluster(chosen))["d"] == -1


def test_one_more_cluster_is_empty_until_a_half_moves_in(chosen):
    wide = with_empty_cluster(chosen)
    assert wide.contribution_weights.tolist() == [
        [*row, 0] for row in chosen.contribution_weights.tolist()
    ]
    assert len(wide.origins) == wide.association.num_clusters == 4
    assert labels_of(wide) == LABELS
    made = split_cluster(wide, Split(0, frozenset("bd"), 0.9, 4), -1)
    assert labels_of(made) == {**LABELS, "b": 3, "d": 3}
    assert made.origins == (Continue(0), Continue(1), Continue(2), Continue(0, is_copy=True))
    assert made.contribution_weights.sum(axis=0).tolist() == [2, 1, 1, 2]


def test_one_cluster_less_moves_its_members_and_numbers(chosen):
    made = remove_cluster(chosen, 1)
    assert labels_of(made) == {"a": 0, "b": 0, "c": 0, "d": 0, "e": 1, "f": 1}
    assert made.origins == (Continue(0), Continue(2))
    assert made.contribution_weights.tolist() == [[1, 0]] * 4 + [[0, 0], [0, 1]]
    assert made.kind == "death"
    assert labels_of(remove_cluster(chosen, 0)) == {**dict.fromkeys("abcd", 0), "e": 0, "f": 1}


def spherical_log_likelihood(within, count, dimensions):
    """Of points around centres at a distance of `within` in squares, at the best variance, nats."""
    return -0.5 * count * dimensions * (1 + np.log(2 * np.pi * within / (count * dimensions)))


@pytest.mark.parametrize(("explained", "count"), [(0.1, 5), (0.4, 10), (0.8, 20)])
def test_the_gain_is_the_information_criterion_for_each_dimension(explained, count):
    """Two centres and a share cost one mean more: 0.5 log(count) for each of its dimensions."""
    dimensions, spread = 10_000, 3.0
    one, two = (
        spherical_log_likelihood(within, count, dimensions)
        for within in (spread, spread * (1 - explained))
    )
    criterion = 2 * (two - one) - dimensions * np.log(count)
    gain = Split(0, frozenset("a"), explained, count).gain
    assert gain == pytest.approx(criterion / dimensions, rel=1e-9)


def test_the_gain_of_halves_that_are_points_is_infinite():
    assert Split(0, frozenset("a"), 1.0, 4).gain == np.inf


def test_uniting_costs_what_all_members_lose_by_one_move(chosen):
    assert merge_cost(chosen, 0, 1) == pytest.approx(4 * (5 - 1))
    assert merge_cost(chosen, 0, 2) == pytest.approx(4 * (9 - 1))
    assert merge_cost(chosen, 1, 2) == pytest.approx(4 - 3)
    assert merge_cost(chosen, 2, 1) == pytest.approx(2.5 - 2)
    assert merge_cost(replace(chosen, costs=None), 2, 1) == np.inf


def test_prices_are_by_what_judges_and_moves_by_what_associates(chosen):
    """E and f would move by training samples, and lose by held-out ones."""
    judged = np.array([(1, 2, 3)] * 4 + [(9, 1, 20), (9, 50, 30)], dtype=float)
    costs = replace(chosen.costs, judged=judged)
    by = replace(chosen, costs=costs)
    assert removal_cost(by, 1) == pytest.approx(20 - 1)
    assert removal_cost(by, 2) == pytest.approx(50 - 30)
    assert merge_cost(by, 1, 0) == pytest.approx(9 - 1)
    assert next_best_clusters(by, 1) == {"e": 2}


@pytest.mark.parametrize(("gone", "kept", "labels"), [(0, 1, "000001"), (1, 0, "000001")])
def test_united_clusters_stay_together_and_go_on_from_one(chosen, gone, kept, labels):
    made = merge_clusters(chosen, gone, kept)
    assert "".join(str(k) for k in made.association.labels) == labels
    assert made.origins == (Continue(kept), Continue(2))
    own = [1.0 if LABELS[c] == kept else 0.0 for c in "abcdef"]
    assert made.contribution_weights[:, 0].tolist() == own
    assert made.kind == "merge"
    assert labels_of(chosen) == LABELS


def test_members_of_a_united_cluster_do_not_go_to_their_next_best(chosen):
    """All of cluster 0 would rather be in cluster 1."""
    assert set(next_best_clusters(chosen, 0).values()) == {1}
    assert labels_of(merge_clusters(chosen, 0, 2)) == {**dict.fromkeys("abcd", 1), "e": 0, "f": 1}


def test_shared_blocks_do_not_divide_a_cluster(chosen, trained_at, here):
    """Local models differ widely in the first half of their parameters, alike in the second."""
    places = {c: (100.0 * (c in "ac"), 0, 0, 0, 0, 0, 0, c in "ab") for c in "abcdef"}
    answers = trained_at(chosen, places)
    (found,) = find_splits(chosen, answers, 4, here)
    assert found.leaving in (frozenset("ac"), frozenset("bd"))
    blocks = (BlockSpec("s", "global", ("0.weight",)), BlockSpec("own", "cluster", ("0.bias",)))
    divided = replace(here.model, blocks=blocks)
    assert cluster_scope_mask(divided).tolist() == [False] * 6 + [True] * 2
    (found,) = find_splits(chosen, answers, 4, replace(here, model=divided))
    assert found.leaving in (frozenset("ab"), frozenset("cd"))
