"""One-to-one associations, ranked by splitting with inherited dual prices.

As in Miller, Stone and Cox (1997), a part takes over the dual prices of the part it was split from,
so that all reduced costs stay non-negative and one shortest path updates them. The second best is a
least cycle in the reduced costs; the best exchange of two rows bounds it, and only the few edges
and rows below that bound enter the search. Unused clusters are held by one idle row together, so
that the work grows with clients times clusters, and not with the cube of the clusters.

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

from assignment.arrays import BoolArray, FloatArray, IntArray, frozen
from assignment.costs import InfeasibleError, cost_of, row_gaps
from assignment.problem import Problem
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
        columns: column of every client in the best of them, int64 of shape (clients,).
        row_prices: dual prices in nats, float64 of shape (clients,), or (clients + 1,) with that of
            the idle row; reduced costs are cost minus both prices, never negative, and zero along
            `columns` and where the idle row holds a column.
        column_prices: dual prices in nats, float64 of shape (columns,).
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


@dataclass(frozen=True, eq=False, kw_only=True)
class Table:
    """Data of a search for second-best associations.

    Attributes:
        cost: costs times 2 ** exponent in nats, float64 of shape (clients, columns).
        exponent: see `LARGEST_EXPONENT`.
        best: column of every client in the best association of all, int64 of shape (clients,).
        required: columns that must be filled, bool of shape (columns,).
    """

    cost: FloatArray
    exponent: int
    best: IntArray
    required: BoolArray

    @property
    def idle(self) -> bool:
        """Whether some columns are left empty."""
        return self.cost.shape[1] > len(self.cost)

    def free(self, columns: IntArray) -> BoolArray:
        """Columns that no client has, bool of shape (columns,).

        Args:
            columns: column of every client, int64 of shape (clients,).
        """
        unused = np.ones(self.cost.shape[1], dtype=bool)
        unused[columns] = False
        return unused


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
    gaps, bounds = row_gaps(problem.cost)[1], problem.bounds
    required = np.zeros(problem.clusters, dtype=bool)
    if bounds is not None:
        gaps, required = np.where(bounds.upper == 0, np.inf, gaps), bounds.lower == 1
    columns = frozen(_best_columns(gaps, required))
    largest = np.frexp(np.max(gaps, where=np.isfinite(gaps), initial=0.0))[1]
    exponent = LARGEST_EXPONENT - int(largest)
    table = Table(cost=np.ldexp(gaps, exponent), exponent=exponent, best=columns, required=required)

    def best() -> Part:
        row_prices, column_prices = _dual_prices(table)
        return Part(columns=columns, row_prices=row_prices, column_prices=column_prices)

    steps = ascending(best, partial(_second_best, table), columns)
    return Search(columns, cost_of(problem.cost, columns), steps)


def _best_columns(gaps: FloatArray, required: BoolArray) -> IntArray:
    """Column of every client in the best association, int64 of shape (clients,).

    Args:
        gaps: costs above each row's minimum in nats, shape (clients, columns).
        required: columns that must be filled, bool of shape (columns,).

    Raises:
        InfeasibleError: no one-to-one association is permitted.
    """
    clients, clusters = gaps.shape
    if not required.any():
        return one_to_one_columns(gaps)
    idle = np.where(required, np.inf, np.zeros((clusters - clients, clusters)))
    return one_to_one_columns(np.concatenate([gaps, idle]))[:clients]


def _dual_prices(table: Table) -> tuple[FloatArray, FloatArray]:
    """Row and column prices that prove the best optimal, by Bellman and Ford's recursion."""
    matched = table.cost[np.arange(len(table.best)), table.best]
    unused = table.free(table.best)
    extra = _exchanges(table, table.cost, table.best)
    extra[: len(matched)] -= matched[:, None]
    prices = np.zeros(len(extra))
    for _ in range(len(extra)):
        lower = np.minimum(prices, (prices[:, None] + extra).min(axis=0))
        if np.array_equal(lower, prices):
            break
        prices = lower
    column_prices = np.zeros(len(unused))
    column_prices[table.best] = prices[: len(matched)]
    if not table.idle:
        return matched - prices, column_prices
    column_prices[unused] = prices[-1]
    return np.append(matched - prices[:-1], -prices[-1]), column_prices


