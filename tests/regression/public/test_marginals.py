"""Association marginals against enumeration, where sampling or message passing goes astray.

What a method vouches for, by `converged`, must be right.
"""

import itertools
import math

import numpy as np
import pytest

import assignment

INF = np.inf


def enumerated(cost, lower=0, upper=None):
    """(clients, clusters) probabilities over all feasible associations."""
    clients, clusters = cost.shape
    high = clients if upper is None else upper
    found = np.zeros_like(cost)
    rows = np.arange(clients)
    least = cost.min(axis=1).sum()
    for labels in itertools.product(range(clusters), repeat=clients):
        sizes = np.bincount(labels, minlength=clusters)
        if (sizes >= lower).all() and (sizes <= high).all():
            found[rows, labels] += math.exp(least - cost[rows, labels].sum())
    return found / found.sum(axis=1, keepdims=True)


def cycle(gap):
    """Only the identity and one 3-cycle, of `gap` nats more, are permitted: no swap joins them."""
    return np.array([[0, gap / 3, INF], [INF, 0, gap / 3], [gap / 3, INF, 0]])


PROBLEMS = {
    "cycle": (cycle(2.0), 1, 1),
    "two-cycles": (np.repeat(cycle(3.0), 2, axis=0), 2, 2),
    "large-costs": (np.array([[0, 3], [1, 0], [2, 1.0]]) + 1e5, 0, 2),
    "large-gaps": (np.array([[0, 3e4], [1e4, 0], [2e4, 1e4]]), 0, 2),
    "one-client": (np.array([[0.0, 1, 2]]), 0, 1),
    "forced-sizes": (np.array([[0, 2.0], [0, 1], [0, 0.5], [0, 3]]), 2, 2),
    "ties": (np.zeros((4, 3)), 0, 2),
    "unbounded": (np.array([[0, 2.0], [1, INF], [0, 0.5]]), 0, None),
}


@pytest.mark.parametrize("name", PROBLEMS)
def test_exact_marginals_are_those_of_enumeration(name):
    cost, lower, upper = PROBLEMS[name]
    found = assignment.association_marginals(cost, lower, upper)
    np.testing.assert_allclose(found.probabilities, enumerated(cost, lower, upper), atol=1e-12)
    assert found.converged


@pytest.mark.filterwarnings("ignore::assignment.ForcedSizesWarning")
@pytest.mark.parametrize("method", ["bp", "mcmc"])
@pytest.mark.parametrize("name", ["large-costs", "large-gaps", "one-client", "ties", "unbounded"])
def test_other_methods_are_close(name, method):
    cost, lower, upper = PROBLEMS[name]
    found = assignment.association_marginals(cost, lower, upper, method=method, rng=0)
    tolerance = 0.12 if method == "bp" else 0.02
    np.testing.assert_allclose(found.probabilities, enumerated(cost, lower, upper), atol=tolerance)


@pytest.mark.parametrize("gap", [2.0, 3.0])
def test_sampling_vouches_for_no_part_that_swaps_do_not_leave(gap):
    truth = 1 / (1 + math.exp(-gap))
    for seed in (25, 34, 0, 1, 2):
        found = assignment.association_marginals(cycle(gap), 1, 1, method="mcmc", rng=seed)
        assert not found.converged or abs(found.probabilities[0, 0] - truth) < 0.02
