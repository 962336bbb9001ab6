"""Attributes of a data set: what they may be given as, and their checks."""

from __future__ import annotations

from collections.abc import Iterable, Sequence

import numpy as np
from numpy.typing import ArrayLike, NDArray

from bcfl.runtime import check_finite
from experiments.datasets.errors import DataError
from experiments.datasets.labels import UNLABELLED, WITHOUT_LABEL
from experiments.datasets.parts import array_of


def whole_numbers(name: str, kind: str, values: ArrayLike | None) -> NDArray[np.int64] | None:
    """Whole numbers of any width, such as a list, as int64.

    Args:
        name: name of the data set, for the message.
        kind: what they are, for the message.
        values: one for each sample; None stays None.

    Raises:
        DataError: they are no whole numbers.
    """
    if values is None:
        return None
    array = array_of(repr(name), kind, values)
    if array.dtype.kind not in "ui":
        raise DataError(
            f"dataset {name!r}: {kind} must be one whole number for each sample, got "
            f"{array.dtype} of shape {array.shape}"
        )
    return array.astype(np.int64, copy=False)


def sets_of_labels(name: str, values: ArrayLike | None) -> NDArray[np.bool_] | None:
    """Rows of Booleans, or of the whole numbers 0 and 1, as Booleans.

    Args:
        name: name of the data set, for the message.
        values: (classes, labels) rows; None stays None.

    Raises:
        DataError: they are others.
    """
    if values is None:
        return None
    array = array_of(repr(name), "label_sets", values)
    if array.dtype.kind not in "bui" or not np.isin(array, (0, 1)).all():
        raise DataError(
            f"dataset {name!r}: label_sets must be bool, or whole numbers 0 and 1, got "
            f"{array.dtype}"
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


def check_class_names(name: str, names: Sequence[str], number: int) -> None:
    """Check that there are as many names as classes.

    Args:
        name: name of the data set, for the message.
        names: of the classes, or labels.
        number: how many there must be.

    Raises:
        DataError: there are more or fewer.
    """
    if len(names) != number:
        raise DataError(
            f"dataset {name!r}: class_names must be one name for each of the {number} classes or "
            f"labels, got {len(names)}"
        )


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


def check_writers(name: str, writers: NDArray[np.int64] | None, samples: int, test: int) -> None:
    """Check that there is one writer for each sample.

    Args:
        name: name of the data set, for the message.
        writers: whole numbers, or None.
        samples: number of samples.
        test: number of those of the original test set.

    Raises:
        DataError: there are more or fewer.
    """
    if writers is not None and writers.shape != (samples,):
        parts = f", {samples - test} of training and then {test} of the test set" * bool(test)
        raise DataError(
            f"dataset {name!r}: writers must be one for each of the {samples} samples{parts}, got "
            f"{len(writers) if writers.ndim == 1 else f'shape {writers.shape}'}"
        )


def check_sets(name: str, sets: NDArray[np.bool_], num_classes: int) -> None:
    """Check that there is one set of labels for each class.

    Args:
        name: name of the data set, for the message.
        sets: Booleans.
        num_classes: number of classes.

    Raises:
        DataError: there are more or fewer, or they are no rows.
    """
    if sets.ndim != 2 or len(sets) != num_classes:
        raise DataError(
            f"dataset {name!r}: label_sets must be of shape (classes, labels), here {num_classes} "
            f"rows, got bool of shape {sets.shape}"
        )


def check_domains(
    name: str, domains: NDArray[np.int64] | None, names: tuple[str, ...], samples: int
) -> None:
    """Check that each sample has one of the domains.

    Args:
        name: name of the data set, for the message.
        domains: whole numbers, or None.
        names: names of the domains.
        samples: number of samples.

    Raises:
        DataError: there are more or fewer, one has no name, or two have the same.
    """
    if len(set(names)) < len(names):
        raise DataError(f"dataset {name!r}: domain_names must be distinct, got {names}")
    if domains is None:
        return
    if domains.shape != (samples,) or not np.isin(domains, np.arange(len(names))).all():
        raise DataError(
            f"dataset {name!r}: domains must be one number per sample, ({samples},), below the "
            f"{len(names)} domain_names, got {domains.shape}"
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
