from numpy import inf

import assignment


def counted(costs, read):
    """A ranking whose items are noted in `read` as they are looked at."""
    for cost in costs:
        read.append(cost)
        yield cost, f"item {cost}"


def test_rankings_of_any_origin_are_merged_in_ascending_order():
    merged = assignment.merge_rankings([[(1.0, "b"), (4.0, "e")], [], [(0.5, "a"), (1.0, "c")]])
    assert list(merged) == [(0.5, 2, "a"), (1.0, 0, "b"), (1.0, 2, "c"), (4.0, 0, "e")]


def test_a_ranking_is_opened_when_its_least_cost_is_reached_and_read_no_further():
    first, second, never = [], [], []
    merged = assignment.merge_rankings(
        [counted([0.0, 3.0], first), counted([2.0, 9.0], second), counted([5.0], never)],
        [0.0, 1.0, inf],
    )
    assert next(merged) == (0.0, 0, "item 0.0")
    assert (first, second) == ([0.0], [])
    assert next(merged) == (2.0, 1, "item 2.0")
    assert (first, second) == ([0.0, 3.0], [2.0])
    assert [cost for cost, _, _ in merged] == [3.0, 9.0]
    assert never == []


def test_merging_stops_beyond_an_excess_over_the_first():
    rankings = [[(2.0, "a"), (4.5, "c")], [(4.0, "b"), (8.0, "d")]]
    found = assignment.merge_rankings(rankings, max_excess=2.5)
    assert [item for _, _, item in found] == ["a", "b", "c"]
    assert list(assignment.merge_rankings([], max_excess=1.0)) == []
