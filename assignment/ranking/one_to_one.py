"""One-to-one associations, ranked by splitting with inherited dual prices.

As in Miller, Stone and Cox (1997), a part takes over the dual prices of the part it was split from,
so that all reduced costs stay non-negative and one shortest path updates them. The second best is a
least cycle in the reduced costs; the best exchange of two rows bounds it, and only the few edges
and rows below that bound enter the search. Unused clusters are taken by idle rows, which are never
split on: their permutations are no different associations.

The best one comes from shortest augmenting paths (Jonker and Volgenant, 1987). `lap` is the faster
implementation, but takes 1e6 for infinity: path costs beyond that silently give wrong results. It
is therefore given only matrices without forbidden pairs, reduced by rows and columns and scaled by
a power of two to stay far below; all others go to scipy.
"""

from dataclasses import dataclass
from functools import partial

import lap
import numpy as np
from scipy.optimize import linear_sum_assignment
from scipy.sparse import csr_array
from scipy.sparse.csgraph import dijkstra

from assignment.arrays import FloatArray, IntArray, frozen
from assignment.costs import InfeasibleError, cost_of, row_gaps
from assignment.problem import Bounds, Problem
from assignment.ranked import Search
from assignment.ranking.splitting import Second, ascending

SMALLEST_EDGE = 1e-300
"""Zero reduced costs are raised to this, since a sparse graph takes zero for no edge."""

LARGEST_EXPONENT = 900
"""Costs are searched times a power of two that brings the largest below 2 to this power.

No difference between costs is then as small as `SMALLEST_EDGE`, and no path cost overflows.
"""


@dataclass(frozen=True, eq=False, kw_only=True)
class Part:
    """One-to-one associations that keep some rows in place and bar others from some columns.

    Attributes:
        columns: column of every row in the best of them, int64 of shape (n,).
        row_prices: dual prices in nats, float64 of shape (n,); reduced costs are cost minus both
            prices, never negative, and zero along `columns`.
        column_prices: dual prices in nats, float64 of shape (n,).
        fixed: rows that stay in place.
        barred: rows of the forbidden (row, column) pairs.
        barred_from: their columns, in the same order.
    """

    columns: IntArray
    row_prices: FloatArray
    column_prices: FloatArray
    fixed: tuple[int, ...] = ()
    barred: tuple[int, ...] = ()
    barred_from: tuple[int, ...] = ()


@dataclass(frozen=True, eq=False)
class Square:
    """Data of a search for second-best associations.

    Attributes:
        cost: costs times 2 ** exponent in nats with idle rows appended, float64 of shape (n, n).
        exponent: see `LARGEST_EXPONENT`.
        clients: number of rows that stand for clients.
        best: column of every row in the best association of all, int64 of shape (n,).
    """

    cost: FloatArray
    exponent: int
    clients: int
    best: IntArray


@dataclass(frozen=True, eq=False)
class Cycle:
    """A least cycle of exchanges.

    Attributes:
        rows: rows in order; each takes the column of the next, the last that of the first.
        length: its reduced cost in nats.
        distances: least reduced cost in nats from the first row to each, at most `length`.
    """

    rows: list[int]
    length: float
    distances: FloatArray


def hungarian_search(problem: Problem) -> Search:
    """All one-to-one associations in ascending order.

    Raises:
        ValueError: some cluster may take more than one client.
        InfeasibleError: no one-to-one association is permitted.
    """
    if not problem.one_to_one:
        raise ValueError("solver hungarian needs one-to-one sizes: at most 1 client per cluster")
    gaps = with_idle_rows(row_gaps(problem.cost)[1], problem.bounds)
    columns = one_to_one_columns(gaps)
    labels = frozen(columns[: problem.clients].copy())
    largest = np.frexp(np.max(gaps, where=np.isfinite(gaps), initial=0.0))[1]
    exponent = LARGEST_EXPONENT - int(largest)
    scaled = np.ldexp(gaps, exponent)
    find = partial(_second_best, Square(scaled, exponent, problem.clients, columns))

    def best() -> Part:
        row_prices, column_prices = _dual_prices(scaled, columns)
        return Part(columns=columns, row_prices=row_prices, column_prices=column_prices)

    steps = ascending(best, find, labels)
    return Search(labels, cost_of(problem.cost, labels), steps)


def with_idle_rows(gaps: FloatArray, bounds: Bounds | None) -> FloatArray:
    """Append a row of no cost for every cluster left empty; shape (clusters, clusters).

    Args:
        gaps: costs above each row's minimum in nats, shape (clients, clusters).
        bounds: bounds on cluster sizes, at most one; a cluster that must be filled takes no idle
            row, one that must be empty takes no client.
    """
    clients, clusters = gaps.shape
    square = np.zeros((clusters, clusters))
    square[:clients] = gaps
    if bounds is not None:
        square[:clients, bounds.upper == 0] = np.inf
        square[clients:, bounds.lower == 1] = np.inf
    return square


def _dual_prices(cost: FloatArray, best: IntArray) -> tuple[FloatArray, FloatArray]:
    """Row and column prices that prove `best` optimal, by Bellman and Ford's recursion."""
    matched = cost[np.arange(len(best)), best]
    extra = cost - matched[:, None]
    prices = np.zeros(len(best))
    for _ in range(len(best)):
        lower = np.minimum(prices, (prices[best][:, None] + extra).min(axis=0))
        if np.array_equal(lower, prices):
            break
        prices = lower
    return matched - prices[best], prices


