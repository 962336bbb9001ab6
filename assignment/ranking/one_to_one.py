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
from functools import cache, lru_cache
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
    marked,
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
    table = make_table(problem, wanted)
    return Search(table.best, cost_of(problem.cost, table.best), ascending(table, wanted))


def compiled_search(problem: Problem, wanted: int | None = None) -> Search:
    """As `hungarian_search`, to the bit, by code that numba compiles.

    Raises:
        ValueError: some cluster may take more than one client, or numba is not installed.
        InfeasibleError: no one-to-one association is permitted.
    """
    if not numba_is_installed():
        raise ValueError("solver numba needs the package numba: pip install 'bcfl[compiled]'")
    table = make_table(problem, wanted)
    return Search(table.best, cost_of(problem.cost, table.best), compiled_steps(table, wanted))


@cache
def numba_is_installed() -> bool:
    """Whether the package that compiles is there; it is imported with the first ranking."""
    return find_spec("numba") is not None


def ascending(table: Table, wanted: int | None = None) -> Iterator[tuple[float, Deviations]]:
    """All one-to-one associations in ascending order, lazily, from (0.0, ()) on.

    Args:
        table: the problem.
        wanted: how many will be asked for, if known; those beyond may be left out.

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
    whole = Part(columns=table.best[order], prices=prices, excess=0.0, first=0, barred=())
    found: Part | None = whole
    limit, least = split.exchange_limit(whole, wanted), [0.0]  # the least excesses, negated
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
        elif (solved := split.best(part, place, limit)) is None:
            heappop(heap)
        else:
            heappush(least, -solved.excess)
            if wanted is not None and len(least) > wanted:
                heappop(least)
                limit = min(limit, -least[0])
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
        reduced = self._reduced(part)
        onward = _later_minima(reduced)  # at [l, p]: from l to any place after p
        inward = _later_minima(reduced.T)  # at [l, p]: to l from any place after p
        leave, enter = onward.diagonal()[:, None], inward.diagonal()[:, None]
        leaving = reduced + np.minimum(reduced.T, onward.T + enter)
        entering = reduced.T + np.minimum(reduced, leave + inward.T)
        leaving[_until(len(reduced))] = np.inf
        entering[_until(len(reduced))] = np.inf
        lengths = np.maximum(leaving.min(axis=1), entering.min(axis=1))[:-1]
        possible = np.flatnonzero(lengths < np.inf)
        length = lengths[possible]
        bounds = part.excess + (length - (ROUNDING * length + self.slack))
        places = (part.first + possible).tolist()
        return list(zip(places, np.maximum(part.excess, bounds).tolist(), strict=True))

    def _reduced(self, part: Part) -> FloatArray:
        """Reduced cost of client l taking client k's column, at [l, k]; free columns are last."""
        table, rows = self.table, self.order[part.first :]
        columns, prices = part.columns[part.first :], part.prices[part.first :]
        potentials = table.cost[rows, columns] - prices[:-1]
        reduced = np.full((len(prices), len(prices)), np.inf)
        taken = table.cost[rows[:, None], columns]
        reduced[:-1, :-1] = (taken - potentials[:, None]) - prices[:-1]
        if part.barred:
            reduced[0, :-1][marked(table, np.array(part.barred))[columns]] = np.inf
        if table.idle:
            dear = cheapest_free(table, part.columns, rows, rows[:0])[1]
            if part.barred:
                barred = np.array(part.barred)
                dear[:1] = cheapest_free(table, part.columns, rows[:1], barred)[1]
            reduced[:-1, -1] = (dear - potentials) - prices[-1]
            reduced[-1, :-1] = np.where(table.required[columns], np.inf, prices[-1] - prices[:-1])
        np.fill_diagonal(reduced, np.inf)
        np.maximum(reduced, 0.0, out=reduced)
        return reduced

    def exchange_limit(self, whole: Part, wanted: int | None) -> float:
        """An excess within which there are as many associations as wanted: exchanges of columns."""
        if wanted is None or wanted < 2:
            return np.inf
        reduced = self._reduced(whole)
        lengths = (reduced + reduced.T)[~_until(len(reduced))]
        if len(lengths) < wanted - 1:
            return np.inf
        return float(np.partition(lengths, wanted - 2)[wanted - 2]) * (1.0 + ROUNDING) + self.slack

    def best(self, part: Part, place: int, limit: float) -> Part | None:
        """The half of a part in which a client leaves its column, with its best association.

        None if it holds no association, or none of excess up to the limit.
        """
        own = int(part.columns[place])
        barred = (own, *part.barred) if part.first == place else (own,)
        longest = (limit - part.excess) * (1.0 + ROUNDING) + self.slack
        cycle = _shortest_cycle(self, part, place, np.array(barred), longest)
        if cycle is None:
            return None
        columns, prices, clients = part.columns.copy(), part.prices.copy(), len(part.columns)
        prices[place + 1 :] -= np.maximum(cycle.radius - cycle.distances, 0.0)
        prices[place] += cycle.length - cycle.radius
        updated, at, previous = prices.copy(), place, cycle.last
        while True:
            if previous < clients:
                columns[previous] = cycle.free if at == clients else part.columns[at]
                prices[previous] = updated[at]
            if previous == place:
                break
            at, previous = previous, int(cycle.before[previous - place - 1])
        excess = max(part.excess, self._excess(columns[self.places]))
        return Part(columns=columns, prices=prices, excess=excess, first=place, barred=barred)

    def _excess(self, columns: IntArray) -> float:
        table = self.table
        rows = np.flatnonzero(columns != table.best)
        extra = table.cost[rows, columns[rows]] - table.cost[rows, table.best[rows]]
        return float(np.add.accumulate(extra)[-1])


