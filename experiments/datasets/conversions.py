"""Data sets of other libraries: arrays, torch data sets, Hugging Face data sets."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import replace
from typing import TYPE_CHECKING, Any, Unpack, cast

import numpy as np
from numpy.typing import ArrayLike

from bcfl.runtime import warn_of_data
from experiments.datasets.arrays import OPTIONS, Reading, seem_last
from experiments.datasets.dataset import Dataset, of_parts
from experiments.datasets.errors import DataError, check_options
from experiments.datasets.splits import names_of_parts, with_test

if TYPE_CHECKING:
    from torch.utils.data import Dataset as TorchDataset

SHOWN = 5
"""Classes without samples that a warning names."""


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
        inputs: (samples, ...) numbers, or a list of images of Pillow. Sequences, (samples, time,
            features), need `channels="none"`: they are taken for images of one channel otherwise.
        targets: (samples,) or (samples, 1) classes 0 to k - 1, or (samples, labels) of 0 and 1,
            where any number of labels may be present, or classes if each row is one-hot.
        test: inputs and targets of the original test set, if any.
        name: name of the data set.
        writers: writer of each sample, test samples last, as numbers or names; names are those of
            the clients of `experiments.partitions.writers`.
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
    if isinstance(inputs, tuple) and len(set(map(_axes, inputs))) > 1:
        raise DataError(
            f"dataset {name!r}: inputs and targets must be two arguments, and test a pair, "
            "from_numpy(inputs, targets, (test_inputs, test_targets)); got a tuple as inputs"
        )
    check_options(name, reading, OPTIONS)
    whole = Dataset.from_arrays(name, (inputs, targets), test, **reading)
    return whole if writers is None else replace(whole, writers=cast("Any", writers))


def _axes(part: Any) -> int | None:  # noqa: ANN401
    """Number of axes; None of what is no array."""
    try:
        return 3 if hasattr(part, "getbands") else np.ndim(part)  # of any image of Pillow
    except Exception:  # of code of other libraries
        return None


def from_torch(
    dataset: TorchDataset[Any],
    test: TorchDataset[Any] | None = None,
    *,
    name: str = "torch",
    **reading: Unpack[Reading],
) -> Dataset:
    """Make a data set of one of torch or torchvision, which is scaled to [0, 1] by default.

    Args:
        dataset: map-style data set of pairs, or a data loader of batches of pairs: a tensor or
            array with its channels first, or an image; and a class. A warning tells of further
            parts, which are not read. Its `classes` are the `class_names`, unless it has a
            `target_transform`; a warning tells of those without samples.
        test: the original test set, if any.
        name: name of the data set.
        **reading: `highest`, `scaled` and `channels`, as of `experiments.datasets.from_numpy`;
            channels are first by default.

    Raises:
        DataError: samples are no such pairs or differ in shape, parts have other `classes` or in
            another order, but for the last ones that one lacks, or the data set raised an error of
            any kind, which is the cause; see also `experiments.datasets.Dataset.from_arrays`.
    """
    check_options(name, reading, OPTIONS)
    sets = {"training": dataset} if test is None else {"training": dataset, "test": test}
    parts, names_of = {}, {}
    for part, one in sets.items():
        what = f"{name!r} ({part} part)"
        if hasattr(one, "iloc"):
            raise DataError(
                f"dataset {what}: data must be samples of a torch data set, got a "
                f"{type(one).__name__}; its columns are read by from_huggingface(data, "
                "inputs=[...], targets=...), or as arrays by from_numpy"
            )
        parts[part], names_of[part] = _read(what, one)
    names = _common_names(name, names_of, "")
    found = of_parts(name, parts, name, None, _FIRST | reading, names)
    _warn_of_channels(found, reading)
    _warn_of_absent(found)
    return found


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
            (or `training`, `testing`, `valid`, `val`, `dev`). Samples of `validation` are training
            samples where there is a `test`, as validation samples of MedMNIST are, and else the
            original test set; without samples it is left out. A warning names other splits.
        test: the original test set, if any, in place of the split `test`.
        inputs: column of images, or of arrays with their channels first, or several columns of
            numbers; by default the only one among `image`, `img`, `inputs`, `x`, where that has
            arrays, or else all but those that are usual for targets.
        targets: column of classes, or of rows of 0 and 1 where any number of labels may be present;
            by default the only one among `label`, `labels`, `target`, `targets`, or, without
            these, `y`, `fine_label`. Where it has names of classes, some classes may be absent.
        name: name of the data set.
        **reading: `highest`, `scaled` and `channels`, as of `experiments.datasets.from_numpy`;
            channels are first by default.

    Raises:
        DataError: there is no such column or split, parts differ in the names of classes, a split
            is a stream or empty, samples differ in shape, or code of the data set raised an error,
            which is the cause; see also `experiments.datasets.Dataset.from_arrays`.
    """
    check_options(name, reading, OPTIONS)
    if isinstance(inputs, Iterable) and not isinstance(inputs, str):
        inputs = list(inputs)
    splits = {"training": dataset}
    if isinstance(dataset, Mapping):
        splits = _splits(name, dataset, test)
    elif test is not None:
        splits["test"] = test
    parts, names_of = {}, {}
    for part, split in splits.items():
        what = f"{name!r} ({part} part)"
        parts[part], names_of[part] = _read(what, split, inputs, targets)
    names = _common_names(name, names_of, ", as `align_labels_with_mapping` of Hugging Face does")
    found = of_parts(name, parts, name, None, _FIRST | reading, names)
    _warn_of_channels(found, reading)
    return found


