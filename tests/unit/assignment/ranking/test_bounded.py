import numpy as np
import pytest
from numpy import inf

import assignment
from assignment.paths import path_levels, shortest_path

FOUR = np.array([[0, 1], [0, 2], [0, 4], [0, 8]])


def test_upper_bounds_exclude_the_crowded_association():
    ranked = assignment.m_best_assignments(FOUR, 100, upper=[3, 3])
    np.testing.assert_array_equal(ranked.cost, np.arange(1, 15))
    expected = [[1, 0, 0, 0], [0, 1, 0, 0], [1, 1, 0, 0], [0, 0, 1, 0]]
    np.testing.assert_array_equal(ranked.labels[:4], expected)


def test_fixed_sizes():
    ranked = assignment.m_best_assignments(FOUR, 3, lower=[2, 2], upper=[2, 2])
    np.testing.assert_array_equal(ranked.cost, [3, 5, 6])
    np.testing.assert_array_equal(ranked.labels, [[1, 1, 0, 0], [1, 0, 1, 0], [0, 1, 1, 0]])


@pytest.mark.parametrize("solver", ["auto", "murty"])
def test_one_integer_bounds_every_cluster(solver):
    ranked = assignment.m_best_assignments(FOUR, 3, lower=2, upper=2, solver=solver)
    np.testing.assert_array_equal(ranked.cost, [3, 5, 6])


@pytest.mark.parametrize(
    ("cost", "lower", "upper"),
    [
        ([[0, inf], [0, inf]], None, [1, 2]),
        ([[0, 1], [0, 1], [0, 1]], None, 1),
        ([[0, 1]], 1, None),
        ([[0, inf], [0, 1]], [0, 2], None),
        ([[0, inf, 1], [0, inf, 1], [inf, 1, inf]], None, [1, 3, 0]),
        ([[0, 1, inf], [0, 1, inf], [0, 1, inf], [inf, inf, 0]], [1, 1, 1], [1, 1, 2]),
    ],
)
def test_infeasible_bounds_have_their_own_error(cost, lower, upper):
    for call in (
        assignment.best_assignment,
        assignment.iter_assignments,
        assignment.association_marginals,
    ):
        with pytest.raises(assignment.InfeasibleError):
            call(cost, lower=lower, upper=upper)


@pytest.mark.parametrize(
    ("lower", "upper", "message"),
    [
        (-1, None, "lower must not be negative"),
        (None, [1.5, 2.0], "upper must hold integers"),
        (None, [1, 2, 3], r"upper must be one integer or have shape \(2,\)"),
        ([3, 0], [2, 4], "lower 3 exceeds upper 2, cluster 0"),
        ("two", None, "lower must hold integers"),
    ],
)
def test_bad_bounds_are_refused(lower, upper, message):
    with pytest.raises(ValueError, match=message) as caught:
        assignment.m_best_assignments(FOUR, 1, lower, upper)
    assert not isinstance(caught.value, assignment.InfeasibleError)


def test_bounds_that_exclude_nothing_cost_nothing():
    free = assignment.m_best_assignments(FOUR, 5)
    loose = assignment.m_best_assignments(FOUR, 5, lower=0, upper=4)
    assert loose.problem.bounds is None
    np.testing.assert_array_equal(free.labels, loose.labels)


@pytest.mark.parametrize("solver", ["argmin", "heap", "hungarian"])
def test_solvers_refuse_bounds_they_cannot_keep(solver):
    with pytest.raises(ValueError, match=f"{solver}"):
        assignment.m_best_assignments(FOUR, 1, upper=2, solver=solver)


def test_excess_is_exact_under_a_large_offset():
    ranked = assignment.m_best_assignments(FOUR * 2.0**-20 + 2.0**20, 14, upper=3)
    np.testing.assert_allclose(ranked.excess, np.arange(14) * 2.0**-20, rtol=1e-12)


def test_bounded_partition_function_and_captured_mass():
    cost = [[0, 1], [0, 0], [2, 0]]
    assert assignment.log_partition(cost, upper=2) == pytest.approx(0.9565835, abs=5e-8)
    ranked = assignment.m_best_assignments(cost, 100, upper=[2, 2])
    assert len(ranked) == 6
    assert ranked.log_captured_mass == pytest.approx(0.0, abs=1e-12)


def test_captured_mass_is_unknown_beyond_the_state_budget():
    cost = np.random.default_rng(0).normal(size=(120, 8))
    assert np.isnan(assignment.m_best_assignments(cost, 3, upper=40).log_captured_mass)
    with pytest.raises(assignment.StateBudgetError, match="budget"):
        assignment.log_partition(cost, upper=40)


def test_parents_keep_the_bounds():
    costs = np.stack([FOUR, FOUR + [[0, 1]] * 4])
    found = assignment.m_best_over_parents(costs, [0.0, 0.5], 4, lower=2, upper=2)
    np.testing.assert_allclose(found.log_weight, [-3, -4.5, -5, -6])
    assert found.parent.tolist() == [0, 1, 0, 0]
    assert (found.labels.sum(axis=1) == 2).all()


def test_a_path_through_cycles_of_no_cost_ends():
    graph = np.full((6, 6), inf)
    np.fill_diagonal(graph, 0.0)
    graph[:5, :5] = 0.0
    graph[4, 5] = 1.0
    path = shortest_path(path_levels(graph), 0, 5)
    assert path[0] == 0
    assert path[-2:] == [4, 5]
    assert len(set(path)) == len(path)


@pytest.mark.parametrize("clients", [300, 3000])
def test_large_skewed_problems_reach_their_bounds(clients):
    """A cluster's price certifies the optimum: no swap of two clients lowers the cost."""
    rng = np.random.default_rng(clients)
    cost = rng.normal(size=(clients, 6)) + 2.0 * np.arange(6)
    labels = assignment.best_assignment(cost, clients // 8, clients // 5 + 1).labels
    sizes = np.bincount(labels, minlength=6)
    assert sizes.min() >= clients // 8
    assert sizes.max() <= clients // 5 + 1
    extra = cost - cost[np.arange(clients), labels][:, None]
    least = np.stack([extra[labels == cluster].min(axis=0) for cluster in range(6)])
    for grown in range(6):
        for shrunk in range(6):
            one_way = least[shrunk, grown]
            assert one_way + least[grown, shrunk] >= -1e-9
            if sizes[shrunk] > clients // 8 and sizes[grown] < clients // 5 + 1:
                assert one_way >= -1e-9
