"""Loader of digits in MATLAB files, as the domains of Digits-Five are published."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from pathlib import Path

import numpy as np
from numpy.typing import NDArray

from experiments.datasets.dataset import DataError, Dataset


def load_mat(name: str, path: Path) -> Dataset:
    """Load digits from a MATLAB file, as the domains of Digits-Five are published.

    The arrays are those of `mnist_data.mat`, `mnistm_with_label.mat`, `usps_28x28.mat`,
    `syn_number.mat`, or `X` (height, width, channels, samples) and `y` of SVHN, whose test file
    has `test` in place of `train` in its name. A label of 10 is a zero.

    Args:
        name: name of the data set.
        path: the file; of SVHN that of training.

    Raises:
        DataError: the file is corrupt or holds other arrays.
    """
    arrays = _contents(path)
    for keys, pairs_of in LAYOUTS.items():
        if set(keys) <= set(arrays):
            train, test = pairs_of(arrays, path)
            return Dataset.from_arrays(name, train, test, str(path))
    raise DataError(
        f"{path} must hold the arrays of one of the files of Digits-Five, "
        f"{' or '.join(', '.join(keys) for keys in LAYOUTS)}; got {', '.join(arrays) or 'none'}"
    )


Pair = tuple[NDArray[np.generic], NDArray[np.int64]]
Arrays = Mapping[str, NDArray[np.generic]]


def _house_numbers(arrays: Arrays, path: Path) -> tuple[Pair, Pair | None]:
    other = path.with_name(path.name.replace("train", "test"))
    has_test = other != path and other.is_file()
    pairs = [arrays, _contents(other)] if has_test else [arrays]
    train, *test = [(np.moveaxis(each["X"], 3, 0), _digits(each["y"])) for each in pairs]
    return train, test[0] if test else None


def _split(images: str, labels: str) -> Callable[[Arrays, Path], tuple[Pair, Pair]]:
    def pairs(arrays: Arrays, path: Path) -> tuple[Pair, Pair]:
        del path
        train, test = (
            (arrays[images.format(part)], _digits(arrays[labels.format(part)]))
            for part in ("train", "test")
        )
        return train, test

    return pairs


def _nested(arrays: Arrays, path: Path) -> tuple[Pair, Pair]:
    table = arrays["dataset"]
    if table.shape != (2, 2):
        raise DataError(f"{path}: dataset must be a 2 x 2 cell array, got {table.shape}")
    train, test = ((np.asarray(images), _digits(np.asarray(labels))) for images, labels in table)
    return train, test


LAYOUTS: Mapping[tuple[str, ...], Callable[[Arrays, Path], tuple[Pair, Pair | None]]] = {
    ("X", "y"): _house_numbers,
    ("train_28", "test_28", "label_train", "label_test"): _split("{}_28", "label_{}"),
    ("train", "test", "label_train", "label_test"): _split("{}", "label_{}"),
    ("train_data", "train_label", "test_data", "test_label"): _split("{}_data", "{}_label"),
    ("dataset",): _nested,
}


def _contents(path: Path) -> dict[str, NDArray[np.generic]]:
    from scipy.io import loadmat

    try:
        arrays = loadmat(path)
    except Exception as error:  # damaged files raise errors of a dozen kinds
        raise DataError(f"{path} cannot be read as a MATLAB file: {error}") from error
    return {key: array for key, array in arrays.items() if not key.startswith("__")}


def _digits(labels: NDArray[np.generic]) -> NDArray[np.int64]:
    """Labels 0 to 9 of one-hot rows or of numbers."""
    one_hot = labels.ndim == 2 and labels.shape[1] > 1 and labels.shape[0] > 1
    numbers = labels.argmax(1) if one_hot else labels.reshape(-1).astype(np.int64)
    return np.where(numbers == 10, 0, numbers)
