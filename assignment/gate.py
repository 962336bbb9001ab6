"""Gating: rule out pairs that are far less plausible than a client's best."""

import numpy as np
import numpy.typing as npt

from assignment.arrays import FloatArray
from assignment.costs import row_gaps, validate_costs


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
        ValueError: bad costs (see `validate_costs`) or a threshold that is negative or NaN.
        InfeasibleError: a client may join no cluster to begin with.
    """
    if not max_excess >= 0:
        raise ValueError(f"max_excess must be at least 0 nats, got {max_excess}")
    matrix = validate_costs(cost)
    return np.where(row_gaps(matrix)[1] <= max_excess, matrix, np.inf)
