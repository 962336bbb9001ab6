"""Loader of digits in MATLAB files, as the domains of Digits-Five are, and of LIBSVM's USPS."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from pathlib import Path
from typing import Unpack

import numpy as np
from numpy.typing import NDArray

from experiments.datasets.arrays import Scaling
from experiments.datasets.dataset import DataError, Dataset, check_labels

SIDE = 16
"""Height and width of the images of USPS."""


def load_mat(
    name: str, path: Path, num_classes: int | None = None, **scaling: Unpack[Scaling]
) -> Dataset:
    """Load digits from a MATLAB file, as the domains of Digits-Five are published.

    The arrays are those of `mnist_data.mat`, `mnistm_with_label.mat`, `usps_28x28.mat`,
    `syn_number.mat`, or `X` (height, width, channels, samples) and `y` of SVHN, whose test file
    has `test` in place of `train` in its name. A label of 10 is a zero.

    Args:
        name: name of the data set.
        path: the file; of SVHN that of training.
        num_classes: number of classes; by default as many as there are.
        **scaling: `highest` and `scaled`, see `experiments.datasets.Dataset.from_arrays`.

    Raises:
        DataError: the file or the test file of SVHN is missing or corrupt, or holds other arrays or
            labels.
    """
    arrays = _contents(path)
    for keys, pairs_of in LAYOUTS.items():
        if set(keys) <= set(arrays):
            train, test = pairs_of(arrays, path)
            check_labels(str(path), train[1], num_classes)
            if test is not None:
                held = _test_file(path) if keys == ("X", "y") else path
                check_labels(str(held), test[1], num_classes)
            source = str(path)
            return Dataset.from_arrays(
                name, train, test, source, num_classes=num_classes, **scaling
            )
    raise DataError(
        f"{path} must hold the arrays of one of the files of Digits-Five, "
        f"{' or '.join(', '.join(keys) for keys in LAYOUTS)}; got {', '.join(arrays) or 'none'}"
    )


def load_libsvm(name: str, path: Path, num_classes: int | None = None) -> Dataset:
    """Load USPS from `usps.bz2` and `usps.t.bz2`, as LIBSVM publishes it: 16 x 16 pixels.

    Labels begin at 1, and pixels are -1 to 1.

    Args:
        name: name of the data set.
        path: the file of training, which lies beside that of the test set.
        num_classes: number of classes; by default as many as there are.

    Raises:
        DataError: a file is missing or corrupt, or a label is out of range.
    """
    from sklearn.datasets import load_svmlight_file

    parts = []
    for each in (path, path.with_name(f"{path.stem}.t{path.suffix}")):
        if not each.is_file():
            raise DataError(f"{each.parent} lacks {each.name}")
        try:
            pixels, labels = load_svmlight_file(each, n_features=SIDE**2, dtype=np.float32)
        except Exception as error:  # damaged files raise errors of a dozen kinds
            raise DataError(f"{each} cannot be read as a file of LIBSVM: {error}") from error
        check_labels(str(each), labels.astype(np.int64), num_classes, first=1)
        images = (pixels.toarray().reshape(-1, SIDE, SIDE) + 1) / 2
        parts.append((images, labels.astype(np.int64) - 1))
    return Dataset.from_arrays(name, parts[0], parts[1], str(path), num_classes=num_classes)


Pair = tuple[NDArray[np.generic], NDArray[np.int64]]
Arrays = Mapping[str, NDArray[np.generic]]


def _house_numbers(arrays: Arrays, path: Path) -> tuple[Pair, Pair | None]:
    other = _test_file(path)
    if other != path and not other.is_file():
        raise DataError(f"{path.parent} lacks the test file {other.name} beside {path.name}")
    pairs = [arrays] if other == path else [arrays, _contents(other)]
    if not {"X", "y"} <= set(pairs[-1]):
        raise DataError(f"{other} must hold X and y, got {', '.join(pairs[-1]) or 'none'}")
    shapes = [each["X"].shape for each in pairs if each["X"].ndim != 4]
    if shapes:
        raise DataError(
            f"{path}: X must be (height, width, channels, samples), got {shapes[0]}; other arrays "
            "are read from an .npz file"
        )
    train, *test = [(np.moveaxis(each["X"], 3, 0), _digits(each["y"])) for each in pairs]
    return train, test[0] if test else None


def _test_file(path: Path) -> Path:
    return path.with_name(path.name.replace("train", "test"))


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
    return numbers if one_hot else np.where(numbers == 10, 0, numbers)
