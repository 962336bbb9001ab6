"""The best association within bounds on cluster sizes, by successive shortest paths.

Start from every client's cheapest cluster under balancing prices, which is optimal for whatever
sizes come out, and move clients along least-cost paths in the residual graph until all sizes are
allowed; each step keeps the association optimal for its sizes (Ahuja, Magnanti and Orlin, 1993,
section 9.7).

The prices come from the dual problem, which charges every member of cluster i a price p_i and lets
each client choose alone. One price at a time is set to its best value (coordinate ascent), at the
cost of one pass over all clients however many of them have to move. Where that leaves many to move,
since rows are nearly alike, all prices are set at once: softened choices are balanced by scaling
(Sinkhorn, 1967) while they are hardened (Kosowsky and Yuille, 1994). Clients that tie move along
one path together.
"""

from itertools import pairwise

import numpy as np

from assignment.arrays import FloatArray, IntArray
from assignment.costs import InfeasibleError
from assignment.paths import path_levels
from assignment.problem import Bounds
from assignment.residual import (
    SLACK,
    Moves,
    compact_graph,
    moves_between_clusters,
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
    labels, wanted = _choices(gaps, prices, bounds)
    if _misplaced(labels, wanted) > 2 * len(prices):
        annealed = balancing_prices(gaps, bounds, annealed_prices(gaps, bounds))
        others = _choices(gaps, annealed, bounds)
        if _misplaced(*others) < _misplaced(labels, wanted):
            labels, wanted = others
    while _misplaced(labels, wanted):
        moves = moves_between_clusters(gaps - gaps[np.arange(len(gaps)), labels][:, None], labels)
        surplus = moves.sizes - wanted
        kept = (moves.sizes > 0) | (surplus != 0)
        graph = compact_graph(moves, kept, *slack_moves(wanted, bounds))
        levels = path_levels(graph.costs)
        path = graph.path(levels, *_ends(levels[-1], surplus[graph.nodes]))
        count = _units(moves, path, surplus, wanted, bounds)
        for source, target in pairwise(path):
            if target == SLACK:
                wanted[source] += count
            elif source == SLACK:
                wanted[target] -= count
            else:
                labels[moves.cheapest_clients(source, target)[:count]] = target
    return labels


def _choices(gaps: FloatArray, prices: FloatArray, bounds: Bounds) -> tuple[IntArray, IntArray]:
    """Every client's cheapest cluster at the prices, and sizes that these prices allow."""
    labels: IntArray = np.argmin(gaps + prices, axis=1).astype(np.int64)
    sizes = np.bincount(labels, minlength=len(prices))
    return labels, sizes_within_bounds(sizes, prices, bounds)


def _misplaced(labels: IntArray, wanted: IntArray) -> int:
    """Number of clients that clusters have too many or too few."""
    return int(np.abs(np.bincount(labels, minlength=len(wanted)) - wanted).sum())


def _units(
    moves: Moves, path: list[int], surplus: IntArray, wanted: IntArray, bounds: Bounds
) -> int:
    """How many clients can move along a path at its cost: those that tie on each of its edges."""
    needed = np.append(surplus, -surplus.sum())
    count = min(needed[path[0]], -needed[path[-1]])
    for source, target in pairwise(path):
        if target == SLACK:
            room = bounds.upper[source] - wanted[source]
        elif source == SLACK:
            room = wanted[target] - bounds.lower[target]
        else:
            room = len(moves.cheapest_clients(source, target)) if count > 1 else 1
        count = min(count, room)
    return int(count)


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


def balancing_prices(
    gaps: FloatArray, bounds: Bounds, start: FloatArray | None = None
) -> FloatArray:
    """Prices under which independent choices nearly satisfy the bounds, by coordinate ascent.

    Args:
        gaps: costs above each row's minimum in nats, shape (clients, clusters).
        bounds: bounds on cluster sizes.
        start: prices to start from in nats, shape (clusters,); None is 0.

    Returns:
        Prices in nats, float64 of shape (clusters,): positive only where a cluster is full,
        negative only where it has no more clients than its lower bound.
    """
    prices = np.zeros(gaps.shape[1]) if start is None else start.copy()
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


COOLING = 4.0
"""Factor by which the temperature of softened choices falls."""

SCALINGS = 4
"""Times that prices are adapted at each temperature."""

FROZEN = 1e-4
"""Last temperature, as a share of the median gap."""


def annealed_prices(gaps: FloatArray, bounds: Bounds) -> FloatArray:
    """Prices under which softened choices satisfy the bounds, while they are hardened.

    Args:
        gaps: costs above each row's minimum in nats, shape (clients, clusters).
        bounds: bounds on cluster sizes.

    Returns:
        Prices in nats, float64 of shape (clusters,), with signs as of `balancing_prices`.
    """
    finite = gaps[np.isfinite(gaps)]
    spread = float(finite.max())
    prices = np.zeros(gaps.shape[1])
    if spread == 0.0:
        return prices
    costs = gaps / spread
    with np.errstate(divide="ignore"):
        least, most = np.log(bounds.lower), np.log(bounds.upper)
    last = FROZEN * float(np.median(finite[finite > 0])) / spread
    temperature = 1.0
    while temperature > last:
        for _ in range(SCALINGS):
            scores = (costs + prices) * (-1.0 / temperature)
            scores -= scores.max(axis=1, keepdims=True)
            shares = np.exp(scores, out=scores)
            shares /= shares.sum(axis=1, keepdims=True)
            with np.errstate(divide="ignore"):
                sizes = np.log(np.maximum(shares.sum(axis=0), np.finfo(float).tiny))
            dearer = np.maximum(0.0, prices + temperature * (sizes - most))
            cheaper = np.minimum(0.0, prices + temperature * (sizes - least))
            prices = np.clip(np.where(dearer > 0, dearer, cheaper), -2.0, 2.0)
        temperature /= COOLING
    return prices * spread


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
