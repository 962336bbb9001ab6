"""The best one-to-one association, by Jonker and Volgenant's (1987) shortest augmenting paths.

`lap` is the faster implementation, but takes 1e6 for infinity: path costs beyond that silently give
wrong results. It is therefore given only matrices without forbidden pairs, reduced by rows and
columns and scaled by a power of two to stay far below; all others go to scipy.
"""

import lap
import numpy as np
from scipy.optimize import linear_sum_assignment

from assignment.arrays import FloatArray, IntArray
from assignment.costs import InfeasibleError

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
    """As `one_to_one_columns`, by `lap` on reduced and scaled costs, all of which are finite."""
    reduced = cost - cost.min(axis=1, keepdims=True)
    reduced -= reduced.min(axis=0)
    longest = float(reduced.max()) * 2.0 * len(cost) ** 2
    if longest > SAFE_PATH_COST:
        reduced = np.ldexp(reduced, -int(np.ceil(np.log2(longest / SAFE_PATH_COST))))
    columns, _ = lap.lapjv(np.ascontiguousarray(reduced), return_cost=False)
    return np.asarray(columns, dtype=np.int64)


def _scipy_columns(cost: FloatArray) -> IntArray:
    try:
        return linear_sum_assignment(cost)[1].astype(np.int64)
    except ValueError as error:
        raise InfeasibleError("forbidden pairs leave no one-to-one association") from error
