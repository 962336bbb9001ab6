"""How the values of raw arrays are scaled, and where images have their channels."""

from __future__ import annotations

import warnings
from typing import Literal, TypeAlias

import numpy as np
from numpy.typing import NDArray

BYTE, BYTE_MIDDLE = 255, 127
"""Unsigned bytes beyond the middle use the full range up to 255."""
GREY_ENDS = (BYTE, 65535)
"""White in images of 8 and 16 bits."""
SMALL_SCALE = 16
"""Whole numbers up to this are a scale of their own, such as truth values or 16 grey levels."""
MOST_CHANNELS = 4
"""An axis of at most this size holds channels."""
EXACT = 2**24
"""Whole numbers up to this are exact in float32."""

Channels: TypeAlias = Literal["first", "last", "none"]


def scaled_inputs(
    what: str, inputs: NDArray[np.generic], highest: float | None, scaled: bool
) -> NDArray[np.float32]:
    """Inputs as float32, scaled as `experiments.datasets.Dataset.from_arrays` says.

    Args:
        what: the data set, for warnings.
        inputs: (samples, ...) finite numbers.
        highest: inputs are divided by this number; by default see there.
        scaled: whether inputs are scaled; otherwise they are kept.

    Raises:
        ValueError: `highest` is given although inputs are kept, inputs are not in 0 to `highest`,
            or they are kept whole numbers that are too large for float32.
    """
    low, high = float(np.min(inputs)), float(np.max(inputs))
    if not scaled:
        return _kept(inputs, highest, max(-low, high))
    if highest is None:
        _warn_of_guess(what, inputs, low, high)
        highest = BYTE if inputs.dtype == np.uint8 and high > BYTE_MIDDLE else None
    if highest is not None:
        if not (highest > 0 and low >= 0 and high <= highest):
            raise ValueError(f"inputs must lie in 0 to highest={highest}, got {low} to {high}")
        return inputs.astype(np.float32) / np.float32(highest)
    if inputs.dtype.kind in "bf" and low >= 0 and high <= 1:
        return inputs.astype(np.float32)
    spread = high - low or 1.0
    return ((inputs.astype(np.float64) - low) / spread).astype(np.float32)


def _kept(
    inputs: NDArray[np.generic], highest: float | None, largest: float
) -> NDArray[np.float32]:
    if highest is not None:
        raise ValueError(f"highest must not be given with scaled=False, got {highest}")
    if inputs.dtype.kind in "ui" and largest > EXACT:
        raise ValueError(
            f"whole numbers are kept up to {EXACT}, beyond which float32 is not exact, got "
            f"{largest:.0f}; pass floats where they may be rounded"
        )
    return inputs.astype(np.float32)


def _warn_of_guess(what: str, inputs: NDArray[np.generic], low: float, high: float) -> None:
    """Warn where the values do not tell how they are meant."""
    if inputs.dtype == np.uint8:
        if high > SMALL_SCALE and high != BYTE:
            rule = (
                "are divided by 255"
                if high > BYTE_MIDDLE
                else "are scaled to [0, 1] by their range"
            )
            warnings.warn(
                f"{what}: 8-bit inputs end at {high:.0f} and {rule}; pass highest=255 if they are "
                f"images, highest={high:.0f} if that is their scale, or scaled=False to keep them",
                stacklevel=4,
            )
    elif not _has_known_scale(inputs, low, high):
        whole = inputs.dtype.kind in "ui"
        warnings.warn(
            f"{what}: {'whole numbers' if whole else 'inputs'} from {low:.4g} to {high:.4g} are "
            "scaled to [0, 1] by these two; pass scaled=False to keep them, such as "
            f"{'the numbers of words' if whole else 'standardised features'}, or highest=NUMBER to "
            "divide by it (in an .npz file these are arrays of that name)",
            stacklevel=4,
        )


def _has_known_scale(inputs: NDArray[np.generic], low: float, high: float) -> bool:
    """Whether values are within [0, 1], or levels of grey, which scaling keeps in proportion."""
    is_float = inputs.dtype.kind in "bf"
    if low >= 0 and high <= 1:
        return is_float or low == 0
    may_be_words = inputs.dtype.kind in "ui" and inputs.ndim == 2
    grey = high in GREY_ENDS or (
        high <= SMALL_SCALE and not (is_float and bool(np.any(np.mod(inputs, 1))))
    )
    return low == 0 and grey and not may_be_words


def channels_first(inputs: NDArray[np.float32], channels: Channels | None) -> NDArray[np.float32]:
    """Images as (samples, channels, height, width); other inputs as they are.

    Args:
        inputs: (samples, ...); of three axes the samples are images of one channel.
        channels: where the channels of four axes are, by default as the sizes tell; or `none`
            where samples are no images.

    Raises:
        ValueError: `channels` is another value, or the sizes do not tell.
    """
    if channels not in (None, "first", "last", "none"):
        raise ValueError(f"channels must be 'first', 'last' or 'none', got {channels!r}")
    if channels == "none":
        return inputs
    if inputs.ndim == 3:
        return inputs[:, None]
    if inputs.ndim == 4 and (channels or _channel_axis(inputs.shape)) == "last":
        return np.ascontiguousarray(np.moveaxis(inputs, 3, 1))
    return inputs


def _channel_axis(shape: tuple[int, ...]) -> Literal["first", "last"]:
    _, first, middle, last = shape
    if first <= MOST_CHANNELS or middle == last:
        return "first"
    if last <= MOST_CHANNELS or first == middle:
        return "last"
    raise ValueError(
        f"images of shape {shape[1:]} have their channels first or last, which cannot be told from "
        "the sizes; pass channels='first' or 'last', or 'none' if they are no images"
    )