def _second_best(square: Square, part: Part) -> Second[Part] | None:
    cycle = _least_cycle(_exchange_costs(square, part), square.clients)
    if cycle is None:
        return None
    columns = part.columns.copy()
    columns[cycle.rows] = part.columns[[*cycle.rows[1:], cycle.rows[0]]]
    rows = np.flatnonzero(columns != square.best)
    excess = square.cost[rows, columns[rows]] - square.cost[rows, square.best[rows]]
    row = cycle.rows[0]
    return Second(
        columns[: square.clients],
        float(np.ldexp(excess.sum(), -square.exponent)),
        Part(
            columns=part.columns,
            row_prices=part.row_prices,
            column_prices=part.column_prices,
            fixed=(*part.fixed, row),
            barred=part.barred,
            barred_from=part.barred_from,
        ),
        _leaving(part, cycle, columns),
    )


def _leaving(part: Part, cycle: Cycle, columns: IntArray) -> Part:
    """The half in which the cycle's first row leaves its column, with prices that fit it."""
    row, saved = cycle.rows[0], cycle.length - cycle.distances
    column_prices = part.column_prices.copy()
    column_prices[part.columns] -= saved
    column_prices[part.columns[row]] += saved[row]
    return Part(
        columns=columns,
        row_prices=part.row_prices + saved,
        column_prices=column_prices,
        fixed=part.fixed,
        barred=(*part.barred, row),
        barred_from=(*part.barred_from, int(part.columns[row])),
    )


def _exchange_costs(square: Square, part: Part) -> FloatArray:
    """Reduced cost in nats of row i taking row k's column, at [i, k]; shape (n, n)."""
    reduced = square.cost - part.row_prices[:, None]
    reduced -= part.column_prices
    reduced[list(part.barred), list(part.barred_from)] = np.inf
    exchange = reduced[:, part.columns]
    fixed = list(part.fixed)
    exchange[fixed] = np.inf
    exchange[:, fixed] = np.inf
    np.maximum(exchange, SMALLEST_EDGE, out=exchange)
    exchange.flat[:: len(exchange) + 1] = np.inf
    return exchange


def _least_cycle(exchange: FloatArray, clients: int) -> Cycle | None:
    """The least cycle through any client's row."""
    both_ways = (exchange + exchange.T)[:clients]
    bound = float(both_ways.min())
    leave, enter = exchange.min(axis=1), exchange.min(axis=0)
    starts = np.flatnonzero((leave + enter <= bound)[:clients] & np.isfinite(leave[:clients]))
    if not len(starts):
        return None
    rows, targets = np.nonzero((exchange + leave <= bound) & np.isfinite(exchange))
    graph = csr_array((exchange[rows, targets], (rows, targets)), shape=exchange.shape)
    distances, before = dijkstra(graph, indices=starts, limit=bound, return_predecessors=True)
    cycles = distances + exchange[:, starts].T
    nearest, last = divmod(int(np.argmin(cycles)), len(exchange))
    length, start = float(cycles[nearest, last]), int(starts[nearest])
    if length == np.inf:
        return None
    path = [last]
    while path[-1] != start:
        path.append(int(before[nearest, path[-1]]))
    onward = (distances[nearest][:, None] + exchange).min(axis=0)
    reached = np.minimum(np.minimum(distances[nearest], onward), length)
    return Cycle(path[::-1], length, reached)


SMALLEST_FOR_LAP = 30
"""Rows from which `lap` is faster than scipy, its preparation included."""

SAFE_PATH_COST = 1e5
"""Bound on all path costs handed to `lap`, whose own infinity is 1e6."""


def one_to_one_columns(cost: FloatArray) -> IntArray:
    """Column of every row in the least-cost one-to-one association.

    Args:
        cost: costs in nats, shape (n, n); +inf forbids a pair.

    Returns:
        A permutation, int64 of shape (n,).

    Raises:
        InfeasibleError: the forbidden pairs leave no one-to-one association.
    """
    if len(cost) < SMALLEST_FOR_LAP or np.isposinf(cost).any():
        return _scipy_columns(cost)
    return lap_columns(cost)


def lap_columns(cost: FloatArray) -> IntArray:
    """As `one_to_one_columns`, by `lap` on reduced and scaled finite costs."""
    reduced = cost - cost.min(axis=1, keepdims=True)
    reduced -= reduced.min(axis=0)
    longest = float(reduced.max()) * 2.0 * len(cost) ** 2
    if longest > SAFE_PATH_COST or 0.0 < longest < 1.0:
        reduced = np.ldexp(reduced, -int(np.ceil(np.log2(longest / SAFE_PATH_COST))))
    columns, _ = lap.lapjv(np.ascontiguousarray(reduced), return_cost=False)
    return np.asarray(columns, dtype=np.int64)


def _scipy_columns(cost: FloatArray) -> IntArray:
    try:
        return linear_sum_assignment(cost)[1].astype(np.int64)
    except ValueError as error:
        raise InfeasibleError("forbidden pairs leave no one-to-one association") from error
