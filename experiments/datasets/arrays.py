"""How the values of raw arrays are scaled, and where images have their channels."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any, Literal, TypeAlias, TypedDict

import numpy as np
from numpy.typing import NDArray

from bcfl.runtime import (
    ROUNDING,
    SMALL_SCALE,
    Span,
    is_real,
    rounded_number,
    seem_to_differ,
    span_of,
    warn_of_data,
)

WHITE = {np.dtype(np.uint8): 255, np.dtype(np.uint16): 65535}
"""The highest value of images, by their type."""
NEARLY = 0.9
"""Images that use their type have a pixel beyond this share of its highest value."""
HUGE = float(np.finfo(np.float32).max)
"""The highest number that float32 holds."""
MOST_CHANNELS = 4
"""An axis of at most this size holds channels."""
WHERE = "(in scenarios, keys of [data])"
"""Where `highest` and `scaled` are set, for messages."""

Channels: TypeAlias = Literal["first", "last", "none"]


class Scaling(TypedDict, total=False):
    """How values are scaled, as keywords of `experiments.datasets.Dataset.from_arrays`."""

    highest: float | None
    scaled: bool


class Reading(Scaling, total=False):
    """How arrays are read, as keywords of `experiments.datasets.Dataset.from_arrays`."""

    channels: Channels | None


SCALING, OPTIONS = ("highest", "scaled"), ("highest", "scaled", "channels")
"""Names of the keywords `Scaling` and `Reading`."""
DEFAULTS: Scaling = {"highest": None, "scaled": True}


def is_stated(scaling: Scaling) -> bool:
    """Whether keywords say how values are scaled, other than by default; `channels` does not."""
    return any(scaling.get(key, default) != default for key, default in DEFAULTS.items())


def scaled_inputs(
    what: str, parts: Mapping[str, NDArray[Any]], reading: Scaling
) -> NDArray[np.float32]:
    """Inputs as float32, scaled as `experiments.datasets.Dataset.from_arrays` says.

    Args:
        what: the data set, for warnings.
        parts: (samples, ...) finite numbers of each part, such as `training`.
        reading: `highest`, by which inputs are divided, and `scaled`, whether they are scaled, as
            there.

    Returns:
        Inputs of all parts.

    Raises:
        ValueError: `highest` or `scaled` is of another type, `highest` is given although inputs are
            kept, inputs are not in 0 to `highest`, or too large for float32, or parts are of
            different scales.
    """
    highest, scaled = reading.get("highest"), reading.get("scaled", True)
    if not isinstance(scaled, bool | np.bool_):
        raise ValueError(f"scaled must be True or False, got {scaled!r}")
    if highest is not None and not (
        is_real(highest) and highest <= HUGE and np.float32(highest) > 0
    ):
        raise ValueError(f"highest must be a number above 0 that float32 holds, got {highest!r}")
    spans = {part: span_of(one) for part, one in parts.items()}
    low, high = min(one.low for one in spans.values()), max(one.high for one in spans.values())
    if max(-low, high) > HUGE:
        raise ValueError(
            f"inputs must be numbers that float32 holds, up to {HUGE:.4g}, got {low:.4g} to "
            f"{high:.4g}"
        )
    inputs = np.concatenate([*parts.values()])
    if not scaled:
        return _kept(what, inputs, highest)
    if highest is None:
        highest = _default_highest(what, parts, spans, inputs)
    elif not is_unit(inputs, highest):
        raise ValueError(f"inputs must lie in 0 to highest={highest}, got {low} to {high}")
    if highest is None:
        return _by_range(inputs, low, high)
    shares = inputs.astype(np.float32) / np.float32(highest)
    return shares.clip(0, 1, out=shares)


def _default_highest(
    what: str,
    parts: Mapping[str, NDArray[Any]],
    spans: Mapping[str, Span],
    inputs: NDArray[Any],
) -> float | None:
    """What inputs of all parts are divided by, None if their range; warns once where in doubt."""
    doubt = _doubt_of_scales(parts, spans)
    highest, other = _usual_highest(inputs, *span_of(inputs))
    if doubt or other:
        warn_of_data(f"{what}: {doubt or other} {WHERE}")
    return highest


def _by_range(inputs: NDArray[Any], low: float, high: float) -> NDArray[np.float32]:
    """Numbers from the lowest to the highest as numbers from 0 to 1."""
    return ((inputs.astype(np.float64) - low) / (high - low or 1.0)).astype(np.float32)


def _doubt_of_scales(parts: Mapping[str, NDArray[Any]], spans: Mapping[str, Span]) -> str:
    """What to say of parts that may differ in scale; nothing where they do not seem to.

    Raises:
        ValueError: they show that one of them is in [0, 1], and another of 8 bits.
    """
    scales = {_known_scale(inputs, *spans[part]) for part, inputs in parts.items()} - {None}
    differ = seem_to_differ(spans.values())
    if len(scales) < 2 and not differ:
        return ""
    shown = ", ".join(f"{part} {x.dtype} up to {spans[part].high:.6g}" for part, x in parts.items())
    are_images = any(inputs.ndim > 2 for inputs in parts.values())
    differ_in_type = len({inputs.dtype.kind in "f" for inputs in parts.values()}) > 1
    if len(scales) > 1 or (are_images and differ_in_type):
        raise ValueError(
            f"inputs of all parts must be of one scale, got {shown}; convert them, or set "
            f"highest=NUMBER to divide all by it, or scaled=False to keep them {WHERE}"
        )
    return (
        f"inputs of all parts are scaled alike, but may be of several scales, got {shown}; convert "
        "them before if they are, or set highest=NUMBER, or scaled=False"
    )


def _known_scale(inputs: NDArray[Any], low: float, high: float) -> float | None:
    """The number that stands for 1 in inputs of one part; None where that is not certain."""
    white = _white(inputs)
    if low < 0 or high <= 0:
        return None
    if white is not None and high <= (1 if inputs.ndim > 2 else white // 2):
        return None
    if white is None and inputs.dtype.kind in "bf" and high <= 1 + ROUNDING:
        return 1
    return white or (high if high in WHITE.values() else None)


def _white(inputs: NDArray[Any]) -> int | None:
    """The highest value of images of 8 or 16 bits; None of other inputs."""
    white = WHITE.get(inputs.dtype)
    return white if inputs.ndim > 2 or white == WHITE[np.dtype(np.uint8)] else None


def is_unit(values: NDArray[Any], highest: float = 1) -> bool:
    """Whether numbers are from 0 to 1, or to another highest one, but for rounding.

    Args:
        values: finite numbers.
        highest: the highest.
    """
    low, high = float(np.min(values)), float(np.max(values))
    return low >= -ROUNDING * highest and high <= (1 + ROUNDING) * highest


def _kept(what: str, inputs: NDArray[np.generic], highest: float | None) -> NDArray[np.float32]:
    if highest is not None:
        raise ValueError(f"highest must not be given with scaled=False, got {highest}")
    rounded = rounded_number(inputs)
    if rounded is not None:
        warn_of_data(
            f"{what}: inputs are kept as float32, which rounds whole numbers beyond 2**24 such as "
            f"{rounded}; number them from 0 before if each is a thing of its own"
        )
    return inputs.astype(np.float32)


def _usual_highest(
    inputs: NDArray[np.generic], low: float, high: float
) -> tuple[float | None, str]:
    """What inputs are divided by, None if their range; and what to say if that is in doubt."""
    white, doubt = _white(inputs), ""
    if white is not None:
        by_range = high <= white // 2
        if is_dark(inputs.dtype, high):
            rule = "scaled to [0, 1] by their range" if by_range else f"divided by {white}"
            doubt = (
                f"{8 * inputs.itemsize}-bit inputs end at {high:.0f} and are {rule}; set "
                f"highest={white} if they are images, highest={high:.0f} if that is their scale, "
                "or scaled=False to keep them"
            )
        return None if by_range else white, doubt
    if inputs.dtype.kind in "bf" and is_unit(inputs):
        return 1, doubt
    if not _has_known_scale(inputs, low, high):
        whole = inputs.dtype.kind in "ui"
        doubt = (
            f"{'whole numbers' if whole else 'inputs'} from {low:.4g} to {high:.4g} are scaled to "
            "[0, 1] by these two; set scaled=False to keep them, such as "
            f"{'the numbers of words' if whole else 'standardised features'}, or highest=NUMBER to "
            "divide by it"
        )
    return None, doubt


def is_dark(dtype: np.dtype[Any], high: float) -> bool:
    """Whether images stay far below the highest value of their type.

    Args:
        dtype: one of `WHITE`.
        high: their highest value.
    """
    return SMALL_SCALE < high < NEARLY * WHITE[dtype]


def _has_known_scale(inputs: NDArray[np.generic], low: float, high: float) -> bool:
    """Whether values are levels of grey, which scaling keeps in proportion."""
    whole = inputs.dtype.kind in "ui"
    if whole and high <= 1:
        return low == 0
    grey = high in WHITE.values() or (high <= SMALL_SCALE and not bool(np.any(np.mod(inputs, 1))))
    return low == 0 and grey and not (whole and inputs.ndim == 2)


def channels_first(
    what: str, inputs: NDArray[np.float32], channels: Channels | None
) -> NDArray[np.float32]:
    """Images as (samples, channels, height, width); other inputs as they are.

    Args:
        what: the data set, for warnings.
        inputs: (samples, ...); of three axes the samples are images of one channel.
        channels: where the channels of four axes are, by default as the sizes tell, and first, with
            a warning, where these do not; or `none` where samples are no images. A warning tells of
            `last` where sizes tell otherwise.

    Raises:
        ValueError: `channels` is another value.
    """
    if channels not in (None, "first", "last", "none"):
        raise ValueError(f"channels must be 'first', 'last' or 'none', got {channels!r}")
    if channels == "none":
        return inputs
    if inputs.ndim == 3:
        return inputs[:, None]
    if channels == "last" and inputs.ndim == 4 and told_channels(inputs.shape[1:]) == "first":
        warn_of_data(
            f"{what}: samples of shape {inputs.shape[1:]} are read with their channels last, as "
            "set, but seem to have them first, as images of Pillow do once they are read; "
            "channels='first' reads them so"
        )
    if inputs.ndim == 4 and (channels or _channel_axis(what, inputs.shape[1:])) == "last":
        return np.ascontiguousarray(np.moveaxis(inputs, 3, 1))
    return inputs


def _channel_axis(what: str, shape: tuple[int, ...]) -> Literal["first", "last"]:
    told = told_channels(shape)
    if told is None and len(set(shape)) > 1:
        warn_of_data(
            f"{what}: samples of shape {shape} are read with their channels first, which the sizes "
            "do not tell; set channels='first' if that is meant, 'last' if they are last, or "
            "'none' if samples are no images (in an .npz file, an array of that name)"
        )
    return told or "first"


def told_channels(shape: tuple[int, ...]) -> Literal["first", "last"] | None:
    """Where the sizes of one image show that its channels are; None where they do not tell.

    Args:
        shape: three sizes.
    """
    first, last = _signs_of_channels(shape)
    return None if first == last else "first" if first > last else "last"


def seem_last(shape: tuple[int, ...]) -> bool:
    """Whether sizes have a sign that channels are last, and none that they are first.

    Args:
        shape: of one sample.
    """
    if len(shape) != 3:
        return False
    first, last = _signs_of_channels(shape)
    return first == 0 and last > 0


def _signs_of_channels(shape: tuple[int, ...]) -> tuple[int, int]:
    """How many signs there are that the first axis of three is that of channels, or the last."""
    first, middle, last = shape
    return (first <= MOST_CHANNELS) + (middle == last), (last <= MOST_CHANNELS) + (
        first == middle > 1  # one row of one channel is no square
    )
