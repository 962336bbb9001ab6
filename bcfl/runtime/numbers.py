"""Whether an argument is a number, for checks whose errors name it."""

from __future__ import annotations

from numbers import Integral, Real
from operator import index
from typing import TYPE_CHECKING, Any, SupportsIndex, cast

if TYPE_CHECKING:
    import numpy as np
    from numpy.typing import NDArray


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
