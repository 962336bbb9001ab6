"""Least cycles of exchanges among the clients of a one-to-one association."""

from dataclasses import dataclass

import numpy as np

from assignment.arrays import FloatArray, IntArray
from assignment.ranking.one_to_one_table import Table, cheapest_free, marked


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


def shortest_cycle(
    table: Table, order: IntArray, part: Part, start: int, barred: IntArray, longest: float
) -> Cycle | None:
    """The least cycle through a client and those after it, by Dijkstra's algorithm.

    It ends when what is nearest cannot enter the client's column at less than is known.

    Args:
        table: the problem.
        order: clients in the order of splitting, int64 of shape (clients,).
        part: the associations; clients before `start` stay in place.
        start: place of the client in that order.
        barred: columns that it may not have, its own first, int64.
        longest: largest reduced cost, in scaled nats.

    Returns:
        None where no cycle is permitted, or none is as short.
    """
    back = _returns(table, order, part, start)
    enter, length, last, free = float(back.min()), np.inf, -1, -1
    distances, waiting = np.full(len(back), np.inf), np.full(len(back), np.inf)
    before = np.empty(len(back), dtype=np.int64)
    place, distance = start, 0.0
    while True:
        reduced, column = _reduced_row(table, order, part, start, place, barred)
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


def _returns(table: Table, order: IntArray, part: Part, start: int) -> FloatArray:
    """Reduced costs of entering a client's column, of those after it and, last, of free columns."""
    prices, own = part.prices, part.columns[start]
    later, columns = order[start + 1 :], part.columns[start + 1 :]
    back = np.full(len(later) + 1, np.inf)
    back[:-1] = table.cost[later, own] - (table.cost[later, columns] - prices[start + 1 : -1])
    if table.idle and not table.required[own]:
        back[-1] = prices[-1]
    back -= prices[start]
    np.maximum(back, 0.0, out=back)
    return back


def _reduced_row(
    table: Table, order: IntArray, part: Part, start: int, place: int, barred: IntArray
) -> tuple[FloatArray, int]:
    """Reduced costs of one place for those after `start` and free columns; the cheapest of these.

    The columns in `barred` are so for `start` alone; its own is the first.
    """
    columns, prices = part.columns[start + 1 :], part.prices[start + 1 :]
    reduced, free = np.full(len(prices), np.inf), -1
    if place == len(part.columns):
        reduced[:-1] = np.where(table.required[columns], np.inf, prices[-1] - prices[:-1])
        return np.maximum(reduced, 0.0), free
    costs = table.cost[order[place]]
    potential = costs[part.columns[place]] - part.prices[place]
    reduced[:-1] = (costs[columns] - potential) - prices[:-1]
    barred = barred if place == start else barred[:1]
    if len(barred) > 1:
        reduced[:-1][marked(table, barred)[columns]] = np.inf
    if table.idle:
        found, dear = cheapest_free(table, part.columns, order[place, None], barred)
        reduced[-1], free = (dear[0] - potential) - prices[-1], int(found[0])
    return np.maximum(reduced, 0.0), free
