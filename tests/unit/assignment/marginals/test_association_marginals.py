import numpy as np
import pytest
from numpy import inf

import assignment
from assignment.counts import number_of_states
from assignment.problem import make_problem

COST = np.array([[0, 1], [0, 0], [2, 0]])


def test_free_sizes_have_a_closed_form():
    found = assignment.association_marginals(COST)
    assert found.log_partition == pytest.approx(1.1333369, abs=5e-8)
    assert found.entropy == pytest.approx(1.6406841, abs=5e-8)
    together = found.co_association()
    assert together[0, 1] == pytest.approx(0.5)
    assert together[0, 2] == pytest.approx(0.3240271, abs=5e-8)
    np.testing.assert_array_equal(np.diag(together), 1.0)
    assert found.converged
    assert found.effective_sample_size == inf


def test_bounded_sizes_by_counting():
    found = assignment.association_marginals(COST, upper=[2, 2])
    assert found.log_partition == pytest.approx(0.9565835, abs=5e-8)
    expected = [0.8204028, 0.5446721, 0.0902530]
    np.testing.assert_allclose(found.probabilities[:, 0], expected, atol=5e-8)
    product = found.probabilities @ found.probabilities.T
    assert abs(found.co_association()[0, 2] - product[0, 2]) > 0.01


@pytest.mark.parametrize("bounds", [{}, {"lower": 3, "upper": 5}], ids=["free", "bounded"])
def test_samples_follow_the_probabilities(bounds):
    cost = np.random.default_rng(0).normal(size=(8, 2))
    found = assignment.association_marginals(cost, **bounds)
    draws = found.sample(np.random.default_rng(1), 20_000)
    assert draws.shape == (20_000, 8)
    np.testing.assert_allclose((draws == 0).mean(axis=0), found.probabilities[:, 0], atol=0.015)
    together = (draws[:, :, None] == draws[:, None, :]).mean(axis=0)
    np.testing.assert_allclose(together, found.co_association(), atol=0.015)
    np.testing.assert_array_equal(found.sample(7, 5), found.sample(7, 5))
    assert found.sample(7, 0).shape == (0, 8)


@pytest.mark.parametrize("bounds", [{}, {"upper": 2}], ids=["free", "bounded"])
def test_forbidden_pairs_have_no_probability(bounds):
    found = assignment.association_marginals([[0, inf], [inf, 1], [2, 3]], **bounds)
    assert found.probabilities[0, 1] == 0.0
    assert found.probabilities[1, 0] == 0.0
    assert np.isfinite(found.entropy)
    assert not (found.sample(0, 50)[:, 0] == 1).any()


def test_one_cluster_is_certain():
    found = assignment.association_marginals([[3.0], [4.0]], lower=2)
    np.testing.assert_array_equal(found.probabilities, [[1.0], [1.0]])
    assert found.log_partition == -7.0
    np.testing.assert_array_equal(found.sample(0, 2), np.zeros((2, 2)))


def test_the_state_budget_is_stated_and_kept():
    cost = np.zeros((10, 3))
    bounds = make_problem(cost, upper=[4, 5, 6]).bounds
    assert number_of_states(10, bounds) == 11 * 5 * 6
    with pytest.raises(assignment.StateBudgetError, match="330 states"):
        assignment.association_marginals(cost, upper=[4, 5, 6], max_states=329)
    found = assignment.association_marginals(cost, upper=[4, 5, 6], max_states=330)
    assert found.probabilities.sum() == pytest.approx(10.0)


def test_clusters_that_can_take_no_client_cost_nothing_and_have_no_probability():
    """However many they are: arrays have at most 64 axes."""
    cost, open_clusters = np.full((4, 70), inf), [5, 20, 69]
    cost[:, open_clusters] = np.random.default_rng(0).normal(size=(4, 3))
    few = assignment.association_marginals(cost[:, open_clusters], upper=2)
    found = assignment.association_marginals(cost, upper=2)
    np.testing.assert_array_equal(found.probabilities[:, open_clusters], few.probabilities)
    assert found.probabilities.sum() == pytest.approx(4.0)
    assert found.log_partition == few.log_partition
    assert found.entropy == pytest.approx(few.entropy)
    np.testing.assert_array_equal(found.co_association(), few.co_association())
    np.testing.assert_array_equal(found.sample(0, 20), np.take(open_clusters, few.sample(0, 20)))
    ranked = assignment.m_best_assignments(cost, 5, upper=2)
    expected = assignment.m_best_assignments(cost[:, open_clusters], 5, upper=2)
    assert ranked.log_captured_mass == expected.log_captured_mass


def test_hopeless_rare_events_stay_exact():
    """All clients prefer cluster 0 by a margin no float64 weight could express."""
    cost = np.column_stack([np.zeros(4), [2000.0, 2001.0, 2002.0, 2003.0]])
    found = assignment.association_marginals(cost, upper=[3, 4])
    expected = np.exp(-np.arange(4.0))
    np.testing.assert_allclose(found.probabilities[:, 1], expected / expected.sum(), rtol=1e-9)


@pytest.mark.parametrize("method", ["EXACT", "gibbs", ""])
def test_unknown_methods_are_refused(method):
    with pytest.raises(ValueError, match="method must be one of exact, bp, mcmc"):
        assignment.association_marginals(COST, method=method)


def test_bad_sample_counts_are_refused():
    with pytest.raises(ValueError, match="n must be at least 0"):
        assignment.association_marginals(COST).sample(0, -1)


def test_summary_fits_one_line():
    assert "\n" not in repr(assignment.association_marginals(COST))
