"""Types of the numbers of samples in a list, of which some say how images are scaled."""

from __future__ import annotations

from collections import Counter
from collections.abc import Sequence
from operator import attrgetter
from typing import Any

import numpy as np

from experiments.datasets.arrays import WHITE

DEEP_MODES = {"1": "bool", "I": "int32", "F": "float32"} | dict.fromkeys(
    ("16", "16L", "16B", "16N"), "uint16"
)
"""Types of numbers by modes of Pillow, or by what follows the semicolon; of all others uint8."""


def check_one_type(arrays: Sequence[Any]) -> None:
    """Check that inputs of samples agree in type where this says what white is.

    Args:
        arrays: arrays, tensors or images; those without axes are left out.

    Raises:
        TypeError: some have 8 or 16 bits, and others another type.
    """
    same = set(map(type, arrays)) <= {np.ndarray} and len(set(map(attrgetter("dtype"), arrays))) < 2
    if same:
        return
    counts = Counter(_type_of(one) for one in arrays if getattr(one, "ndim", 1))
    if len(counts) > 1 and counts.keys() & set(map(str, WHITE)):
        shown = " and ".join(f"{number} of {kind}" for kind, number in sorted(counts.items()))
        raise TypeError(
            f"inputs must be of one type, which says how images are scaled, got {shown}; convert "
            "them to one scale and type before, such as numbers from 0 to 1"
        )


def _type_of(array: Any) -> str:  # noqa: ANN401 - of any library
    """Name of the type of the numbers of an array, in any byte order, or of an image."""
    if hasattr(array, "getbands"):
        return DEEP_MODES.get(str(array.mode).partition(";")[2] or str(array.mode), "uint8")
    dtype = getattr(array, "dtype", "")
    return str(getattr(dtype, "name", dtype)).removeprefix("torch.")
