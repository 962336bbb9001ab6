"""Samples that users give, as tensors of the library's own.

Arrays of numpy and torch, lists, data frames and memory maps pass through here. What is returned
shares no memory with what was given.
"""

from __future__ import annotations

from collections.abc import Hashable, Iterable, Mapping, Sequence
from reprlib import repr as shortened
from typing import Any

import numpy as np
import torch
from numpy.typing import ArrayLike, NDArray
from torch import Tensor

from bcfl.runtime.arrays import AS_ROWS, check_dense, plain_tensor, real_array
from bcfl.runtime.numbers import check_int64, check_present, rounded_number
from bcfl.runtime.suggestions import described

AS_CLASSES = (
    "; number classes by one list for all clients, such as "
    "`classes = sorted(set(all_labels), key=str)` with the labels of all of them: "
    "`[classes.index(label) for label in labels]`, or `classes=classes` in "
    "ClientData.from_arrays and from_dataset"
)
"""What to do about text in place of classes."""


def inputs_tensor(values: ArrayLike | Tensor, what: str = "inputs") -> Tensor:
    """A copy of inputs; floating-point numbers keep their precision, others become float32.

    Where this would round a whole number, they become float64.

    Args:
        values: (samples, ...) numbers.
        what: name of the inputs, for errors.

    Raises:
        TypeError: see `bcfl.runtime.real_array`.
        ValueError: a value is missing, or there is no axis of samples.
    """
    array = real_array(values, what)
    sizes = {2: torch.float16, 4: torch.float32}
    kept = sizes.get(array.dtype.itemsize, torch.float64)
    if array.dtype.kind != "f":
        kept = torch.float32 if rounded_number(array) is None else torch.float64
    return _copied(array, kept, what)


def targets_tensor(
    values: ArrayLike | Tensor, what: str = "targets", of_text: str = AS_CLASSES
) -> Tensor:
    """A copy of targets; floating-point numbers keep their precision, others become int64.

    Args:
        values: (samples,) classes, (samples, outputs) numbers, or (samples, labels) of 0 and 1.
        what: name of the targets, for errors.
        of_text: what to do about text, for errors.

    Raises:
        TypeError: see `bcfl.runtime.real_array`.
        ValueError: a value is missing, there is no axis of samples, or a whole number is too large
            for int64.
    """
    array = real_array(values, what, of_text)
    if array.dtype.kind == "f":
        return inputs_tensor(array, what)
    check_int64(array, what)
    return _copied(array, torch.int64, what)


def class_numbers(
    values: ArrayLike | Tensor, classes: Sequence[Any], what: str = "targets"
) -> Tensor:
    """Labels as their places in a list of classes, which is the same for all clients.

    Args:
        values: (samples,) labels, such as text.
        classes: all labels, each once.
        what: name of the values, for errors.

    Returns:
        (samples,) int64, at least 0.

    Raises:
        TypeError: the classes are no sequence, or a label is masked or cannot be hashed.
        ValueError: the labels are no row, one is none of the classes, or a class is repeated.
    """
    places = {label: place for place, label in enumerate(class_list(classes))}
    if isinstance(values, Tensor):
        values = plain_tensor(values, what).numpy()
    check_dense(values, what)
    labels = np.asarray(values, object)
    if labels.ndim != 1:
        raise ValueError(f"{what} must be one label per sample, got shape {labels.shape}")
    try:
        return torch.tensor([places[label] for label in labels.tolist()], dtype=torch.int64)
    except KeyError as error:
        flags = [label in places for label in labels.tolist()]
        check_present(np.where(flags, "", labels), what)
        raise ValueError(
            f"{what} must be among the {len(places)} classes {shortened(list(places))}, got "
            f"{_plain(error.args[0])!r} in sample {flags.index(False)} (from 0)"
        ) from None
    except TypeError:
        several = next(one for one in labels.tolist() if not isinstance(one, Hashable))
        raise TypeError(
            f"{what} must be one label per sample, got {described(several)}{AS_ROWS}, and leave "
            "out classes"
        ) from None


def class_list(classes: Sequence[Any]) -> tuple[Any, ...]:
    """Labels of all classes, in the order of their numbers.

    Args:
        classes: all labels, each once.

    Raises:
        TypeError: the classes have no order, or a label cannot be hashed.
        ValueError: they are no row, there is none, or one is repeated.
    """
    if isinstance(classes, str | Mapping) or not hasattr(classes, "__getitem__"):
        are_some = isinstance(classes, Iterable) and not isinstance(classes, str)
        made = (
            "sorted(classes, key=str)" if isinstance(classes, set | frozenset) else "list(classes)"
        )
        raise TypeError(
            f"classes must be a list of all labels, got {described(classes)}"
            + f"; `{made}` makes one" * are_some
        )
    known = np.asarray(classes, object)
    if known.ndim != 1 or not len(known):
        raise ValueError(f"classes must be a row of labels, at least one, got shape {known.shape}")
    labels = tuple(map(_plain, known.tolist()))
    if len(set(labels)) < len(labels):
        raise ValueError(f"classes must be distinct, got {shortened(list(labels))}")
    return labels


def _plain(label: Any) -> Any:  # noqa: ANN401 - as it was given
    """A label of numpy as one of Python, which is equal to it and reads better."""
    return label.item() if isinstance(label, np.str_ | np.number | np.bool_) else label


def _copied(array: NDArray[np.generic], dtype: torch.dtype, what: str) -> Tensor:
    if array.ndim == 0:
        raise ValueError(f"{what} must have one row per sample, got a single number")
    with torch.inference_mode(False):  # where gradients may pass later
        tensor = torch.empty(array.shape, dtype=dtype, device="cpu")
    tensor.numpy()[...] = array
    return tensor
