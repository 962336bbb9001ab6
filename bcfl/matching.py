"""Matching clusters to clusters one to one."""

from __future__ import annotations

import numpy as np
from numpy.typing import NDArray

import assignment


def best_matching(gain: NDArray[np.float64]) -> NDArray[np.int64]:
    """(rows,) column of each row in the one-to-one matching of greatest summed gain.

    Args:
        gain: (n, n) gain of matching a row to a column.
    """
    return assignment.best_assignment(gain.max() - gain, lower=1, upper=1).labels
