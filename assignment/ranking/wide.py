"""One-to-one associations of few clients with many columns, by dropping conflicts.

Where columns abound, clients that choose independently rarely choose the same one. Associations are
therefore ranked as if sizes were free, by reduced costs under dual prices, and those that give a
column to two clients are dropped. Summed reduced costs are lower bounds on the excess: prices of
the best association's columns are never above that of free ones.
"""

from bisect import bisect_left
from collections.abc import Generator, Iterator
from functools import reduce
from itertools import chain
from math import inf, ldexp
from operator import add

import numpy as np

from assignment.arrays import FloatArray, IntArray
from assignment.ranked import Deviations
from assignment.ranking.one_to_one_table import Table
from assignment.ranking.unbounded import ascending_free

PAIRS = 5
"""Pairs of clients for each column up to which conflicts may be rare."""

TRIALS = 4
"""Associations of free sizes that are tried for each one found, before the search is given up."""

TIE = 1e-10
"""Excesses tie if nearer than this share of the largest cost, which is more than rounding takes."""


def distinct_steps(
    table: Table, prices: FloatArray
) -> Generator[tuple[float, Deviations], None, int | None]:
    """The first one-to-one associations in ascending order, lazily, while conflicts are rare.

    Args:
        table: the problem.
        prices: dual prices in nats of the clients' columns and of all free ones, float64 of shape
            (clients + 1,).

    Yields:
        Excess over the best in nats, and the (client, cluster) pairs that differ from it, from the
        second best on.

    Returns:
        How many are ranked, the best included, before two tie or conflicts are too many to go on
        (see `TRIALS`); None if there are no others.
    """
    clients, clusters = table.cost.shape
    if clients**2 > PAIRS * clusters or table.required.any():
        return 1
    largest = float(np.max(table.cost, where=np.isfinite(table.cost), initial=-prices.min()))
    ranked, last, tie = 1, 0.0, TIE * largest
    waiting: list[tuple[float, Deviations]] = []
    for trial, (bound, step) in enumerate(chain(_trials(table, prices), [(inf, None)])):
        while waiting and waiting[0][0] + tie < bound:
            last, moves = waiting.pop(0)
            ranked += 1
            yield ldexp(last, -table.exponent), moves
        if trial > TRIALS * (ranked + len(waiting) + 1):
            return ranked
        if step is not None:
            place = bisect_left(waiting, step)
            near = [last, *(excess for excess, _ in waiting[max(0, place - 1) : place + 1])]
            if any(abs(step[0] - excess) <= tie for excess in near):
                return ranked
            waiting.insert(place, step)
    return None


def _trials(
    table: Table, prices: FloatArray
) -> Iterator[tuple[float, tuple[float, Deviations] | None]]:
    """All others of free sizes: bounds on the excess, and excess and moves of those feasible."""
    columns = np.concatenate([table.best[:, None], table.cheapest], axis=1)
    cost = np.take_along_axis(table.cost, columns, axis=1)
    extra, names = (cost - cost[:, :1]).tolist(), columns.tolist()
    owners = {column: client for client, column in enumerate(table.best.tolist())}
    free = ascending_free(_reduced(table, columns, prices))
    next(free)
    for bound, unordered in free:
        places = sorted(unordered)
        moves = {client: names[client][place] for client, place in places}
        if _one_to_one(owners, moves):
            excess = reduce(add, [extra[client][place] for client, place in places])
            yield bound, (excess, tuple(moves.items()))
        else:
            yield bound, None


def _one_to_one(owners: dict[int, int], moves: dict[int, int]) -> bool:
    """Whether no column has two clients after some of them have moved."""
    columns = moves.values()
    return len(set(columns)) == len(moves) and all(
        owners[column] in moves for column in columns if column in owners
    )


def _reduced(table: Table, columns: IntArray, prices: FloatArray) -> FloatArray:
    """Reduced costs of some columns of every client, of which the first is its own."""
    price = np.zeros(table.cost.shape[1])
    price[table.best] = prices[:-1] - prices[-1]
    reduced = np.take_along_axis(table.cost, columns, axis=1) - price[columns]
    reduced -= reduced[:, :1].copy()
    np.maximum(reduced, 0.0, out=reduced)
    reduced[:, 1:][columns[:, 1:] == columns[:, :1]] = np.inf
    return reduced
