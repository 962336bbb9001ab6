"""One-to-one associations, ranked by splitting with inherited dual prices.

As in Miller, Stone and Cox (1997), a part takes over the dual prices of the part it was split from,
so that all reduced costs stay non-negative and one shortest path updates them. The second best is a
least cycle in the reduced costs; the best exchange of two rows bounds it, and only the few edges
and rows below that bound enter the search. Unused clusters are held by one idle row together, so
that the work grows with clients times clusters, and not with the cube of the clusters.
"""

from dataclasses import dataclass
from functools import cache, partial
from importlib.util import find_spec

import numpy as np
from scipy.sparse import csr_array
from scipy.sparse.csgraph import dijkstra

from assignment.arrays import FloatArray, IntArray
from assignment.costs import cost_of
from assignment.problem import Problem
from assignment.ranked import Search
from assignment.ranking.compiled import compiled_steps
from assignment.ranking.one_to_one_table import (
    SMALLEST_EDGE,
    Table,
    dual_prices,
    exchanges,
    make_table,
)
from assignment.ranking.splitting import Second, ascending


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
    table = make_table(problem)

    def best() -> Part:
        row_prices, column_prices = dual_prices(table)
        return Part(columns=table.best, row_prices=row_prices, column_prices=column_prices)

    steps = ascending(best, partial(_second_best, table), table.best)
    return Search(table.best, cost_of(problem.cost, table.best), steps)


def compiled_search(problem: Problem) -> Search:
    """As `hungarian_search`, to the bit, by code that numba compiles.

    Raises:
        ValueError: some cluster may take more than one client, or numba is not installed.
        InfeasibleError: no one-to-one association is permitted.
    """
    if not numba_is_installed():
        raise ValueError("solver numba needs the package numba: pip install 'bcfl[compiled]'")
    table = make_table(problem)
    return Search(table.best, cost_of(problem.cost, table.best), compiled_steps(table))


@cache
def numba_is_installed() -> bool:
    """Whether the package that compiles is there; it is imported with the first ranking."""
    return find_spec("numba") is not None


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
        float(np.ldexp(np.add.accumulate(excess)[-1], -table.exponent)),
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
    exchange = exchanges(table, reduced, part.columns)
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
    edges = np.where(exchange + leave <= bound, exchange, np.inf)
    distances = _distances(edges, starts, bound)
    cycles = distances + exchange[:, starts].T
    nearest, last = divmod(int(np.argmin(cycles)), len(exchange))
    length, start = float(cycles[nearest, last]), int(starts[nearest])
    if length == np.inf:
        return None
    path = [last]
    while path[-1] != start:  # of predecessors that tie, the first
        path.append(int((distances[nearest] + edges[:, path[-1]]).argmin()))
    onward = (distances[nearest][:, None] + exchange).min(axis=0)
    reached = np.minimum(np.minimum(distances[nearest], onward), length)
    return Cycle(path[::-1], length, reached)


FEW_ROWS = 16
"""Rows up to which dense tables are faster than a sparse graph."""


def _distances(edges: FloatArray, starts: IntArray, bound: float) -> FloatArray:
    """Least path costs from some rows, +inf beyond a bound, float64 of shape (starts, rows)."""
    if len(edges) > FEW_ROWS:
        rows, targets = np.nonzero(np.isfinite(edges))
        graph = csr_array((edges[rows, targets], (rows, targets)), shape=edges.shape)
        distances: FloatArray = dijkstra(graph, indices=starts, limit=bound)
        return distances
    distances = edges[starts]
    distances[np.arange(len(starts)), starts] = 0.0
    while True:
        shorter = np.minimum(distances, (distances[:, :, None] + edges).min(axis=1))
        if np.array_equal(shorter, distances):
            return np.where(distances <= bound, distances, np.inf)
        distances = shorter
