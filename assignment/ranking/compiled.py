"""The ranking of `assignment.ranking.one_to_one` by compiled code, where numba is installed."""

from collections.abc import Iterator

import numpy as np

from assignment.arrays import BoolArray, FloatArray, IntArray
from assignment.ranked import Deviations
from assignment.ranking.one_to_one_table import Table

FIRST_CHUNK, GROWTH = 16, 8
"""Associations ranked the first time, and by how many times as many each time after that."""


def compiled_steps(table: Table, wanted: int | None = None) -> Iterator[tuple[float, Deviations]]:
    """All one-to-one associations in ascending order, lazily, from (0.0, ()) on.

    Args:
        table: the problem.
        wanted: how many will be asked for, if known.

    Yields:
        Excess over the best in nats, and the (client, cluster) pairs that differ from it.
    """
    yield 0.0, ()
    done, chunk = 1, min(wanted or FIRST_CHUNK, FIRST_CHUNK * GROWTH**3)
    while True:
        columns, excesses = ranked_columns(table, chunk)
        ranks, clients = np.nonzero(columns[done:] != table.best)
        pairs = list(zip(clients.tolist(), columns[done + ranks, clients].tolist(), strict=True))
        ends = np.cumsum(np.bincount(ranks, minlength=len(columns) - done)).tolist()
        begin = 0
        for excess, end in zip(excesses[done:].tolist(), ends, strict=True):
            yield excess, tuple(pairs[begin:end])
            begin = end
        if len(columns) < chunk:
            return
        done, chunk = chunk, chunk * GROWTH


def ranked_columns(table: Table, count: int) -> tuple[IntArray, FloatArray]:
    """Columns of the best associations, int64 of shape (m, clients), and their excess in nats.

    Args:
        table: the problem.
        count: how many; fewer are returned where fewer are feasible.
    """
    columns = np.empty((1, count, len(table.best)), dtype=np.int64)
    excess = np.empty((1, count))
    found = rank_problems(
        table.cost[None],
        table.required[None],
        table.best[None],
        table.cheapest[None],
        (columns, excess),
    )
    return columns[0, : found[0]], np.ldexp(excess[0, : found[0]], -table.exponent)


def rank_problems(
    cost: FloatArray,
    required: BoolArray,
    best: IntArray,
    cheapest: IntArray,
    ranked: tuple[IntArray, FloatArray],
) -> IntArray:
    """Rank the associations of several problems of one shape.

    The first axis of every array tells the problems apart; see `Table` for the others.

    Args:
        cost: float64 of shape (problems, clients, columns).
        required: bool of shape (problems, columns).
        best: int64 of shape (problems, clients).
        cheapest: int64 of shape (problems, clients, columns or 0).
        ranked: where the columns of every client and the excess in scaled nats go, int64 of shape
            (problems, m, clients) and float64 of shape (problems, m).

    Returns:
        How many each problem has, at most m, int64 of shape (problems,).
    """
    from assignment.ranking.ranking_kernels import rank_all  # imports numba

    # numba compiles anew for read-only arrays, so that all are made writable
    found: IntArray = rank_all(
        *(np.require(array, requirements=["C", "W"]) for array in (cost, required, best, cheapest)),
        *ranked,
    )
    return found
