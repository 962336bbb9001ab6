"""Where samples are no finite numbers: which column, which sample, how many."""

from __future__ import annotations

from collections.abc import Iterable
from typing import Any

import numpy as np
from numpy.typing import NDArray

from bcfl.data.arrays import AS_COLUMNS, real_array


def check_finite(values: NDArray[Any], what: str) -> None:
    """Check that all samples are finite.

    Args:
        values: (samples, ...) numbers.
        what: name of the values, for the message.

    Raises:
        ValueError: some are not; the message says how many, and where the first of them is.
    """
    if values.dtype.kind not in "fc":
        return
    odd = ~np.isfinite(values)
    if not odd.any():
        return
    samples = np.flatnonzero(odd.reshape(len(values), -1).any(axis=1))
    first = tuple(int(index) for index in np.argwhere(odd)[0])
    place = f" at {list(first[1:])}" if first[1:] else ""
    raise ValueError(
        f"{what} must be finite, got NaN or inf in {len(samples)} of {len(values)} samples, the "
        f"first of them {values[first]} in sample {first[0]} (from 0){place}; fill in such values, "
        "or leave their samples out"
    )


def check_columns(columns: Iterable[tuple[object, NDArray[Any]]]) -> None:
    """Check columns of inputs, each by its name.

    Args:
        columns: name and (samples, ...) values of each.

    Raises:
        TypeError: one does not hold real numbers.
        ValueError: one is not finite.
    """
    for name, values in columns:
        what = f"column {name!r} of the inputs"
        check_finite(real_array(values, what, AS_COLUMNS), what)


def without_frame(values: Any) -> Any:  # noqa: ANN401 - of libraries that may not be installed
    """Inputs, of a data frame the (samples, columns) array of its columns; see `check_columns`."""
    if not hasattr(values, "columns") or not hasattr(values, "iloc") or not len(values.columns):
        return values
    columns = [np.asarray(values.iloc[:, index]) for index in range(len(values.columns))]
    check_columns(zip(values.columns, columns, strict=True))
    return np.stack(columns, axis=1)
