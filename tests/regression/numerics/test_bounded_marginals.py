"""Exact marginals within bounds keep their digits where the bounds force one client far off."""

import itertools
from fractions import Fraction

import numpy as np
import pytest

import assignment

UPPER = np.array([1, 4, 4])


def forced(gap):
    """Clients 0 and 1 both want cluster 0, which has room for one; 2 and 3 choose freely."""
    return np.array([[0, gap, gap + 2], [0, gap, gap], [5, 0, 1.0], [5, 0.5, 0]])


def enumerated(costs, most):
    """Marginals and log captured mass of the best, from exact sums over all associations."""
    clients, clusters = costs.shape
    every = [
        (sum(Fraction(costs[client, label]) for client, label in enumerate(labels)), labels)
        for labels in itertools.product(range(clusters), repeat=clients)
        if (np.bincount(labels, minlength=clusters) <= UPPER).all()
    ]
    best = min(cost for cost, _ in every)
    weights = np.array([np.exp(-float(cost - best)) for cost, _ in every])
    probabilities = np.zeros(costs.shape)
    for weight, (_, labels) in zip(weights, every, strict=True):
        probabilities[np.arange(clients), labels] += weight / weights.sum()
    return probabilities, np.log(np.sort(weights)[::-1][:most].sum() / weights.sum())


GAPS = [1e3, 1e5, 1e9, 1e12, 1e14, 1e16]


@pytest.mark.parametrize("gap", GAPS)
def test_exact_marginals(gap):
    marginals = assignment.association_marginals(forced(gap), None, UPPER)
    right, _ = enumerated(forced(gap), 2)
    np.testing.assert_allclose(marginals.probabilities, right, rtol=1e-11, atol=1e-11)


@pytest.mark.parametrize("gap", GAPS)
def test_captured_mass(gap):
    ranked = assignment.m_best_assignments(forced(gap), 2, None, UPPER)
    _, right = enumerated(forced(gap), 2)
    assert ranked.log_captured_mass == pytest.approx(right, rel=1e-11)


@pytest.mark.parametrize("gap", [1e9, 1e12])
def test_belief_propagation_says_how_far_it_is(gap):
    """What it gives for a smaller gap, where the forced choice is already certain."""
    near = assignment.association_marginals(forced(1e3), None, UPPER, method="bp")
    far = assignment.association_marginals(forced(gap), None, UPPER, method="bp")
    assert near.converged
    if far.converged:
        np.testing.assert_allclose(far.probabilities, near.probabilities, atol=1e-6)
