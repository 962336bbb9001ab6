"""One-to-one associations, ranked by splitting with inherited dual prices.

A part of the solution space, once its best association is returned, is split by client: the n-th
half keeps all clients before the n-th in place and bars the n-th from its column (Murty, 1968;
Lawler, 1972). As in Miller, Stone and Cox (1997) each half takes over the dual prices of the part,
so that reduced costs stay non-negative and its best association is a single least cycle of
exchanges through one client. The least reduced costs of leaving and of entering a column bound its
length, and a half is solved only when no other bound is lower. Free columns are one node together,
so that the work doesn't grow with their number.

Of associations of equal excess the one whose half was split off first comes first; of halves split
off together, the one of the earlier client in the order of `dual_prices`.
"""

from collections.abc import Iterator
from dataclasses import dataclass
from functools import cache
from heapq import heappop, heappush, heapreplace
from importlib.util import find_spec
from itertools import count

import numpy as np

from assignment.arrays import BoolArray, FloatArray, IntArray
from assignment.costs import cost_of
from assignment.problem import Problem
from assignment.ranked import Deviations, Search
from assignment.ranking.compiled import compiled_steps
from assignment.ranking.one_to_one_table import (
    ROUNDING,
    Table,
    cheapest_free,
    dual_prices,
    make_table,
)


@dataclass(frozen=True, eq=False, kw_only=True)
class Part:
    """One-to-one associations that keep some clients in place and bar the next from some columns.

    Clients are in the order of splitting.

    Attributes:
        columns: column of every client in the best of them, int64 of shape (clients,).
        prices: dual prices in nats of these columns and of all free ones, float64 of shape
            (clients + 1,). A client's reduced cost of a column is its cost above that of its own
            one, less the same difference of prices; it is never negative.
        excess: cost of the best of them above the best of all, scaled nats.
        first: clients before this one stay in place.
        barred: columns that client `first` may not have.
    """

    columns: IntArray
    prices: FloatArray
    excess: float
    first: int
    barred: tuple[int, ...]


def hungarian_search(problem: Problem, wanted: int | None = None) -> Search:
    """All one-to-one associations in ascending order.

    Raises:
        ValueError: some cluster may take more than one client.
        InfeasibleError: no one-to-one association is permitted.
    """
    table = make_table(problem)
    return Search(table.best, cost_of(problem.cost, table.best), ascending(table))


def compiled_search(problem: Problem, wanted: int | None = None) -> Search:
    """As `hungarian_search`, to the bit, by code that numba compiles.

    Raises:
        ValueError: some cluster may take more than one client, or numba is not installed.
        InfeasibleError: no one-to-one association is permitted.
    """
    if not numba_is_installed():
        raise ValueError("solver numba needs the package numba: pip install 'bcfl[compiled]'")
    table = make_table(problem)
    return Search(table.best, cost_of(problem.cost, table.best), compiled_steps(table, wanted))


@cache
def numba_is_installed() -> bool:
    """Whether the package that compiles is there; it is imported with the first ranking."""
    return find_spec("numba") is not None


def ascending(table: Table) -> Iterator[tuple[float, Deviations]]:
    """All one-to-one associations in ascending order, lazily, from (0.0, ()) on.

    Args:
        table: the problem.

    Yields:
        Excess over the best in nats, and the (client, cluster) pairs that differ from it.
    """
    yield 0.0, ()
    prices, order = dual_prices(table)
    slack = float(ROUNDING * np.abs(prices).max())
    split = Split(table, order, np.argsort(order), slack)
    # a bound on the excess or, where `found` is solved, the excess; a serial number; part; client
    heap: list[tuple[float, int, Part, int, Part | None]] = []
    serial = count()
    found: Part | None = Part(
        columns=table.best[order], prices=prices, excess=0.0, first=0, barred=()
    )
    while True:
        if found is not None:
            for place, bound in split.bounds(found):
                heappush(heap, (bound, next(serial), found, place, None))
        if not heap:
            return
        _, number, part, place, found = heap[0]
        if found is not None:
            heappop(heap)
            columns = found.columns[split.places]
            moved = np.flatnonzero(columns != table.best)
            excess = float(np.ldexp(found.excess, -table.exponent))
            yield excess, tuple(zip(moved.tolist(), columns[moved].tolist(), strict=True))
        elif (solved := split.best(part, place)) is None:
            heappop(heap)
        else:
            heapreplace(heap, (solved.excess, number, part, place, solved))


