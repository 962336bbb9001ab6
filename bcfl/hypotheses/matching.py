"""One-to-one matching of clusters by maximum gain (linear assignment)."""

from __future__ import annotations

import numpy as np
from numpy.typing import NDArray

import assignment


def best_matching(gain: NDArray[np.float64]) -> NDArray[np.int64]:
    """Column of each row in the one-to-one matching of greatest summed gain.

    With more rows than columns, unmatched rows are numbered from `columns` upwards.

    Args:
        gain: float64 of shape (rows, columns).

    Returns:
        int64 of shape (rows,).
    """
    rows, columns = gain.shape
    square = np.pad(gain, ((0, max(columns - rows, 0)), (0, max(rows - columns, 0))))
    return assignment.best_assignment(square.max() - square, lower=1, upper=1).labels[:rows]
