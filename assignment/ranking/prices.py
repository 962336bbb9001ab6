"""Prices of cluster membership that bring cluster sizes close to their bounds.

The dual of the bounded problem charges every member of cluster i a price p_i; each client then
chooses alone. One price at a time is set to its best value (coordinate ascent), which costs one
look at all clients however many of them have to move.
"""

import numpy as np

from assignment.arrays import FloatArray, IntArray
from assignment.problem import Bounds

ROUNDS = 6
"""Prices are set at most this many times per cluster."""


def balancing_prices(gaps: FloatArray, bounds: Bounds) -> FloatArray:
    """Prices under which free choice nearly satisfies the bounds.

    Args:
        gaps: costs above each row's minimum in nats, shape (clients, clusters).
        bounds: sizes allowed.

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
    """Sizes that prices call for: full where positive, least where negative, else within bounds."""
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