def _exchanges(table: Table, costs: FloatArray, columns: IntArray) -> FloatArray:
    """Cost in nats of row i taking row k's column, at [i, k]; the idle row, if any, is the last.

    Args:
        table: the problem.
        costs: costs of clients and columns, shape (clients, columns).
        columns: column of every client, int64 of shape (clients,).
    """
    if not table.idle:
        return costs[:, columns]
    clients = len(columns)
    exchange = np.empty((clients + 1, clients + 1))
    exchange[:clients, :clients] = costs[:, columns]
    exchange[:clients, clients] = costs[:, table.free(columns)].min(axis=1)
    exchange[clients, :clients] = np.where(table.required[columns], np.inf, 0.0)
    exchange[clients, clients] = np.inf
    return exchange


def _second_best(table: Table, part: Part) -> Second[Part] | None:
    reduced = _reduced_costs(table, part)
    clients = len(part.columns)
    cycle = _least_cycle(_reduced_exchanges(table, part, reduced), clients)
    if cycle is None:
        return None
    columns = part.columns.copy()
    for row, following in zip(cycle.rows, [*cycle.rows[1:], cycle.rows[0]], strict=True):
        if following == clients:
            unused = table.free(part.columns).nonzero()[0]
            columns[row] = unused[reduced[row, unused].argmin()]
        elif row < clients:
            columns[row] = part.columns[following]
    rows = np.flatnonzero(columns != table.best)
    excess = table.cost[rows, columns[rows]] - table.cost[rows, table.best[rows]]
    row = cycle.rows[0]
    return Second(
        columns,
        float(np.ldexp(excess.sum(), -table.exponent)),
        Part(
            columns=part.columns,
            row_prices=part.row_prices,
            column_prices=part.column_prices,
            fixed=(*part.fixed, row),
            barred=part.barred,
            barred_from=part.barred_from,
        ),
        _leaving(table, part, cycle, columns),
    )


def _leaving(table: Table, part: Part, cycle: Cycle, columns: IntArray) -> Part:
    """The half in which the cycle's first row leaves its column, with prices that fit it."""
    row, saved = cycle.rows[0], cycle.length - cycle.distances
    clients = len(part.columns)
    column_prices = part.column_prices.copy()
    column_prices[part.columns] -= saved[:clients]
    if table.idle:
        column_prices[table.free(part.columns)] -= saved[clients]
    column_prices[part.columns[row]] += saved[row]
    return Part(
        columns=columns,
        row_prices=part.row_prices + saved,
        column_prices=column_prices,
        fixed=part.fixed,
        barred=(*part.barred, row),
        barred_from=(*part.barred_from, int(part.columns[row])),
    )


def _reduced_costs(table: Table, part: Part) -> FloatArray:
    """Cost minus both prices in nats, +inf where barred, shape (clients, columns)."""
    reduced = table.cost - part.row_prices[: len(part.columns), None]
    reduced -= part.column_prices
    reduced[list(part.barred), list(part.barred_from)] = np.inf
    return reduced


def _reduced_exchanges(table: Table, part: Part, reduced: FloatArray) -> FloatArray:
    """Reduced cost in nats of row i taking row k's column, at [i, k]; see `_exchanges`."""
    exchange = _exchanges(table, reduced, part.columns)
    if table.idle:
        exchange[-1, :-1] -= part.row_prices[-1] + part.column_prices[part.columns]
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
        cost: costs in nats, shape (rows, columns) with no more rows than columns; +inf forbids a
            pair.

    Returns:
        Different columns, int64 of shape (rows,).

    Raises:
        InfeasibleError: the forbidden pairs leave no one-to-one association.
    """
    rows, columns = cost.shape
    if rows < SMALLEST_FOR_LAP or rows != columns or np.isposinf(cost).any():
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
