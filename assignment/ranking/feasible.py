"""The best association within bounds on cluster sizes, by successive shortest paths.

Start from every client's cheapest cluster under balancing prices, which is optimal for whatever
sizes come out, and move clients along least-cost paths in the residual graph until all sizes are
allowed; each step keeps the association optimal for its sizes (Ahuja, Magnanti and Orlin, 1993,
section 9.7).
"""

from itertools import pairwise

import numpy as np

from assignment.arrays import FloatArray, IntArray
from assignment.costs import InfeasibleError
from assignment.problem import Bounds
from assignment.ranking.prices import balancing_prices, sizes_within_bounds
from assignment.ranking.residual import (
    client_moves,
    moves_between_clusters,
    path_levels,
    residual_graph,
    shortest_path,
    slack_moves,
)


def best_labels(gaps: FloatArray, bounds: Bounds) -> IntArray:
    """Clusters of the best association within the bounds, int64 of shape (clients,).

    Args:
        gaps: costs above each row's minimum in nats, shape (clients, clusters).
        bounds: sizes allowed.

    Raises:
        InfeasibleError: forbidden pairs leave no association within the bounds.
    """
    prices = balancing_prices(gaps, bounds)
    labels: IntArray = np.argmin(gaps + prices, axis=1).astype(np.int64)
    sizes = np.bincount(labels, minlength=len(prices))
    wanted = sizes_within_bounds(sizes, prices, bounds)
    while (sizes != wanted).any():
        moves = moves_between_clusters(gaps - gaps[np.arange(len(gaps)), labels][:, None], labels)
        levels = path_levels(residual_graph(moves.least, *slack_moves(wanted, bounds)))
        path = shortest_path(levels, *_ends(levels[-1], sizes - wanted))
        for client, cluster in client_moves(moves, path):
            labels[client] = cluster
        _use_slack(wanted, path)
        sizes = np.bincount(labels, minlength=len(prices))
    return labels


def _use_slack(wanted: IntArray, path: list[int]) -> None:
    """Let a cluster keep one client more, or one fewer, where a path runs through the slack."""
    slack = len(wanted)
    for source, target in pairwise(path):
        if target == slack:
            wanted[source] += 1
        elif source == slack:
            wanted[target] -= 1


def _ends(distance: FloatArray, surplus: IntArray) -> tuple[int, int]:
    """The closest pair of a node with too many clients and a node with too few."""
    surplus = np.append(surplus, -surplus.sum())
    sources, targets = np.flatnonzero(surplus > 0), np.flatnonzero(surplus < 0)
    between = distance[np.ix_(sources, targets)]
    nearest = int(np.argmin(between))
    if between.flat[nearest] == np.inf:
        raise InfeasibleError("forbidden pairs leave no association within the cluster sizes")
    source, target = divmod(nearest, len(targets))
    return int(sources[source]), int(targets[target])
