"""Where samples are no finite numbers: which column, which sample, how many."""

from __future__ import annotations

from collections.abc import Iterable
from typing import Any

import numpy as np
from numpy.typing import NDArray

from bcfl.data.arrays import AS_COLUMNS, real_array
from bcfl.runtime.numbers import check_finite


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
