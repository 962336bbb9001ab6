"""Weights come from differences: a number added to all losses of a client changes nothing."""

from dataclasses import replace

import numpy as np
import pytest

import assignment

OFFSETS = (-1e6, -1e9, -1e12, -1e14, -1e16, -1e20, -1e300)


def weights_of(log_weights):
    """Weights by the differences from the largest, which are exact for numbers this close."""
    return np.exp(log_weights - log_weights.max()) / np.exp(log_weights - log_weights.max()).sum()


@pytest.mark.parametrize("offset", OFFSETS)
def test_normalised_weights_sum_to_one(offset):
    log_weights = np.array([0.0, -1.0, -2.0]) + offset
    weights = np.exp(assignment.normalise(log_weights))
    np.testing.assert_allclose(weights, weights_of(log_weights), rtol=1e-14)
    assert weights.sum() == pytest.approx(1.0, abs=1e-14)


@pytest.mark.parametrize("offset", OFFSETS)
def test_equal_weights_count_in_full(offset):
    assert assignment.effective_number(np.full(4, offset)) == pytest.approx(4.0, rel=1e-14)


def shifted(by, rounded=False):
    """Add a number to every reported loss, or only round as that addition does."""

    def change(answer):
        if not isinstance(answer, dict):
            return answer
        moved = {key: score.total + by for key, score in answer.items()}
        return {
            key: replace(score, total=moved[key] - by if rounded else moved[key])
            for key, score in answer.items()
        }

    return change


@pytest.fixture
def outcome(build_method, make_clients, run_tampered):
    def of(name, change):
        fixed = {"belief_temperature": 1.0} if name == "bcfl-race-3" else {}
        recipe = build_method(name, num_clusters=2, temperature=1.0, **fixed)
        hypotheses, _ = run_tampered(make_clients(12), recipe, change, rounds=2)
        return hypotheses

    return of


@pytest.mark.parametrize("offset", [1e12, 1e15, 1e20, 1e29])
@pytest.mark.parametrize("name", ["bcfl-mh-4", "bcfl-mht-4", "bcfl-c-4", "bcfl-race-3"])
def test_one_client_shifts_all_its_losses(outcome, name, offset):
    got, right = outcome(name, shifted(offset)), outcome(name, shifted(offset, rounded=True))
    assert got.weights.sum() == pytest.approx(1.0, abs=1e-12)
    np.testing.assert_allclose(got.weights, right.weights, rtol=1e-9)
    assert got.effective_number == pytest.approx(right.effective_number, rel=1e-9)
    np.testing.assert_allclose(got.association_probabilities().sum(axis=1), 1.0, rtol=1e-12)
    assert got.log_captured_mass == pytest.approx(right.log_captured_mass, abs=1e-9, nan_ok=True)
