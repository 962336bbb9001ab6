"""Attributes of a data set: what they may be given as, and their checks."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from typing import Any

import numpy as np
from numpy.typing import ArrayLike, NDArray

from bcfl.runtime import check_finite, exceeds_int64
from experiments.datasets.errors import DataError
from experiments.datasets.labels import UNLABELLED, WITHOUT_LABEL, whole_labels
from experiments.datasets.parts import array_of

SHOWN = 5
"""Names that a message shows."""


def numbered(
    name: str,
    kind: str,
    values: ArrayLike | None,
    names: Iterable[str],
    sizes: tuple[int, int],
) -> tuple[NDArray[np.int64] | None, tuple[str, ...]]:
    """Writers or domains of samples as numbers, and the names by number.

    Whole numbers of int64 stay as they are. Text, and larger numbers, are numbered in the order of
    the names, which are the sorted distinct ones by default.

    Args:
        name: name of the data set, for the message.
        kind: `writer` or `domain`.
        values: (samples,) whole numbers or names; without them there are no names either.
        names: names by number; may be empty.
        sizes: number of training and of test samples.

    Raises:
        DataError: there are more or fewer than samples, they are masked, missing or of another
            type, names are repeated or no text, or one of the values is of none of the names.
    """
    named = as_names(name, f"{kind}_names", names)
    if len(set(named)) < len(named):
        raise DataError(f"dataset {name!r}: {kind}_names must be distinct, got {named}")
    if values is None:
        return None, ()
    array = _one_each(name, f"{kind}s", values)
    if len(array) != sum(sizes):
        parts = f", {sizes[0]} of training and then {sizes[1]} of the test set" * bool(sizes[1])
        raise DataError(
            f"dataset {name!r}: {kind}s must be one for each of the {sum(sizes)} samples{parts}, "
            f"got {len(array)}"
        )
    if array.dtype.kind not in "US" and not exceeds_int64(array):
        numbers = array.astype(np.int64)
    else:
        found, numbers = np.unique(array, return_inverse=True)
        own = tuple(map(str, found.tolist()))
        places = {one: number for number, one in enumerate(named or own)}
        numbers = np.array([places.get(one, len(places)) for one in own])[numbers.reshape(-1)]
        named = named or own
    odd = np.flatnonzero((numbers < 0) | (numbers >= len(named)))
    if named and len(odd):
        raise DataError(
            f"dataset {name!r}: {kind}s must be of the {len(named)} {kind}_names {_few(named)}, by "
            f"number from 0 or by name, got {array[odd[0]].item()!r} for sample {odd[0]}; "
            f"{kind}_names=() leaves these names out"
        )
    return numbers, named


def _one_each(name: str, kind: str, values: ArrayLike) -> NDArray[Any]:
    """A row of whole numbers, or of text."""
    given = whole_labels(array_of(repr(name), kind, values))
    if given.dtype.kind == "O" and all(isinstance(one, str) for one in given.flat):
        given = given.astype(str)
    if given.ndim != 1 or given.dtype.kind not in "iuUS":
        hint = f"; `[*map(str, {kind})]` makes names of all"
        raise DataError(
            f"dataset {name!r}: {kind} must be one whole number or name per sample, got "
            f"{_kinds_in(given)} of shape {given.shape}"
            + hint
            * (given.ndim == 1 and given.dtype.kind in "fO")
        )
    return np.char.decode(given, "utf-8", "backslashreplace") if given.dtype.kind == "S" else given


def _few(names: Sequence[str]) -> str:
    return ", ".join([*map(repr, names[:SHOWN]), *["..."] * (len(names) > SHOWN)])


def _kinds_in(array: NDArray[Any]) -> str:
    """Types of the entries of an array of objects, or its own."""
    kinds = sorted({type(one).__name__ for one in array.flat}) if array.dtype.kind == "O" else ()
    return " and ".join(kinds) or str(array.dtype)


def sets_of_labels(
    name: str, values: ArrayLike | None, num_classes: int
) -> NDArray[np.bool_] | None:
    """One row of Booleans, or of the whole numbers 0 and 1, for each class, as Booleans.

    Args:
        name: name of the data set, for the message.
        values: (classes, labels) rows; None stays None.
        num_classes: number of classes.

    Raises:
        DataError: they are others, or there are more or fewer.
    """
    if values is None:
        return None
    array = array_of(repr(name), "label_sets", values)
    if array.dtype.kind not in "bui" or not np.isin(array, (0, 1)).all():
        raise DataError(
            f"dataset {name!r}: label_sets must be bool, or whole numbers 0 and 1, got "
            f"{array.dtype}"
        )
    if array.ndim != 2 or len(array) != num_classes:
        raise DataError(
            f"dataset {name!r}: label_sets must be of shape (classes, labels), here {num_classes} "
            f"rows, got {array.dtype} of shape {array.shape}"
        )
    return array.astype(bool, copy=False)


def as_names(name: str, kind: str, values: Iterable[str]) -> tuple[str, ...]:
    """Names as a tuple.

    Args:
        name: name of the data set, for the message.
        kind: what they are, for the message.
        values: the names.

    Raises:
        DataError: they are no sequence of text.
    """
    are_some = isinstance(values, Iterable) and not isinstance(values, str)
    names = tuple(values) if are_some else ()
    if not are_some or not all(isinstance(one, str) for one in names):
        raise DataError(f"dataset {name!r}: {kind} must be names as text, got {values!r}")
    return tuple(map(str, names))


def names_of_classes(
    name: str, values: Iterable[str] | None, number: int
) -> tuple[str, ...] | None:
    """One name for each class or label.

    Args:
        name: name of the data set, for the message.
        values: the names; None stays None.
        number: how many there must be.

    Raises:
        DataError: they are no sequence of text, or there are more or fewer.
    """
    if values is None:
        return None
    names = as_names(name, "class_names", values)
    if len(names) != number:
        raise DataError(
            f"dataset {name!r}: class_names must be one name for each of the {number} classes or "
            f"labels, got {len(names)}"
        )
    return names


def check_arrays(name: str, inputs: object, targets: object) -> None:
    """Check that inputs and targets are arrays of their types.

    Args:
        name: name of the data set, for the message.
        inputs: to be float32.
        targets: to be int64.

    Raises:
        DataError: they are not, or are masked.
    """
    wanted = {"inputs": (inputs, np.float32), "targets": (targets, np.int64)}
    for kind, (values, dtype) in wanted.items():
        if not isinstance(values, np.ndarray) or values.dtype != dtype or np.ma.is_masked(values):
            masked = "masked " * bool(np.ma.is_masked(values))
            got = getattr(values, "dtype", f"a {type(values).__name__}")
            raise DataError(
                f"dataset {name!r}: {kind} must be an array of {np.dtype(dtype)}, got "
                f"{masked}{got} (Dataset.from_arrays converts)"
            )


def check_range(name: str, targets: NDArray[np.int64], num_classes: int) -> None:
    """Check that targets are classes.

    Args:
        name: name of the data set, for the message.
        targets: (samples,) numbers.
        num_classes: number of classes.

    Raises:
        DataError: one is out of range.
    """
    low, high = targets.min(), targets.max()
    if low < 0 or high >= num_classes:
        hint = f"; leave out samples of {WITHOUT_LABEL}" * bool(low == UNLABELLED)
        raise DataError(
            f"dataset {name!r}: targets must be 0 to {num_classes - 1}, got {low} to {high}{hint}"
        )


def check_shapes(what: str, inputs: NDArray[np.generic], targets: NDArray[np.generic]) -> None:
    """Check that there are samples, each with an axis of features and a target.

    Args:
        what: the data set, and perhaps its part, for the message.
        inputs: of all samples.
        targets: of all samples.

    Raises:
        DataError: there is none, or the shapes are others.
    """
    if inputs.ndim < 2 or targets.ndim != 1 or len(inputs) != len(targets):
        raise DataError(
            f"dataset {what}: inputs must be (samples, ...) and targets (samples,) of the same "
            f"length, got {inputs.shape} and {targets.shape}"
        )
    if inputs.size == 0:
        needed = "at least one number in each sample" if len(inputs) else "at least one sample"
        raise DataError(f"dataset {what}: there must be {needed}, got {inputs.shape}")


def check_all_finite(what: str, inputs: NDArray[np.float32]) -> None:
    """Check that inputs are finite.

    Args:
        what: the data set, for the message.
        inputs: (samples, ...) numbers.

    Raises:
        DataError: some are not.
    """
    try:
        check_finite(inputs, "inputs")
    except ValueError as error:
        raise DataError(f"dataset {what}: {error}") from None