@dataclass(frozen=True, eq=False)
class Cycle:
    """A least cycle of exchanges through a client; places count from the one after it.

    Attributes:
        length: its reduced cost.
        radius: distance up to which distances are final.
        distances: least reduced cost from the client to each later one and, last, to free columns.
        before: place from which each is reached.
        last: place from which the cycle returns to the client.
        free: the free column that is taken, if the cycle goes there.
    """

    length: float
    radius: float
    distances: FloatArray
    before: IntArray
    last: int
    free: int


def _later_minima(values: FloatArray) -> FloatArray:
    """At [l, p], the least of row l's values after place p, float64 of the shape of `values`."""
    minima = np.full_like(values, np.inf)
    minima[:, :-1] = np.minimum.accumulate(values[:, :0:-1], axis=1)[:, ::-1]
    return minima


@lru_cache(maxsize=256)
def _until(places: int) -> BoolArray:
    """Whether a column is no later than the row, bool of shape (places, places)."""
    return np.tri(places, dtype=bool)


def _shortest_cycle(
    split: Split, part: Part, start: int, barred: IntArray, longest: float
) -> Cycle | None:
    """The least cycle through a client and those after it, by Dijkstra's algorithm.

    It ends when what is nearest cannot enter the client's column at less than is known.
    """
    back = _returns(split, part, start)
    enter, length, last, free = float(back.min()), np.inf, -1, -1
    distances, waiting = np.full(len(back), np.inf), np.full(len(back), np.inf)
    before = np.empty(len(back), dtype=np.int64)
    place, distance = start, 0.0
    while True:
        reduced, column = _reduced_row(split, part, start, place, barred)
        reached = distance + reduced
        nearer = reached < distances
        distances[nearer] = waiting[nearer] = reached[nearer]
        before[nearer] = place
        free = column if nearer[-1] else free
        nearest = int(waiting.argmin())
        distance = float(waiting[nearest])
        if distance + enter >= length or distance + enter > longest or distance == np.inf:
            break
        waiting[nearest], place = np.inf, start + 1 + nearest
        if distance + back[nearest] < length:
            length, last = distance + float(back[nearest]), place
    if length > longest or length == np.inf:
        return None
    return Cycle(length, min(distance, length), distances, before, last, free)


def _returns(split: Split, part: Part, start: int) -> FloatArray:
    """Reduced costs of entering a client's column, of those after it and, last, of free columns."""
    table, prices, own = split.table, part.prices, part.columns[start]
    later, columns = split.order[start + 1 :], part.columns[start + 1 :]
    back = np.full(len(later) + 1, np.inf)
    back[:-1] = table.cost[later, own] - (table.cost[later, columns] - prices[start + 1 : -1])
    if table.idle and not table.required[own]:
        back[-1] = prices[-1]
    back -= prices[start]
    np.maximum(back, 0.0, out=back)
    return back


def _reduced_row(
    split: Split, part: Part, start: int, place: int, barred: IntArray
) -> tuple[FloatArray, int]:
    """Reduced costs of one place for those after `start` and free columns; the cheapest of these.

    The columns in `barred` are so for `start` alone; its own is the first.
    """
    table, columns, prices = split.table, part.columns[start + 1 :], part.prices[start + 1 :]
    reduced, free = np.full(len(prices), np.inf), -1
    if place == len(part.columns):
        reduced[:-1] = np.where(table.required[columns], np.inf, prices[-1] - prices[:-1])
        return np.maximum(reduced, 0.0), free
    costs = table.cost[split.order[place]]
    potential = costs[part.columns[place]] - part.prices[place]
    reduced[:-1] = (costs[columns] - potential) - prices[:-1]
    barred = barred if place == start else barred[:1]
    if len(barred) > 1:
        reduced[:-1][marked(table, barred)[columns]] = np.inf
    if table.idle:
        found, dear = cheapest_free(table, part.columns, split.order[place, None], barred)
        reduced[-1], free = (dear[0] - potential) - prices[-1], int(found[0])
    return np.maximum(reduced, 0.0), free
