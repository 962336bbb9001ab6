"""Where clusters outnumber clients, memory grows with clients x clusters, not with clusters^2."""

import itertools
import tracemalloc

import numpy as np

import assignment

CLIENTS, CLUSTERS = 4, 600


def peak_bytes(costs, most):
    tracemalloc.start()
    try:
        assignment.m_best_assignments(costs, most, None, 1)
        return tracemalloc.get_traced_memory()[1]
    finally:
        tracemalloc.stop()


def test_memory_of_one_to_one_problems():
    costs = np.random.default_rng(0).normal(size=(CLIENTS, CLUSTERS))
    assignment.m_best_assignments(costs[:, :5], 2, None, 1)  # imports
    assert peak_bytes(costs, 2) < 30 * costs.nbytes


def test_only_the_cheapest_clusters_matter():
    costs = np.random.default_rng(1).normal(size=(3, 40))
    ranked = assignment.m_best_assignments(costs, 10, None, 1)
    totals = sorted(
        sum(costs[client, cluster] for client, cluster in enumerate(labels))
        for labels in itertools.permutations(range(40), 3)
    )
    np.testing.assert_allclose(ranked.cost, totals[:10], rtol=1e-12)
