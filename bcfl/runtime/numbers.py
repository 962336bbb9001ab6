"""Whether an argument is a number, for checks whose errors name it."""

from __future__ import annotations

from numbers import Integral, Real
from operator import index
from typing import TYPE_CHECKING, Any, SupportsIndex, cast

if TYPE_CHECKING:
    import numpy as np
    from numpy.typing import NDArray

EXACT_IN_FLOAT32, EXACT_IN_FLOAT64 = 2**24, 2**53
"""Whole numbers up to these are exact in the two types."""


def is_real(value: object) -> bool:
    """Whether it is a real number of Python or numpy, and no truth value; it may be NaN."""
    return isinstance(value, Real) and not isinstance(value, bool)


def is_whole(value: object, least: int | None = None) -> bool:
    """Whether it is a whole number of Python or numpy, and no truth value.

    Args:
        value: an argument.
        least: smallest number that is allowed; None is any.
    """
    if not isinstance(value, Integral) or isinstance(value, bool):
        return False
    return least is None or int(value) >= least


def check_whole(name: str, value: object, least: int = 1, other: str = "") -> None:
    """Check an argument that is a whole number.

    Args:
        name: of the argument.
        value: what it is.
        least: smallest number that is allowed.
        other: what is allowed besides, such as " or None", for the message.

    Raises:
        ValueError: it is no such number.
    """
    if not is_whole(value, least):
        raise ValueError(f"{name} must be a whole number of at least {least}{other}, got {value!r}")


def as_whole(value: object) -> int | None:
    """A whole number, also one that is held by an array or a tensor; None where it is none."""
    if isinstance(value, bool):
        return None
    try:
        return index(cast("SupportsIndex", value))
    except (TypeError, ValueError, RuntimeError):
        return None


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
    import numpy as np

    odd = ~np.isfinite(values)
    if not odd.any():
        return
    raise ValueError(
        f"{what} must be finite, got NaN or inf in {places_of(odd, str(values[odd][0]))}; fill in "
        "such values, or leave their samples out"
    )


def rounded_number(values: NDArray[Any]) -> int | None:
    """The first whole number that float32 rounds, as it may beyond 2**24; None without one.

    Args:
        values: numbers of any type.
    """
    if values.dtype.kind not in "ui" or not values.size:
        return None
    if max(int(values.max()), -int(values.min())) <= EXACT_IN_FLOAT32:
        return None
    import numpy as np

    large = values[(values > EXACT_IN_FLOAT32) | (values < -EXACT_IN_FLOAT32)]
    sizes = (large if large.dtype.kind == "u" else np.abs(large.astype(np.int64))).astype(np.uint64)
    odd_parts = sizes // (sizes & (~sizes + np.uint64(1)))
    rounded = large[odd_parts > EXACT_IN_FLOAT32]
    return int(rounded[0]) if rounded.size else None


def exceeds_int64(values: NDArray[Any]) -> bool:
    """Whether a whole number is too large for int64.

    Args:
        values: numbers of any type.
    """
    return values.dtype.kind == "u" and bool((values >= 2**63).any())


def check_int64(values: NDArray[Any], what: str) -> None:
    """Check that whole numbers are not too large for int64.

    Args:
        values: numbers of any type.
        what: name of the values, for the message.

    Raises:
        ValueError: one is.
    """
    if exceeds_int64(values):
        raise ValueError(f"{what} must be below 2**63, got {values.max()}")


def check_present(values: NDArray[Any], what: str) -> None:
    """Check that no value is missing: None, NaN, or what pandas has in their place.

    Args:
        values: (samples, ...) values; those of types other than objects are never missing.
        what: name of the values, for the message.

    Raises:
        ValueError: some are missing; the message says how many, and where the first of them is.
    """
    import numpy as np

    flags = [_is_missing(value) for value in values.flat] if values.dtype.kind == "O" else []
    if values.ndim and any(flags):
        first = values.flat[flags.index(True)]
        places = places_of(np.reshape(flags, values.shape), repr(first))
        raise ValueError(
            f"{what} must not be missing, got missing values in {places}; fill in such values, or "
            "leave their samples out"
        )


def _is_missing(value: object) -> bool:
    import numpy as np

    if isinstance(value, float | np.floating):
        return bool(np.isnan(value))
    return value is None or type(value).__name__ in ("NAType", "NaTType")


def places_of(odd: NDArray[np.bool_], first: str = "") -> str:
    """How many samples have odd entries, and where the first of these is, for messages.

    Args:
        odd: (samples, ...) whether an entry is odd, at least one.
        first: the first of them, if it is to be said.
    """
    import numpy as np

    count = int(odd.reshape(len(odd), -1).any(axis=1).sum())
    sample, *rest = (int(index) for index in np.argwhere(odd)[0])
    place = f" at {rest}" if rest else ""
    return (
        f"{count} of {len(odd)} samples, the first of them {first}{' ' * bool(first)}in sample "
        f"{sample} (from 0){place}"
    )
