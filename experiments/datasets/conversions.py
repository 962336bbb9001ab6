"""Data sets of other libraries: arrays, torch data sets, Hugging Face data sets."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import replace
from typing import TYPE_CHECKING, Any, Literal

import numpy as np
from numpy.typing import ArrayLike, NDArray

from experiments.datasets.dataset import DataError, Dataset

if TYPE_CHECKING:
    from torch.utils.data import Dataset as TorchDataset

Pair = tuple[NDArray[np.generic], NDArray[np.int64]]
TEST_SPLITS = ("test", "validation", "valid", "val")


def from_numpy(
    inputs: ArrayLike,
    targets: ArrayLike,
    test: tuple[ArrayLike, ArrayLike] | None = None,
    *,
    name: str = "arrays",
    writers: ArrayLike | None = None,
    channels: Literal["first", "last"] | None = None,
) -> Dataset:
    """Make a data set of arrays; see `Dataset.from_arrays` for how they are scaled.

    Args:
        inputs: (samples, ...) numbers.
        targets: (samples,) classes 0 to k - 1.
        test: inputs and targets of the original test set, if any.
        name: name of the data set.
        writers: writer of each sample, test samples last, as numbers or names.
        channels: where the channels of images are.

    Raises:
        DataError: see `Dataset.from_arrays`; or there is not one writer per sample.
    """
    if isinstance(inputs, tuple) and len({np.ndim(part) for part in inputs}) > 1:
        raise DataError(
            f"dataset {name!r}: inputs and targets must be two arguments, and test a pair, "
            "from_numpy(inputs, targets, (test_inputs, test_targets)); got a tuple as inputs"
        )
    whole = Dataset.from_arrays(name, (inputs, targets), test, channels=channels)
    if writers is None:
        return whole
    return replace(whole, writers=np.unique(np.asarray(writers), return_inverse=True)[1])


def from_torch(
    dataset: TorchDataset[Any], test: TorchDataset[Any] | None = None, *, name: str = "torch"
) -> Dataset:
    """Make a data set of one of torch or torchvision.

    Args:
        dataset: map-style data set of pairs: a tensor or array with its channels first, or an
            image; and a class.
        test: the original test set, if any.
        name: name of the data set.

    Raises:
        DataError: samples are no such pairs or differ in shape; see also `Dataset.from_arrays`.
    """
    train = _pairs(name, dataset)
    return Dataset.from_arrays(
        name, train, None if test is None else _pairs(name, test), name, channels="first"
    )


def from_huggingface(
    dataset: Any,  # noqa: ANN401 - of the optional package `datasets`
    test: Any = None,  # noqa: ANN401
    *,
    inputs: str | None = None,
    targets: str | None = None,
    name: str = "huggingface",
) -> Dataset:
    """Make a data set of one of the Hugging Face package `datasets`.

    Args:
        dataset: a `Dataset`, or a `DatasetDict` with `train` and perhaps `test` or `validation`.
        test: the original test set, if any.
        inputs: column of images, or of arrays with their channels first; by default the first of
            `image`, `img`, `inputs`, `x`.
        targets: column of classes; by default the first of `label`, `labels`, `fine_label`, `y`.
        name: name of the data set.

    Raises:
        DataError: there is no such column or split; see also `Dataset.from_arrays`.
    """
    if isinstance(dataset, Mapping):
        if "train" not in dataset:
            raise DataError(f"dataset {name!r} must have a split train, got {', '.join(dataset)}")
        held = next((split for split in TEST_SPLITS if split in dataset), None)
        test = dataset[held] if test is None and held is not None else test
        dataset = dataset["train"]
    columns = [str(column) for column in dataset.column_names]
    x = _column(name, columns, inputs, ("image", "img", "inputs", "x"))
    y = _column(name, columns, targets, ("label", "labels", "fine_label", "y"))
    parts = [dataset] if test is None else [dataset, test]
    pairs = [_stacked(name, list(part[x]), list(part[y])) for part in parts]
    return Dataset.from_arrays(
        name, pairs[0], pairs[1] if test is not None else None, name, channels="first"
    )


def _column(name: str, columns: Sequence[str], given: str | None, usual: Sequence[str]) -> str:
    found = [column for column in ((given,) if given else usual) if column in columns]
    if not found:
        wanted = repr(given) if given else " or ".join(usual)
        raise DataError(f"dataset {name!r} lacks the column {wanted}, got {', '.join(columns)}")
    return found[0]


def _pairs(name: str, dataset: Any) -> Pair:  # noqa: ANN401 - torch's stubs lack a length
    try:
        samples = [dataset[index] for index in range(len(dataset))]
        inputs, targets = zip(*((sample[0], sample[1]) for sample in samples), strict=True)
    except (TypeError, KeyError, IndexError, ValueError) as error:
        raise DataError(
            f"dataset {name!r} must have a length and pairs of an input and a class: {error}"
        ) from error
    return _stacked(name, inputs, targets)


def _stacked(name: str, inputs: Sequence[Any], targets: Sequence[Any]) -> Pair:
    arrays = [_array(sample) for sample in inputs]
    shapes = sorted({array.shape for array in arrays})
    if len(shapes) != 1:
        raise DataError(f"dataset {name!r}: inputs must agree in shape, got {shapes[:3]}")
    return np.stack(arrays), np.asarray([int(target) for target in targets], dtype=np.int64)


def _array(sample: Any) -> NDArray[np.generic]:  # noqa: ANN401 - tensors, arrays, images
    """A sample as an array; the channels of an image of Pillow come first."""
    array = np.asarray(sample)
    is_colour_image = hasattr(sample, "getbands") and array.ndim == 3
    return np.moveaxis(array, 2, 0) if is_colour_image else array
