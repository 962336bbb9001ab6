"""Sampled marginals claim to have converged only where they are near the exact ones."""

import itertools

import numpy as np
import pytest

import assignment


def cyclic(gap, barrier):
    """Two associations, one step of three clients apart; all others cost a barrier or more."""
    return np.array([[0, gap / 3, barrier], [barrier, 0, gap / 3], [gap / 3, barrier, 0]])


def exact(costs):
    weights = {
        labels: np.exp(-sum(costs[client, label] for client, label in enumerate(labels)))
        for labels in itertools.permutations(range(3))
    }
    staying = sum(weight for labels, weight in weights.items() if labels[0] == 0)
    return staying / sum(weights.values())


@pytest.mark.parametrize(("gap", "barrier"), [(2.0, np.inf), (3.0, np.inf), (2.0, 40.0)])
@pytest.mark.parametrize("seed", [25, 34])
def test_converged_is_right(gap, barrier, seed):
    costs = cyclic(gap, barrier)
    sampled = assignment.association_marginals(costs, 1, 1, method="mcmc", rng=seed)
    if sampled.converged:
        assert sampled.probabilities[0, 0] == pytest.approx(exact(costs), abs=0.03)
