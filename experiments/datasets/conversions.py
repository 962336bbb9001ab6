"""Data sets of other libraries: arrays, torch data sets, Hugging Face data sets."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import replace
from typing import TYPE_CHECKING, Any, Unpack

import numpy as np
from numpy.typing import ArrayLike

from bcfl.runtime import warn_of_data
from experiments.datasets.arrays import OPTIONS, Reading
from experiments.datasets.dataset import Dataset, of_parts
from experiments.datasets.errors import DataError, check_options
from experiments.datasets.labels import writer_numbers
from experiments.datasets.parts import Pair
from experiments.datasets.splits import VALIDATION

if TYPE_CHECKING:
    from torch.utils.data import Dataset as TorchDataset


def from_numpy(
    inputs: ArrayLike,
    targets: ArrayLike,
    test: tuple[ArrayLike, ArrayLike] | None = None,
    *,
    name: str = "arrays",
    writers: ArrayLike | None = None,
    **reading: Unpack[Reading],
) -> Dataset:
    """Make a data set of arrays, which are scaled to [0, 1] by default.

    Args:
        inputs: (samples, ...) numbers.
        targets: (samples,) or (samples, 1) classes 0 to k - 1, or (samples, labels) of 0 and 1,
            where any number of labels may be present, or classes if each row is one-hot.
        test: inputs and targets of the original test set, if any.
        name: name of the data set.
        writers: writer of each sample, test samples last, as numbers or names.
        **reading: `highest=NUMBER` divides inputs, `scaled=False` keeps them, and `channels` says
            where images have them; see `experiments.datasets.Dataset.from_arrays`.

    Raises:
        DataError: see `experiments.datasets.Dataset.from_arrays`; or there is not one writer per
            sample.

    Example:
        >>> from experiments import datasets
        >>> inputs, targets = [[0.0, 1.0], [1.0, 0.0], [1.0, 1.0]], [0, 1, 1]
        >>> dataset = datasets.from_numpy(inputs, targets, name="mine")
        >>> dataset.input_shape, dataset.num_outputs
        ((2,), 2)
    """
    if isinstance(inputs, tuple) and len({np.ndim(part) for part in inputs}) > 1:
        raise DataError(
            f"dataset {name!r}: inputs and targets must be two arguments, and test a pair, "
            "from_numpy(inputs, targets, (test_inputs, test_targets)); got a tuple as inputs"
        )
    check_options(name, reading, OPTIONS)
    whole = Dataset.from_arrays(name, (inputs, targets), test, **reading)
    if writers is None:
        return whole
    numbers = np.unique(writer_numbers(name, writers), return_inverse=True)[1]
    return replace(whole, writers=numbers)


def from_torch(
    dataset: TorchDataset[Any],
    test: TorchDataset[Any] | None = None,
    *,
    name: str = "torch",
    **reading: Unpack[Reading],
) -> Dataset:
    """Make a data set of one of torch or torchvision, which is scaled to [0, 1] by default.

    Args:
        dataset: map-style data set of pairs: a tensor or array with its channels first, or an
            image; and a class. A warning tells of further parts, which are not read.
        test: the original test set, if any.
        name: name of the data set.
        **reading: `highest`, `scaled` and `channels`, as of `experiments.datasets.from_numpy`;
            channels are first by default.

    Raises:
        DataError: samples are no such pairs or differ in shape, or the data set raised an error of
            any kind, which is the cause; see also `experiments.datasets.Dataset.from_arrays`.
    """
    check_options(name, reading, OPTIONS)
    train = _pairs(f"{name!r} (training part)", dataset)
    held = None if test is None else _pairs(f"{name!r} (test part)", test)
    return Dataset.from_arrays(name, train, held, name, **_FIRST | reading)


def from_huggingface(
    dataset: Any,  # noqa: ANN401 - of the optional package `datasets`
    test: Any = None,  # noqa: ANN401
    *,
    inputs: str | Sequence[str] | None = None,
    targets: str | None = None,
    name: str = "huggingface",
    **reading: Unpack[Reading],
) -> Dataset:
    """Make a data set of one of the Hugging Face package `datasets`.

    Inputs are scaled to [0, 1] by default.

    Args:
        dataset: a `Dataset`, or a `DatasetDict` with `train` and perhaps `test` and `validation`
            (or `valid`, `val`, `dev`). Samples of `validation` are training samples where there is
            a `test`, as validation samples of MedMNIST are, and else the original test set. A
            warning names other splits.
        test: the original test set, if any, in place of the split `test`.
        inputs: column of images, or of arrays with their channels first, or several columns of
            numbers; by default the first of `image`, `img`, `inputs`, `x`.
        targets: column of classes, or of rows of 0 and 1 where any number of labels may be present;
            by default the first of `label`, `labels`, `fine_label`, `y`.
        name: name of the data set.
        **reading: `highest`, `scaled` and `channels`, as of `experiments.datasets.from_numpy`;
            channels are first by default.

    Raises:
        DataError: there is no such column or split, a split is a stream or empty, samples differ in
            shape, or code of the data set raised an error, which is the cause; see also
            `experiments.datasets.Dataset.from_arrays`.
    """
    check_options(name, reading, OPTIONS)
    splits = {"training": dataset}
    if isinstance(dataset, Mapping):
        splits, test = _splits(name, dataset, test)
    if test is not None:
        splits["test"] = test
    parts = {
        part: _of_columns(f"{name!r} ({part} part)", split, inputs, targets)
        for part, split in splits.items()
    }
    return of_parts(name, parts, name, None, _FIRST | reading)


_FIRST: Reading = {"channels": "first"}


def _splits(
    name: str,
    dataset: Mapping[str, Any],
    test: Any | None,  # noqa: ANN401
) -> tuple[dict[str, Any], Any | None]:
    """Splits to train on, and the test set: the given one, or else the first split of that kind."""
    if "train" not in dataset:
        raise DataError(f"dataset {name!r} must have a split train, got {', '.join(dataset)}")
    name_of_validation = next((split for split in VALIDATION if split in dataset), None)
    validation = None if name_of_validation is None else dataset[name_of_validation]
    if test is None:
        test = dataset.get("test", validation)
    read = ("train", "test", name_of_validation)
    unread = [one for one in dataset if one not in read and dataset[one] is not test]
    if unread:
        warn_of_data(
            f"dataset {name!r}: splits that are not read: {', '.join(unread)}; test=SPLIT gives "
            "another test set"
        )
    splits = {"training": dataset["train"]}
    if validation is not None and validation is not test:
        splits["validation"] = validation
    return splits, test


def _of_columns(
    what: str,
    dataset: Any,  # noqa: ANN401
    inputs: str | Sequence[str] | None,
    targets: str | None,
) -> Pair:
    from bcfl.data import column_names, samples_of

    try:
        columns = column_names(dataset)
        x = inputs or _usual("inputs", columns, ("image", "img", "inputs", "x"))
        y = targets or _usual("targets", columns, ("label", "labels", "fine_label", "y"))
        found, labels = samples_of(dataset, x, y)
    except (TypeError, ValueError) as error:
        raise DataError(f"dataset {what}: {error}") from (error.__cause__ or error)
    return found, labels


def _usual(what: str, columns: Sequence[str], usual: Sequence[str]) -> str:
    found = [column for column in usual if column in columns]
    if not found:
        raise ValueError(
            f"lacks the column {' or '.join(usual)}, got {', '.join(columns)}; say which as {what}"
        )
    return found[0]


class _FirstTwo:
    """The first two parts of each sample of a torch data set."""

    def __init__(self, dataset: Any) -> None:  # noqa: ANN401 - torch's stubs lack a length
        self.dataset = dataset
        self.has_more = False

    def __len__(self) -> int:
        return len(self.dataset)

    def __getitem__(self, index: int) -> Any:  # noqa: ANN401
        sample = self.dataset[index]
        if not isinstance(sample, tuple | list):
            return sample
        self.has_more |= len(sample) > 2
        return sample[:2]


def _pairs(what: str, dataset: Any) -> Pair:  # noqa: ANN401
    from bcfl.data import samples_of

    named = type(type(dataset).__name__, (_FirstTwo,), {})  # as the data set, for errors
    first_two = named(dataset)
    try:
        found, labels = samples_of(first_two)
    except (TypeError, ValueError) as error:
        raise DataError(
            f"dataset {what} must have a length and pairs of an input and a class: {error}"
        ) from (error.__cause__ or error)
    if first_two.has_more:
        warn_of_data(
            f"dataset {what}: of samples only the first two parts are read, an input and a class; "
            "dataclasses.replace(dataset, domains=..., domain_names=...) adds domains"
        )
    return found, labels
