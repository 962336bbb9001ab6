"""One-to-one associations are ranked by their costs, however small these are."""

import itertools
from fractions import Fraction

import numpy as np
import pytest

import assignment


def excesses(costs):
    """All excesses over the best in exact arithmetic, ascending."""
    clients, clusters = costs.shape
    totals = [
        sum(Fraction(costs[client, label]) for client, label in enumerate(labels))
        for labels in itertools.permutations(range(clusters), clients)
    ]
    return [float(total - min(totals)) for total in sorted(totals)]


@pytest.mark.parametrize("solver", ["murty", "auto", "hungarian"])
def test_one_client(solver):
    costs = np.array([[6.5e-303, 3.9e-303, 2.2e-303]])
    ranked = assignment.m_best_assignments(costs, 3, None, 1, solver=solver)
    np.testing.assert_allclose(ranked.excess, excesses(costs), rtol=1e-12, atol=0)


@pytest.mark.parametrize("solver", ["murty", "auto", "hungarian"])
def test_four_clients(solver):
    costs = np.random.default_rng(0).normal(size=(4, 4)) * 1e-305
    ranked = assignment.m_best_assignments(costs, 8, 1, 1, solver=solver)
    right = excesses(costs)[:8]
    np.testing.assert_allclose(ranked.excess, right, rtol=1e-9, atol=1e-14 * right[-1])


@pytest.mark.parametrize("solver", ["murty", "hungarian", "auto"])
def test_four_clients_of_usual_costs(solver):
    costs = np.random.default_rng(0).normal(size=(4, 4))
    ranked = assignment.m_best_assignments(costs, 8, 1, 1, solver=solver)
    np.testing.assert_allclose(ranked.excess, excesses(costs)[:8], rtol=1e-12, atol=1e-14)
