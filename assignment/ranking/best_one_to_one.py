"""The best one-to-one association, by compiled solvers of the linear assignment problem.

It comes from shortest augmenting paths (Jonker and Volgenant, 1987). `lap` is the faster
implementation, but takes 1e6 for infinity: path costs beyond that silently give wrong results. It
is therefore given only matrices without forbidden pairs, reduced by rows and columns and scaled by
a power of two to stay far below; all others go to scipy.
"""

import lap
import numpy as np

from assignment.arrays import BoolArray, FloatArray, IntArray
from assignment.costs import InfeasibleError


def best_columns(gaps: FloatArray, required: BoolArray) -> IntArray:
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
    from scipy.optimize import linear_sum_assignment

    try:
        return linear_sum_assignment(cost)[1].astype(np.int64, copy=False)
    except ValueError as error:
        raise InfeasibleError("forbidden pairs leave no one-to-one association") from error
