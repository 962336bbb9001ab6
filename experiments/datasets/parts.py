"""Inputs and labels of the parts of a data set as arrays, of whatever kind they are given."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

import numpy as np
from numpy.typing import ArrayLike, NDArray

from bcfl.runtime import check_finite, check_int64, check_present
from experiments.datasets.arrays import Channels
from experiments.datasets.errors import DataError
from experiments.datasets.sample_types import check_one_type

Pair = tuple[NDArray[Any], NDArray[Any]]
"""Inputs and labels."""


def arrays_of(
    name: str, parts: Mapping[str, object], stated: bool
) -> tuple[dict[str, Pair], Channels | None]:
    """Inputs and labels of each part; columns of data frames in the order of the training part.

    Args:
        name: name of the data set, for the message.
        parts: pairs of inputs and labels by part, `training` first.
        stated: whether it is said how inputs are scaled, so that their types need not tell.

    Returns:
        Arrays by part, and where they have their channels: `first` of lists of images of Pillow;
        None of other inputs.

    Raises:
        DataError: one is no pair of arrays, or has other columns than the first, or see `array_of`.
    """
    from bcfl.data import holds_images

    given = {part: _pair(name, part, values) for part, values in parts.items()}
    columns = [_columns(values) for values in given["training"]]
    pairs = {part: _arrays(name, part, pair, columns, stated) for part, pair in given.items()}
    if not any(holds_images(inputs) for inputs, _ in given.values()):
        return pairs, None
    return {part: (x[:, None] if x.ndim == 3 else x, y) for part, (x, y) in pairs.items()}, "first"


def array_of(
    what: str,
    kind: str,
    values: Any,  # noqa: ANN401 - of any library
    columns: Sequence[Any] = (),
    stated: bool = False,
) -> NDArray[Any]:
    """Values as an array; inputs are real numbers, of one type where this says what white is.

    Args:
        what: data set and part, for the message.
        kind: what they are, such as `inputs`, for the message.
        values: an array, tensor, data frame or nested list.
        columns: names that the columns of a data frame must have, in their order.
        stated: whether it is said how inputs are scaled.

    Raises:
        DataError: they are masked, sparse, or missing, differ in shape, or, of inputs in a list, in
            type, have other columns, or cannot be read.
    """
    from bcfl.data import ordered_columns, without_frame
    from bcfl.runtime import plain_array, real_array

    try:
        values = ordered_columns(values, columns, kind)
        if kind == "inputs":
            values = without_frame(values)
            if not stated:
                check_one_type(values)
            array: NDArray[Any] = real_array(values, kind)
        else:
            array = plain_array(values, kind)
        if kind == "labels":
            check_int64(array, kind)
        if array.ndim:
            check_present(array, kind)
            check_finite(array, kind)
    except (TypeError, ValueError) as error:
        raise DataError(f"dataset {what}: {error}") from None
    except Exception as error:  # of arrays that are read when they are used
        raise DataError(
            f"dataset {what}: {kind} cannot be read, {type(error).__name__}: {error}"
        ) from error
    return array


def _columns(values: ArrayLike) -> tuple[Any, ...]:
    """Names of the columns of a data frame; none of anything else."""
    if not hasattr(values, "iloc"):
        return ()
    from bcfl.data import named_columns

    return named_columns(values)


def _arrays(
    name: str,
    part: str,
    values: Sequence[ArrayLike],
    columns: Sequence[Sequence[Any]],
    stated: bool,
) -> Pair:
    """Inputs and labels of a part; columns of data frames are those of inputs and labels."""
    what = f"{name!r} ({part} part)"
    inputs = array_of(what, "inputs", values[0], columns[0], stated)
    labels = array_of(what, "labels", values[1], columns[1])
    _check_inputs(what, inputs, labels)
    return inputs, labels


def _pair(name: str, part: str, given: object) -> Sequence[ArrayLike]:
    from bcfl.runtime import pair_of

    try:
        return pair_of(given, f"{part} samples", "(inputs, labels)")
    except TypeError as error:
        raise DataError(f"dataset {name!r}: {error}") from None


def _check_inputs(what: str, inputs: NDArray[np.generic], targets: NDArray[np.generic]) -> None:
    """Check that there is an axis of features."""
    from bcfl.runtime import featureless

    if inputs.ndim == 1 and len(inputs):
        raise DataError(f"dataset {what}: {featureless(inputs.shape, targets.shape, 'labels')}")
