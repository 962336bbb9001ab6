"""Types of the numbers of samples in a list, of which some say how images are scaled."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable, Sequence
from operator import attrgetter
from typing import Any

import numpy as np

from experiments.datasets.arrays import WHERE, WHITE


def check_one_type(values: Any) -> None:  # noqa: ANN401 - of any library
    """Check that inputs of samples agree in type where this says what white is.

    Args:
        values: inputs of all samples; arrays and tensors without axes are left out, and so are
            tables, which are lists of rows of whole numbers.

    Raises:
        TypeError: some have 8 or 16 bits, and others another type.
    """
    from bcfl.runtime import arrays_in  # which imports torch

    arrays = arrays_in(values)
    if set(map(type, arrays)) <= {np.ndarray} and len(set(map(attrgetter("dtype"), arrays))) < 2:
        return
    counts = Counter(_type_of(one) for one in arrays if getattr(one, "ndim", 1))
    if len(counts) > 1 and counts.keys() & set(map(str, WHITE)) and not _is_table(values, counts):
        shown = " and ".join(f"{number} of {kind}" for kind, number in sorted(counts.items()))
        raise TypeError(
            f"inputs must be of one type, which says how images are scaled, got {shown}; convert "
            "them to one scale and type before, such as numbers from 0 to 1, or set "
            f"highest=NUMBER to divide all by it, or scaled=False to keep them {WHERE}"
        )


def _is_table(values: Sequence[Any], types: Iterable[str]) -> bool:
    """Whether samples are rows of whole numbers."""
    return all(getattr(one, "ndim", 0) == 1 for one in values) and all("int" in x for x in types)


def _type_of(array: Any) -> str:  # noqa: ANN401 - of any library
    """Name of the type of the numbers of an array, in any byte order."""
    dtype = getattr(array, "dtype", "")
    return str(getattr(dtype, "name", dtype)).removeprefix("torch.")
