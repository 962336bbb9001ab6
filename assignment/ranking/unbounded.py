"""Associations with free cluster sizes: clients are independent, so a heap ranks them all.

The gaps of every client's clusters over its best one are sorted, and so are the clients by their
first gap. A state is a set of deviations whose last one may move to the client's next cluster,
be joined by the next client's first deviation, or be replaced by it; each set is reached once and
never before a cheaper one (Lawler, 1972, for general subset sums). Ties go to fewer deviations, so
the n-th association departs from the best in at most floor(log2(n)) clients.
"""

from collections.abc import Iterator
from heapq import heappop, heappush

import numpy as np

from assignment.arrays import FloatArray, IntArray, frozen
from assignment.costs import cost_of
from assignment.problem import Problem
from assignment.ranked import Deviations, Search


def argmin_search(problem: Problem, wanted: int | None = None) -> Search:
    """The best association alone: every client's cheapest cluster, the lower index on ties."""
    labels = _row_argmin(problem)
    return Search(labels, cost_of(problem.cost, labels), iter([(0.0, ())]))


def heap_search(problem: Problem, wanted: int | None = None) -> Search:
    """All associations of a problem without bounds, in ascending order, by a lazy heap."""
    labels = _row_argmin(problem)
    return Search(labels, cost_of(problem.cost, labels), ascending_free(problem.cost))


def _row_argmin(problem: Problem) -> IntArray:
    if problem.bounds is not None:
        raise ValueError("solvers argmin and heap need free cluster sizes; use murty or hungarian")
    return frozen(problem.cost.argmin(axis=1).astype(np.int64))


def ascending_free(cost: FloatArray) -> Iterator[tuple[float, Deviations]]:
    """All associations of clients that choose independently, lazily, in ascending order.

    Args:
        cost: costs in nats, shape (clients, clusters); +inf forbids a pair.

    Yields:
        Excess over the best in nats, and the (client, cluster) pairs that differ from it.
    """
    yield 0.0, ()
    clients, first_gaps = _clients_by_first_gap(cost)
    if not clients:
        return
    levels: dict[int, tuple[list[float], list[int]]] = {}
    # (excess, deviations, position, level, excess before the last deviation, earlier deviations)
    heap: list[tuple[float, int, int, int, float, Deviations]] = []
    heappush(heap, (first_gaps[0], 1, 0, 1, 0.0, ()))
    while heap:
        excess, count, position, level, before, earlier = heappop(heap)
        if position not in levels:
            levels[position] = _sorted_gaps(cost[clients[position]])
        gaps, clusters = levels[position]
        deviations = (*earlier, (clients[position], clusters[level]))
        yield excess, deviations
        if level + 1 < len(gaps):
            following = before + gaps[level + 1]
            heappush(heap, (following, count, position, level + 1, before, earlier))
        if position + 1 < len(clients):
            gap = first_gaps[position + 1]
            heappush(heap, (excess + gap, count + 1, position + 1, 1, excess, deviations))
            if level == 1:
                heappush(heap, (before + gap, count, position + 1, 1, before, earlier))


def _clients_by_first_gap(cost: FloatArray) -> tuple[list[int], list[float]]:
    """Clients with a second cluster, by the cost of moving there, and that cost in nats."""
    if cost.shape[1] == 1:
        return [], []
    two_best = np.partition(cost, 1, axis=1)[:, :2]
    gaps = two_best[:, 1] - two_best[:, 0]
    order = np.argsort(gaps, kind="stable")
    order = order[np.isfinite(gaps[order])]
    return order.tolist(), gaps[order].tolist()


def _sorted_gaps(row: FloatArray) -> tuple[list[float], list[int]]:
    """Gaps of one client's permitted clusters over its best, ascending, and those clusters."""
    order = np.argsort(row, kind="stable")[: np.count_nonzero(np.isfinite(row))]
    return (row[order] - row[order[0]]).tolist(), order.tolist()
