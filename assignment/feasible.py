"""The best association within bounds on cluster sizes, by successive shortest paths.

Start from every client's cheapest cluster under balancing prices, which is optimal for whatever
sizes come out, and move clients along least-cost paths in the residual graph until all sizes are
allowed; each step keeps the association optimal for its sizes (Ahuja, Magnanti and Orlin, 1993,
section 9.7).

The prices come from the dual problem, which charges every member of cluster i a price p_i and lets
each client choose alone. One price at a time is set to its best value (coordinate ascent), at the
cost of one pass over all clients however many of them have to move.
"""

from itertools import pairwise

import numpy as np

from assignment.arrays import FloatArray, IntArray
from assignment.costs import InfeasibleError
from assignment.problem import Bounds
from assignment.residual import (
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
        bounds: bounds on cluster sizes.

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
    """Change the target size of a cluster by one where a path passes through the slack."""
    slack = len(wanted)
    for source, target in pairwise(path):
        if target == slack:
            wanted[source] += 1
        elif source == slack:
            wanted[target] -= 1


def _ends(distance: FloatArray, surplus: IntArray) -> tuple[int, int]:
    """The nearest pair of a node with surplus clients and a node with a deficit."""
    surplus = np.append(surplus, -surplus.sum())
    sources, targets = np.flatnonzero(surplus > 0), np.flatnonzero(surplus < 0)
    between = distance[np.ix_(sources, targets)]
    nearest = int(np.argmin(between))
    if between.flat[nearest] == np.inf:
        raise InfeasibleError("forbidden pairs leave no association within the cluster sizes")
    source, target = divmod(nearest, len(targets))
    return int(sources[source]), int(targets[target])


ROUNDS = 6
"""Prices are set at most this many times per cluster."""


def balancing_prices(gaps: FloatArray, bounds: Bounds) -> FloatArray:
    """Prices under which independent choices nearly satisfy the bounds.

    Args:
        gaps: costs above each row's minimum in nats, shape (clients, clusters).
        bounds: bounds on cluster sizes.

    Returns:
        Prices in nats, float64 of shape (clusters,): positive only where a cluster is full,
        negative only where it has no more clients than its lower bound.
    """
    prices = np.zeros(gaps.shape[1])
    for _ in range(ROUNDS * len(prices)):
        chosen = np.argmin(gaps + prices, axis=1)
        sizes = np.bincount(chosen, minlength=len(prices))
        surplus = sizes - sizes_within_bounds(sizes, prices, bounds)
        cluster = int(np.argmax(np.abs(surplus)))
        if abs(surplus[cluster]) <= 1:
            break
        price = _best_price(gaps, prices, cluster, bounds)
        if price == prices[cluster]:
            break
        prices[cluster] = price
    return prices


def sizes_within_bounds(sizes: IntArray, prices: FloatArray, bounds: Bounds) -> IntArray:
    """Sizes by complementary slackness: full where prices are positive, least where negative.

    Args:
        sizes: clients per cluster under free choice, int64 of shape (clusters,).
        prices: prices in nats, float64 of shape (clusters,).
        bounds: bounds on cluster sizes.

    Returns:
        int64 of shape (clusters,), within the bounds.
    """
    within = np.clip(sizes, bounds.lower, bounds.upper)
    return np.where(prices > 0, bounds.upper, np.where(prices < 0, bounds.lower, within))


def _best_price(gaps: FloatArray, prices: FloatArray, cluster: int, bounds: Bounds) -> float:
    """The price nearest to zero at which free choice respects this cluster's bounds, in nats."""
    elsewhere = gaps + prices
    elsewhere[:, cluster] = np.inf
    joinable = np.isfinite(gaps[:, cluster])
    # a client joins while the price is below this
    limits = elsewhere[joinable].min(axis=1) - gaps[joinable, cluster]
    limits = np.sort(limits)[::-1]
    joining = int(np.count_nonzero(limits > 0))
    target = int(np.clip(joining, bounds.lower[cluster], bounds.upper[cluster]))
    if target == joining:
        return 0.0
    above = limits[target - 1] if target else np.inf
    below = limits[target] if target < len(limits) else -np.inf
    if below == np.inf:
        return float(prices[cluster])
    if np.isfinite(above) and np.isfinite(below):
        return float((above + below) / 2)
    return float(above - 1.0 if np.isfinite(above) else below + 1.0)
