"""Matching clusters to clusters one to one."""

from __future__ import annotations

import numpy as np
from numpy.typing import NDArray

import assignment


def best_matching(gain: NDArray[np.float64]) -> NDArray[np.int64]:
    """(rows,) column of each row in the one-to-one matching of greatest summed gain.

    With more rows than columns, the rows that are left over get numbers from `columns` upwards.

    Args:
        gain: (rows, columns) gain of matching a row to a column.
    """
    rows, columns = gain.shape
    square = np.pad(gain, ((0, max(columns - rows, 0)), (0, max(rows - columns, 0))))
    return assignment.best_assignment(square.max() - square, lower=1, upper=1).labels[:rows]
