"""The ranking of `assignment.ranking.one_to_one` by compiled code, where numba is installed."""

from collections.abc import Iterator
from typing import Any

import numpy as np

from assignment.ranked import Deviations
from assignment.ranking.one_to_one_table import Table, dual_prices

FIRST_CHUNK, LARGEST_CHUNK = 16, 4096
"""Associations ranked at a time: the first time, and at most."""


def compiled_steps(table: Table) -> Iterator[tuple[float, Deviations]]:
    """All one-to-one associations in ascending order, lazily, from (0.0, ()) on.

    Args:
        table: the problem.

    Yields:
        Excess over the best in nats, and the (client, cluster) pairs that differ from it.
    """
    yield 0.0, ()
    from assignment.ranking.kernels import advance  # imports numba

    row_prices, column_prices = dual_prices(table)
    chunk, first = FIRST_CHUNK, True
    state = _grown(None, table, 2 * chunk + 2)
    state["columns"][0], state["column_prices"][0] = table.best, column_prices
    state["row_prices"][0] = row_prices
    popped = range(chunk)
    while len(popped) == chunk:
        parts = tuple(state.values())
        popped = advance(table.cost, table.required, table.exponent, parts, chunk, first).tolist()
        columns = state["columns"][popped]
        ranks, clients = np.nonzero(columns != table.best)
        pairs = list(zip(clients.tolist(), columns[ranks, clients].tolist(), strict=True))
        ends = np.cumsum(np.bincount(ranks, minlength=len(popped))).tolist()
        begin = 0
        for excess, end in zip(state["excess"][popped].tolist(), ends, strict=True):
            yield excess, tuple(pairs[begin:end])
            begin = end
        if len(popped) == chunk:
            chunk, first = min(2 * chunk, LARGEST_CHUNK), False
            popped = range(chunk)
            state = _grown(state, table, int(state["counts"][0]) + 2 * chunk + 2)


def _grown(state: dict[str, Any] | None, table: Table, capacity: int) -> dict[str, Any]:
    """The arrays of `assignment.ranking.kernels.advance` with room for more parts."""
    clients, clusters = table.cost.shape
    shapes = {
        "columns": (np.int64, (capacity, clients)),
        "row_prices": (np.float64, (capacity, clients + table.idle)),
        "column_prices": (np.float64, (capacity, clusters)),
        "excess": (np.float64, (capacity,)),
        "origins": (np.int64, (capacity, 4)),
        "links": (np.int64, (2 * capacity, 3)),
        "heap": (np.int64, (capacity,)),
    }
    grown: dict[str, Any] = {}
    for name, (dtype, shape) in shapes.items():
        grown[name] = np.empty(shape, dtype=dtype)
        if state is not None:
            grown[name][: len(state[name])] = state[name]
    grown["counts"] = np.array([1, 0, 0]) if state is None else state["counts"]
    return grown
