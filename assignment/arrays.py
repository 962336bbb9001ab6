"""Array types, checks of arguments, and log-sum-exp."""

from __future__ import annotations

from operator import index
from typing import Any

import numpy as np
import numpy.typing as npt

FloatArray = npt.NDArray[np.float64]
IntArray = npt.NDArray[np.int64]
BoolArray = npt.NDArray[np.bool_]


def logsumexp(values: FloatArray, axis: int = -1) -> FloatArray:
    """Log of a sum of exponentials along an axis, safe for any scale.

    Args:
        values: log terms in nats, float64 of any shape; -inf is a term of no weight.
        axis: axis summed over.

    Returns:
        float64 array without `axis`, in nats; -inf where every term is -inf.
    """
    highest = np.max(values, axis=axis, keepdims=True)
    shift = np.where(np.isfinite(highest), highest, 0.0)
    with np.errstate(divide="ignore", over="ignore"):
        total = np.log(np.sum(np.exp(values - shift), axis=axis, keepdims=True))
    summed: FloatArray = np.squeeze(total + shift, axis=axis)
    return summed


def refuse_mask(name: str, values: npt.ArrayLike) -> npt.ArrayLike:
    """The values themselves, unless some are masked.

    Args:
        name: name of the argument.
        values: anything like an array.

    Raises:
        ValueError: a masked array, some of whose entries are masked.
    """
    if isinstance(values, np.ma.MaskedArray) and np.ma.getmaskarray(values).any():
        raise ValueError(f"{name} must not have a mask; fill masked entries first")
    return values


def validate_count(m: int) -> int:
    """Check a number of associations or hypotheses.

    Args:
        m: the number.

    Returns:
        The number as an int.

    Raises:
        ValueError: it is no integer of at least 1.
    """
    try:
        count = index(m)
    except TypeError as error:
        raise ValueError(f"m must be an integer of at least 1, got {m!r}") from error
    if count < 1:
        raise ValueError(f"m must be at least 1, got {m}")
    return count


def frozen(array: npt.NDArray[Any]) -> npt.NDArray[Any]:
    """The same array, marked read-only, for use in frozen dataclasses."""
    array.flags.writeable = False
    return array
