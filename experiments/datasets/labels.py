"""Labels of samples as numbers."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray

from bcfl.runtime import EXACT_IN_FLOAT64
from experiments.datasets.errors import DataError

NUMBERED = (
    "number the labels `y` of training and test samples together: "
    "`classes, y = numpy.unique({}, return_inverse=True)`"
)
"""What to do about labels that are text, or integers with gaps; takes the labels."""

UNLABELLED = -1
"""The label of samples without one in some test sets."""
WITHOUT_LABEL = "-1 if this means that they have no label, as numbering would make it a class"
"""What that label means, and when such samples are to be left out."""


class Labels(NamedTuple):
    """Labels of all parts as numbers.

    Attributes:
        by_part: (samples,) labels, of any type unless they were given as rows.
        label_sets: (classes, labels) bool sets of labels that the numbers stand for, if they do.
        num_classes: number of columns of one-hot rows; None of other labels.
    """

    by_part: dict[str, NDArray[Any]]
    label_sets: NDArray[np.bool_] | None = None
    num_classes: int | None = None


def check_labels(where: str, labels: NDArray[Any], num_classes: int | None, first: int = 0) -> None:
    """Check that integer labels are those of a published data set.

    Args:
        where: file, and array in it, for the message.
        labels: (samples,) or (samples, 1) labels.
        num_classes: number of classes; None if any is allowed.
        first: lowest label.

    Raises:
        DataError: a label is out of range.
    """
    if num_classes is None or labels.dtype.kind not in "iu":
        return
    outside = labels[(labels < first) | (labels >= first + num_classes)]
    if outside.size:
        raise DataError(
            f"{where}: labels must be {first} to {first + num_classes - 1}, got {outside.flat[0]}"
        )


def whole_labels(labels: NDArray[Any]) -> NDArray[Any]:
    """Labels as whole numbers, where that loses nothing; others as they are."""
    is_whole = labels.dtype.kind in "bf" and _are_whole(labels)
    return labels.astype(np.int64) if is_whole else labels


def numbered_labels(name: str, given: Mapping[str, NDArray[Any]]) -> Labels:
    """Labels by part as one number for each sample.

    Rows of 0 and 1 are classes where each of them is one-hot, and else sets of labels.

    Args:
        name: name of the data set, for the message.
        given: labels by part, `training` among them: (samples,) or (samples, 1) classes, or
            (samples, labels) rows.

    Raises:
        DataError: rows differ in length, or are not of 0 and 1.
    """
    labels = {part: whole_labels(_one_column(one)) for part, one in given.items()}
    shape = labels["training"].shape[1:]
    _check_one_kind(name, {part: one.shape for part, one in labels.items()})
    if len(shape) != 1 or shape[0] < 2:
        return Labels(labels)
    for part, rows in labels.items():
        _check_rows(f"{name!r} ({part} part)", rows, shape[0])
    rows = np.concatenate([*labels.values()]).astype(bool)
    ends = np.cumsum([len(one) for one in labels.values()])[:-1]

    def by_part(numbers: NDArray[Any]) -> dict[str, NDArray[Any]]:
        return dict(zip(labels, np.split(numbers.astype(np.int64), ends), strict=True))

    if (rows.sum(axis=1) == 1).all():
        return Labels(by_part(rows.argmax(axis=1)), num_classes=shape[0])
    sets, numbers = np.unique(rows, axis=0, return_inverse=True)
    return Labels(by_part(numbers.reshape(-1)), label_sets=sets)


def _check_one_kind(name: str, shapes: Mapping[str, tuple[int, ...]]) -> None:
    if {len(shape) for shape in shapes.values()} == {1, 2}:
        kinds = {1: "one each", 2: "rows"}
        shown = ", ".join(f"{part} {kinds[len(one)]} {one}" for part, one in shapes.items())
        raise DataError(
            f"dataset {name!r}: labels must be one for each sample, or rows of 0 and 1, in all "
            f"parts alike, got {shown}; one-hot rows become classes by `numpy.argmax(y, axis=1)`"
        )


def _check_rows(what: str, rows: NDArray[Any], length: int) -> None:
    odd = rows[~np.isin(rows, (0, 1))]
    if rows.shape[1:] != (length,) or odd.size:
        got = f"{odd[0]} among rows" if odd.size else "rows"
        raise DataError(
            f"dataset {what}: labels must be rows of 0 and 1, as many in each part, (samples, "
            f"{length}) as in training, got {got} of shape {rows.shape}"
        )


def number_of_classes(name: str, targets: NDArray[np.int64]) -> int:
    """Number of classes of labels, each of which must be present.

    Args:
        name: name of the data set, for the message.
        targets: (samples,) labels of all parts.

    Raises:
        DataError: they are not 0 to k - 1, each of them present.
    """
    present = np.unique(targets)
    if not np.array_equal(present, np.arange(len(present))):
        shown = ", ".join(map(str, present[:6])) + (", ..." if len(present) > 6 else "")
        raise DataError(
            f"dataset {name!r}: labels must be the integers 0 to k - 1, each of them present, "
            f"got {len(present)} distinct ones: {shown}; {_counted_from_zero(present)}"
        )
    return len(present)


def as_integers(labels: NDArray[Any]) -> str:
    """What to do about labels that are no integers, in words.

    Args:
        labels: (samples,) of another type.
    """
    from bcfl.runtime import AS_ROWS, holds_sets

    kind = labels.dtype.kind
    if kind not in "cMm" and _are_whole(labels):
        return "; give `numpy.asarray(y, float).astype(int)` in place of such labels `y`"
    if kind == "f" and (labels != np.round(labels)).any():
        return "; numbers to predict (regression) are for bcfl.ClientData.from_arrays in Python"
    if holds_sets(labels):
        return AS_ROWS
    is_mixed = kind == "O" and not all(isinstance(one, str) for one in labels.flat)
    return f"; {NUMBERED.format('[*map(str, y)]' if is_mixed else 'y')}"


def _one_column(labels: NDArray[Any]) -> NDArray[Any]:
    """Labels (samples, 1), as Keras and MedMNIST have them, as (samples,)."""
    return labels[:, 0] if labels.shape[1:] == (1,) else labels


def _are_whole(labels: NDArray[Any]) -> bool:
    """Whether floating-point numbers, or text of numbers, are integers that are exact."""
    try:
        numbers = labels.astype(float)
    except (TypeError, ValueError):
        return False
    return bool(((np.abs(numbers) <= EXACT_IN_FLOAT64) & (numbers == np.round(numbers))).all())


def _counted_from_zero(present: NDArray[np.int64]) -> str:
    """What to do about labels that are not 0 to k - 1."""
    if np.array_equal(present, np.arange(1, len(present) + 1)):
        return (
            "classes are counted from 0: give `numpy.asarray(y) - 1` for labels `y`, in all parts"
        )
    if present[0] == UNLABELLED and 0 in present:
        return f"leave out samples of {WITHOUT_LABEL}; if it is a class, {NUMBERED.format('y')}"
    return NUMBERED.format("y")
