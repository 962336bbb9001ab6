"""Inputs and labels of the parts of a data set as arrays, of whatever kind they are given."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

import numpy as np
from numpy.typing import ArrayLike, NDArray

from experiments.datasets.errors import DataError

Pair = tuple[NDArray[Any], NDArray[Any]]
"""Inputs and labels."""


def arrays_of(name: str, parts: Mapping[str, object]) -> dict[str, Pair]:
    """Inputs and labels of each part; columns of data frames in the order of the training part.

    Args:
        name: name of the data set, for the message.
        parts: pairs of inputs and labels by part, `training` first.

    Raises:
        DataError: one is no pair of arrays, is masked, or has other columns than the first.
    """
    columns = [_columns(values) for values in _pair(name, "training", parts["training"])]
    return {part: _arrays(name, part, given, columns) for part, given in parts.items()}


def as_array(what: str, kind: str, values: Any, columns: Sequence[Any] = ()) -> NDArray[Any]:  # noqa: ANN401
    """Values as an array.

    Args:
        what: data set and part, for the message.
        kind: what they are, such as `inputs`, for the message.
        values: an array, tensor, data frame or nested list.
        columns: names that the columns of a data frame must have, in their order.

    Raises:
        DataError: they are sparse, differ in shape, or have other columns.
    """
    from bcfl.data import ordered_columns, plain_tensor, without_frame

    if hasattr(values, "toarray") and hasattr(values, "nnz"):
        raise DataError(
            f"dataset {what}: {kind} must be a dense array, got a "
            f"{type(values).__name__}; `.toarray()` makes one"
        )
    try:
        if hasattr(values, "detach"):
            return plain_tensor(values, kind).numpy()
        if hasattr(values, "iloc"):
            ordered = ordered_columns(values, columns, kind)
            values = without_frame(ordered) if kind == "inputs" else ordered
    except (TypeError, ValueError) as error:
        raise DataError(f"dataset {what}: {error}") from None
    try:
        return np.asarray(values)
    except ValueError:
        raise DataError(
            f"dataset {what}: {kind} must be one array, of samples that agree in shape, got a "
            f"{type(values).__name__} whose parts differ in shape"
        ) from None
    except (TypeError, RuntimeError) as error:  # such as of lists of tensors
        raise DataError(f"dataset {what}: {kind} must be one array: {error}") from None


def _columns(values: ArrayLike) -> tuple[Any, ...]:
    """Names of the columns of a data frame; none of anything else."""
    if not hasattr(values, "iloc"):
        return ()
    from bcfl.data import named_columns

    return named_columns(values)


def _arrays(name: str, part: str, given: object, columns: Sequence[Sequence[Any]]) -> Pair:
    """Inputs and labels of a part; columns of data frames are those of inputs and labels."""
    values = _pair(name, part, given)
    what = f"{name!r} ({part} part)"
    if any(map(np.ma.is_masked, values)):
        raise DataError(f"dataset {what}: arrays must not be masked; leave out such samples")
    inputs, labels = map(as_array, (what, what), ("inputs", "labels"), values, columns)
    _check_inputs(what, inputs, labels)
    return inputs, labels


def _pair(name: str, part: str, given: object) -> Sequence[ArrayLike]:
    if isinstance(given, tuple | list) and len(given) == 2:
        return given
    raise DataError(
        f"dataset {name!r}: {part} samples must be a pair (inputs, labels), got a "
        f"{type(given).__name__}"
        + (f" of length {len(given)}" if isinstance(given, tuple | list) else "")
    )


def _check_inputs(what: str, inputs: NDArray[np.generic], targets: NDArray[np.generic]) -> None:
    """Check that there is an axis of features."""
    if inputs.ndim == 1 and len(inputs):
        swapped = f"; or are they swapped with the labels, of shape {targets.shape}?"
        raise DataError(
            f"dataset {what}: inputs must be (samples, ...) with at least one axis of features, "
            f"got {inputs.shape}; one number per sample becomes a feature by "
            f"`inputs.reshape(-1, 1)`{swapped * (targets.ndim > 1)}"
        )
