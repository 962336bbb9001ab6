"""Cost matrices: negative log weights of clients in clusters, in nats."""

from __future__ import annotations

import numpy as np
import numpy.typing as npt

from assignment.arrays import FloatArray, IntArray, refuse_mask


def gate(cost: npt.ArrayLike, max_excess: float) -> FloatArray:
    """Forbid every client the clusters whose cost exceeds its best by more than a threshold.

    A client's best cluster always stays. With bounded cluster sizes a tight gate can leave no
    feasible association.

    Args:
        cost: costs in nats, shape (clients, clusters).
        max_excess: largest cost above a client's best that is kept, in nats, at least 0.

    Returns:
        A copy of the costs, float64 of shape (clients, clusters), with +inf at gated pairs.

    Raises:
        ValueError: bad costs (see `assignment.validate_costs`) or a threshold that is negative or
            NaN.
        InfeasibleError: a client may join no cluster before gating.
    """
    limit = validate_excess(max_excess)
    matrix = validate_costs(cost)
    return np.where(row_gaps(matrix)[1] <= limit, matrix, np.inf)


def validate_excess(max_excess: float) -> float:
    """Check a limit on the cost above the best.

    Args:
        max_excess: the limit in nats.

    Returns:
        The limit as a float.

    Raises:
        ValueError: it is not a number of at least 0.
    """
    try:
        limit = float(max_excess)
    except (TypeError, ValueError) as error:
        raise ValueError(f"max_excess must be a number of nats, got {max_excess!r}") from error
    if not limit >= 0:
        raise ValueError(f"max_excess must be at least 0 nats, got {max_excess}")
    return limit


LARGEST_COST = 1e290
"""Finite costs beyond this magnitude are refused: their sums could overflow to infinity."""


class InfeasibleError(ValueError):
    """No association satisfies the constraints: forbidden pairs and cluster sizes leave none."""


def validate_costs(cost: npt.ArrayLike) -> FloatArray:
    """Check a cost matrix of clients against clusters.

    Args:
        cost: negative log association weights in nats, shape (clients, clusters), any real dtype;
            +inf forbids a pair.

    Returns:
        The costs as float64, shape (clients, clusters); the same array where it already is one.

    Raises:
        ValueError: `cost` is not a non-empty matrix of numbers, or holds NaN, -inf or a finite
            value beyond `LARGEST_COST`.
        InfeasibleError: a client may join no cluster (a row that is all +inf).
    """
    matrix = _as_matrix(cost)
    lowest, highest = float(matrix.min()), float(matrix.max())
    if np.isnan(lowest):
        raise ValueError(f"cost has NaN at {_first(np.isnan(matrix))}; use +inf to forbid a pair")
    if lowest == -np.inf:
        raise ValueError(f"cost has -inf at {_first(np.isneginf(matrix))}; -inf is not allowed")
    if highest == np.inf:
        _reject_empty_rows(matrix)
        highest = float(np.max(matrix, where=np.isfinite(matrix), initial=lowest))
    if max(-lowest, highest) > LARGEST_COST:
        raise ValueError(
            f"cost has a finite entry of magnitude {max(-lowest, highest):g}; "
            f"at most {LARGEST_COST:g} is allowed, use +inf to forbid a pair"
        )
    return matrix


def row_gaps(cost: FloatArray) -> tuple[FloatArray, FloatArray]:
    """Split each row into its minimum and the gaps above it.

    Args:
        cost: valid costs in nats, shape (clients, clusters).

    Returns:
        minima: smallest cost of each client in nats, shape (clients,).
        gaps: cost minus that minimum in nats, at least 0, shape (clients, clusters).
    """
    minima = row_minima(cost)
    return minima, cost - minima[:, None]


def row_minima(cost: FloatArray) -> FloatArray:
    """Smallest cost of each row in nats, shape (rows,); of few columns faster one by one."""
    if cost.shape[1] > len(cost):
        minima: FloatArray = np.min(cost, axis=1)
        return minima
    minima = cost[:, 0].copy()
    for cluster in range(1, cost.shape[1]):
        np.minimum(minima, cost[:, cluster], out=minima)
    return minima


def cost_of(cost: FloatArray, labels: IntArray) -> float:
    """Total cost of an association in nats.

    Args:
        cost: costs in nats, shape (clients, clusters).
        labels: cluster of every client, int64 of shape (clients,).
    """
    return float(cost[np.arange(len(labels)), labels].sum())


def _as_matrix(cost: npt.ArrayLike) -> FloatArray:
    try:
        given = np.asarray(refuse_mask("cost", cost))
    except ValueError as error:
        raise ValueError(f"cost must be a matrix (clients, clusters): {error}") from error
    if given.dtype.kind not in "fiu":
        raise ValueError(f"cost must hold real numbers, got dtype {given.dtype}")
    if given.ndim != 2:
        raise ValueError(f"cost must have shape (clients, clusters), got {given.ndim} dimensions")
    if given.size == 0:
        raise ValueError(f"cost must have at least one client and one cluster, got {given.shape}")
    with np.errstate(over="ignore"):
        matrix = given.astype(np.float64, copy=False)
    if given.dtype.itemsize > matrix.itemsize and (np.isinf(matrix) & np.isfinite(given)).any():
        raise ValueError(
            f"cost has a finite entry beyond float64; at most {LARGEST_COST:g} is allowed, use "
            "+inf to forbid a pair"
        )
    return matrix


def _first(mask: npt.NDArray[np.bool_]) -> str:
    client, cluster = np.argwhere(mask)[0].tolist()
    return f"(client {client}, cluster {cluster})"


def _reject_empty_rows(matrix: FloatArray) -> None:
    empty = np.flatnonzero(np.isposinf(matrix).all(axis=1)).tolist()
    if empty:
        shown = ", ".join(map(str, empty[:10])) + (", ..." if len(empty) > 10 else "")
        raise InfeasibleError(f"cost forbids every cluster to client(s) {shown}: row(s) all +inf")