@dataclass(frozen=True, eq=False)
class Split:
    """How parts of one problem are split and solved.

    Attributes:
        table: the problem.
        order: clients in the order of splitting, int64 of shape (clients,).
        places: place of every client in that order, int64 of shape (clients,).
        slack: by how much bounds are lowered, since prices are rounded, in scaled nats.
    """

    table: Table
    order: IntArray
    places: IntArray
    slack: float

    def bounds(self, part: Part) -> list[tuple[int, float]]:
        """The clients whose halves of a part may hold associations, and bounds on their excess."""
        table, first = self.table, part.first
        rows, columns, prices = self.order[first:], part.columns[first:], part.prices[first:-1]
        potentials = table.cost[rows, columns] - prices
        reduced = (table.cost[np.ix_(rows, columns)] - potentials[:, None]) - prices
        np.maximum(reduced, 0.0, out=reduced)
        upper = np.tri(len(rows), dtype=bool)
        leaving = np.where(upper, np.inf, reduced)
        leaving[0, np.isin(columns, part.barred)] = np.inf
        leave = leaving.min(axis=1)
        enter = np.where(upper.T, np.inf, reduced).min(axis=0)
        if table.idle:
            dear = cheapest_free(table, part.columns, rows, rows[:0])[1]
            dear[:1] = cheapest_free(table, part.columns, rows[:1], np.array(part.barred, int))[1]
            idle = part.prices[-1]
            leave = np.minimum(leave, np.maximum((dear - potentials) - idle, 0.0))
            entered = np.where(table.required[columns], np.inf, np.maximum(idle - prices, 0.0))
            enter = np.minimum(enter, entered)
        length = leave + enter
        possible = np.flatnonzero(length < np.inf)
        length = length[possible]
        bounds = part.excess + (length - (ROUNDING * length + self.slack))
        return list(
            zip((first + possible).tolist(), np.maximum(part.excess, bounds).tolist(), strict=True)
        )

    def best(self, part: Part, place: int) -> Part | None:
        """The half of a part in which a client leaves its column; None if it has no association."""
        own = int(part.columns[place])
        barred = (own, *part.barred) if part.first == place else (own,)
        cycle = _shortest_cycle(self, part, place, np.array(barred))
        if cycle is None:
            return None
        distances, before, through = cycle
        length = distances[0]
        columns, prices = part.columns.copy(), part.prices.copy()
        prices[place:] -= np.where(distances < length, length - distances, 0.0)
        updated, clients, at = prices.copy(), len(columns), place
        while True:
            previous = int(before[at - place])
            if previous < clients:
                columns[previous] = through if at == clients else part.columns[at]
                prices[previous] = updated[at]
            if previous == place:
                break
            at = previous
        excess = max(part.excess, self._excess(columns[self.places]))
        return Part(columns=columns, prices=prices, excess=excess, first=place, barred=barred)

    def _excess(self, columns: IntArray) -> float:
        table = self.table
        rows = np.flatnonzero(columns != table.best)
        extra = table.cost[rows, columns[rows]] - table.cost[rows, table.best[rows]]
        return float(np.add.accumulate(extra)[-1])


def _shortest_cycle(
    split: Split, part: Part, start: int, barred: IntArray
) -> tuple[FloatArray, IntArray, int] | None:
    """Distances from a client to those after it and back, the places before, the free column."""
    table, clients = split.table, len(part.columns)
    columns, prices = part.columns[start:], part.prices[start:]
    entered = np.maximum(prices[-1] - prices[:-1], 0.0)
    entered[table.required[columns]] = np.inf
    distances = np.full(len(prices), np.inf)
    before = np.empty(len(prices), dtype=np.int64)
    settled: BoolArray = np.zeros(len(prices), dtype=bool)
    place, distance, through = start, 0.0, -1
    reduced = np.full(len(prices), np.inf)
    while True:
        if place == clients:
            reduced[:-1] = entered
            reduced[-1] = np.inf
        else:
            row = split.order[place]
            costs = table.cost[row]
            potential = costs[part.columns[place]] - part.prices[place]
            reduced[:-1] = np.maximum((costs[columns] - potential) - prices[:-1], 0.0)
            if table.idle and not settled[-1]:
                free, dear = cheapest_free(table, part.columns, row[None], barred)
                reduced[-1] = max((dear[0] - potential) - prices[-1], 0.0)
        if place == start:
            reduced[:-1][np.isin(columns, barred)] = np.inf
            barred = barred[:0]
        reached = distance + reduced
        nearer = (reached < distances) & ~settled
        distances[nearer] = reached[nearer]
        before[nearer] = place
        if nearer[-1]:
            through = int(free[0])
        waiting = np.where(settled, np.inf, distances)
        nearest = int(waiting.argmin())
        if waiting[nearest] == np.inf:
            return None
        if nearest == 0:
            return distances, before, through
        settled[nearest] = True
        place, distance = start + nearest, float(waiting[nearest])
