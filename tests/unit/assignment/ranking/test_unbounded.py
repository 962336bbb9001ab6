import numpy as np
import pytest
from numpy import inf

import assignment


def test_six_best_of_three_clients():
    ranked = assignment.m_best_assignments([[0, 1, 3], [0, 2, 9], [4, 0, 5]], 6)
    np.testing.assert_array_equal(ranked.cost, [0, 1, 2, 3, 3, 4])
    np.testing.assert_array_equal(ranked.labels[:3], [[0, 0, 1], [1, 0, 1], [0, 1, 1]])


def test_fewer_feasible_than_asked_are_never_padded():
    ranked = assignment.m_best_assignments(np.zeros((2, 2)), 10)
    assert len(ranked) == 4
    np.testing.assert_array_equal(ranked.cost, np.zeros(4))
    assert len(np.unique(ranked.labels, axis=0)) == 4
    assert ranked.log_captured_mass == pytest.approx(0.0, abs=1e-12)


def test_forbidden_pairs_are_never_used():
    ranked = assignment.m_best_assignments([[0, inf], [inf, 1], [2, 3]], 10)
    np.testing.assert_array_equal(ranked.excess, [0, 1])
    np.testing.assert_array_equal(ranked.labels, [[0, 1, 0], [0, 1, 1]])


def test_excess_survives_where_totals_are_equal():
    cost = np.tile([1e5, 1e5 + 1], (10000, 1))
    cost[0, 1] = 1e5 + 1.6e-8
    cost[1, 1] = 1e5 + 3.2e-8
    ranked = assignment.m_best_assignments(cost, 4)
    np.testing.assert_allclose(ranked.excess, [0, 1.6007e-8, 3.2e-8, 4.8007e-8], atol=1e-12)
    assert len(set(ranked.cost.tolist())) == 1


def test_partition_function_and_mass_of_the_best():
    cost = [[0, 1], [0, 0], [2, 0]]
    assert assignment.log_partition(cost) == pytest.approx(1.1333369, abs=5e-8)
    best = assignment.m_best_assignments(cost, 1)
    assert best.log_partition == assignment.log_partition(cost)
    assert np.exp(best.log_captured_mass) == pytest.approx(0.3219571, abs=5e-8)


def test_captured_mass_is_exact_under_a_large_offset():
    cost = np.random.default_rng(0).normal(size=(300, 4))
    near = assignment.m_best_assignments(cost, 50).log_captured_mass
    far = assignment.m_best_assignments(cost + 2.0**20, 50).log_captured_mass
    assert far == pytest.approx(near, abs=1e-6)


def test_the_nth_association_departs_in_few_clients():
    cost = np.random.default_rng(1).normal(size=(500, 6))
    for n, found in enumerate(assignment.m_best_assignments(cost, 300), start=1):
        assert len(found.deviations) <= np.floor(np.log2(n))


def test_ties_prefer_the_lower_cluster_and_results_repeat():
    assert assignment.best_assignment([[1, 1], [2, 1]]).labels.tolist() == [0, 1]
    cost = np.zeros((6, 3))
    first, second = (assignment.m_best_assignments(cost, 100).labels for _ in range(2))
    np.testing.assert_array_equal(first, second)


def test_values_agree_with_each_other():
    cost = np.random.default_rng(2).normal(size=(7, 3))
    ranked = assignment.m_best_assignments(cost, 20)
    lazy = list(assignment.iter_assignments(cost, max_excess=float(ranked.excess[-1])))
    assert len(lazy) == len(ranked)
    for found, one, labels in zip(lazy, ranked, ranked.labels, strict=True):
        np.testing.assert_array_equal(found.labels, labels)
        np.testing.assert_array_equal(one.labels, labels)
        assert found.cost == one.cost == -one.log_weight
        assert found.cost == pytest.approx(cost[np.arange(7), labels].sum())
        assert found.excess == pytest.approx(found.cost - ranked.cost[0])
        assert found.labels.dtype == np.int64
    best = assignment.best_assignment(cost)
    np.testing.assert_array_equal(best.labels, ranked[0].labels)
    assert best.cost == ranked[0].cost


def test_max_excess_limits_the_list():
    ranked = assignment.m_best_assignments([[0, 1, 3], [0, 2, 9]], 100, max_excess=2.5)
    np.testing.assert_array_equal(ranked.excess, [0, 1, 2])


def test_input_is_neither_changed_nor_shared():
    cost = np.random.default_rng(3).normal(size=(5, 3))
    original = cost.copy()
    ranked = assignment.m_best_assignments(cost, 3)
    expected = assignment.m_best_assignments(cost, 3).log_captured_mass
    np.testing.assert_array_equal(cost, original)
    cost += np.arange(15).reshape(5, 3)
    assert ranked.log_captured_mass == expected
    with pytest.raises(ValueError, match="read-only"):
        ranked.labels[0, 0] = 1


def test_one_cluster_has_one_association():
    ranked = assignment.m_best_assignments([[3.0], [4.0]], 5)
    assert ranked.labels.tolist() == [[0, 0]]
    assert ranked.log_captured_mass == 0.0


@pytest.mark.parametrize("m", [0, -1, 1.5, "3"])
def test_bad_counts_are_refused(m):
    with pytest.raises(ValueError, match="m must be"):
        assignment.m_best_assignments([[0, 1]], m)


def test_bad_options_are_refused_before_any_work():
    with pytest.raises(ValueError, match="max_excess"):
        assignment.iter_assignments([[0, 1]], max_excess=-1)
    with pytest.raises(ValueError, match="max_excess"):
        assignment.m_best_assignments([[0, 1]], 1, max_excess=np.nan)
    with pytest.raises(ValueError, match="solver must be one of"):
        assignment.iter_assignments([[0, 1]], solver="simplex")


def test_argmin_finds_the_best_alone():
    ranked = assignment.m_best_assignments([[0, 1], [5, 2]], 3, solver="argmin")
    assert ranked.labels.tolist() == [[0, 1]]


def test_summaries_fit_one_line():
    ranked = assignment.m_best_assignments([[0, 1], [5, 2]], 3)
    assert "3 of 2 clients in 2 clusters" in repr(ranked)
    assert "\n" not in repr(ranked) + repr(ranked[0])
