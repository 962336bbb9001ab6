"""Array types, and log-sum-exp."""

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


def frozen(array: npt.NDArray[Any]) -> npt.NDArray[Any]:
    """The same array, marked read-only, for use in frozen dataclasses."""
    array.flags.writeable = False
    return array
