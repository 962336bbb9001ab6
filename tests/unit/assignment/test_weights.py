import numpy as np
import pytest

import assignment


def test_normalise_survives_a_large_offset():
    weights = np.exp(assignment.normalise(-1e5 - np.arange(3.0)))
    np.testing.assert_allclose(weights, [0.665241, 0.244728, 0.090031], atol=5e-7)


def test_prune_shares_the_lost_mass_proportionally():
    kept, log_weights = assignment.prune(np.log([0.01, 0.9, 0.09]) + 300.0, 0.05)
    np.testing.assert_array_equal(kept, [1, 2])
    np.testing.assert_allclose(np.exp(log_weights), [0.9 / 0.99, 0.09 / 0.99], rtol=1e-12)


def test_prune_keeps_the_best_whatever_the_threshold():
    kept, log_weights = assignment.prune([0.0, 0.0, 0.1], 0.9)
    assert kept.tolist() == [2]
    assert log_weights.tolist() == [0.0]


def test_prune_at_zero_drops_only_the_weightless():
    kept, _ = assignment.prune([-np.inf, -800.0, 0.0], 0.0)
    assert kept.tolist() == [1, 2]


def test_cap_resolves_ties_by_the_lower_index():
    kept, log_weights = assignment.cap([1.0, 2.0, 1.0, 2.0, 1.0], 3)
    assert kept.tolist() == [0, 1, 3]
    assert np.exp(log_weights).sum() == pytest.approx(1.0)


def test_cap_never_keeps_the_weightless():
    kept, _ = assignment.cap([-np.inf, 0.0, -np.inf], 2)
    assert kept.tolist() == [1]


@pytest.mark.parametrize("count", [1, 4, 50])
def test_effective_number_counts_equal_hypotheses(count):
    assert assignment.effective_number(np.full(count, -1e6)) == pytest.approx(count)


def test_effective_number_of_unequal_hypotheses():
    assert assignment.effective_number(np.log([0.5, 0.25, 0.25])) == pytest.approx(1 / 0.375)
    assert assignment.effective_number([0.0, -1e308, 1e308]) == 1.0


def test_captured_mass_of_everything_is_one():
    log_weights = np.array([-1000.0, -1001.0])
    total = np.logaddexp(*log_weights)
    assert assignment.log_captured_mass(log_weights, total) == pytest.approx(0.0, abs=1e-12)
    expected = np.log(1 / (1 + np.exp(-1)))
    assert assignment.log_captured_mass(log_weights[:1], total) == pytest.approx(expected)


@pytest.mark.parametrize(
    "bad", [[], [np.nan], [np.inf, 0.0], [-np.inf, -np.inf], [[0.0, 1.0]]], ids=str
)
def test_bad_log_weights_are_refused(bad):
    with pytest.raises(ValueError, match="log_weights"):
        assignment.normalise(bad)


def test_bad_numbers_are_refused():
    with pytest.raises(ValueError, match="threshold"):
        assignment.prune([0.0], 1.5)
    with pytest.raises(ValueError, match="m must be at least 1"):
        assignment.cap([0.0], 0)
    with pytest.raises(ValueError, match="log_total"):
        assignment.log_captured_mass([0.0], np.nan)


@pytest.mark.parametrize(
    "call",
    [
        assignment.exact_sum,
        lambda masked: assignment.pseudo_bma_weights(masked[None], np.random.default_rng(0)),
        lambda masked: assignment.m_best_over_parents(np.zeros((2, 2, 2)), masked, 1),
    ],
)
def test_masked_values_are_refused(call):
    with pytest.raises(ValueError, match="must not have a mask"):
        call(np.ma.masked_less([0.0, 1.0], 1.0))