_FIRST: Reading = {"channels": "first"}


def _splits(name: str, dataset: Mapping[str, Any], test: Any | None) -> dict[str, Any]:  # noqa: ANN401
    """Splits by part, of which a given test set takes the place of the split `test`."""
    read = names_of_parts(dataset)
    if "training" not in read:
        raise DataError(f"dataset {name!r} must have a split train, got {', '.join(dataset)}")
    splits = {part: dataset[one] for part, one in read.items() if dataset[one] is not test}
    if test is not None:
        splits["test"] = test
    unread = [one for one in dataset if one not in read.values() and dataset[one] is not test]
    if unread:
        warn_of_data(
            f"dataset {name!r}: splits that are not read: {', '.join(unread)}; test=SPLIT gives "
            "another test set"
        )
    return with_test(splits)


def _read(
    what: str,
    dataset: Any,  # noqa: ANN401
    inputs: str | Sequence[str] | None = None,
    targets: str | None = None,
) -> tuple[tuple[Any, Any], tuple[str, ...] | None]:
    """Inputs and labels of a part, and the names of its classes."""
    from bcfl.data import samples_of

    try:
        found = samples_of(dataset, inputs, targets)
    except (TypeError, ValueError) as error:
        raise DataError(f"dataset {what}: {error}") from (error.__cause__ or error)
    return (found.inputs, found.targets), found.class_names


def _common_names(
    name: str, names_of: Mapping[str, tuple[str, ...] | None], remedy: str
) -> tuple[str, ...] | None:
    """Names of classes of all parts, see `bcfl.data.common_names`."""
    from bcfl.data import common_names

    try:
        by_one = f"number the labels of all parts by one list of names{remedy}"
        return common_names(names_of, by_one)
    except ValueError as error:
        raise DataError(f"dataset {name!r}: {error}") from None


def _warn_of_channels(dataset: Dataset, reading: Reading) -> None:
    """Warn of images whose channels, first by default, seem to be last."""
    shape = dataset.input_shape
    if reading.get("channels") is None and seem_last(shape):
        warn_of_data(
            f"dataset {dataset.name!r}: samples of shape {shape} are read with their channels "
            "first, but seem to have them last; set channels='last' (or 'first' or 'none', if that "
            "is meant)"
        )


def _warn_of_absent(dataset: Dataset) -> None:
    """Warn of classes without samples, as labels may be the numbers of other classes."""
    if dataset.class_names is None or dataset.label_sets is not None:
        return
    present = set(dataset.targets.tolist())
    absent = [one for number, one in enumerate(dataset.class_names) if number not in present]
    if absent:
        shown = ", ".join([*absent[:SHOWN], *["..."] * (len(absent) > SHOWN)])
        warn_of_data(
            f"dataset {dataset.name!r}: no sample is of {shown} among the "
            f"{len(dataset.class_names)} `classes` of the data set; if its labels are numbers of "
            "other classes, torch.utils.data.Subset(data, range(len(data))) leaves these out"
        )
