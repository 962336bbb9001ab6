"""Loader of MATLAB files, as the domains of Digits-Five are, and of LIBSVM's USPS."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Unpack

import numpy as np
from numpy.typing import NDArray

from bcfl.runtime import warn_of_data
from experiments.datasets.arrays import Channels, Reading, Scaling, told_channels
from experiments.datasets.dataset import Dataset
from experiments.datasets.errors import DataError
from experiments.datasets.formats.files import is_file
from experiments.datasets.labels import check_labels, whole_labels

USPS = "usps.bz2"
"""Name of the training file of USPS that LIBSVM publishes."""
SIDE = 16
"""Height and width of the images of USPS."""
SVHN_TRAIN, SVHN_TEST = "train_32x32.mat", "test_32x32.mat"
"""How the names of the files of SVHN end."""
TEST_KEYS = (("Xtest", "ytest"), ("X_test", "y_test"))
"""Test samples beside `X` and `y`."""
NESTED = ("dataset",)
"""The array of the file of USPS."""


def load_mat(
    name: str, path: Path, num_classes: int | None = None, **scaling: Unpack[Scaling]
) -> Dataset:
    """Load samples from a MATLAB file, such as the domains of Digits-Five as they are published.

    The arrays are those of `mnist_data.mat`, `mnistm_with_label.mat`, `usps_28x28.mat` or
    `syn_number.mat`; or `X` and `y`, whose samples are rows of `X`, or images (height, width,
    samples) or (height, width, channels, samples) as in SVHN: beside its `train_32x32.mat` lies
    `test_32x32.mat`. Of other files, the first axis and the last must not both have the length of
    `y`, unless `X` is a table, or the samples of the other part tell. Test samples may be `Xtest`
    and `ytest`, or `X_test` and `y_test`; a warning names arrays beside these that are not read.
    Labels may be one-hot rows. A label of 10 is a zero in SVHN, in `usps_28x28.mat` and in known
    data sets of digits, unless there are labels of 0 as well. Of other files, labels 1 to k, as
    MATLAB counts, become 0 to k - 1, with a warning.

    The sizes tell where channels are, see `experiments.datasets.Dataset.from_arrays`. Where they do
    not, channels are the axis before that of samples if samples are the last axis, and else the
    first axis of an image, with a warning.

    Args:
        name: name of the data set.
        path: the file; of SVHN that of training.
        num_classes: number of classes; by default as many as there are.
        **scaling: `highest` and `scaled`, see `experiments.datasets.Dataset.from_arrays`.

    Raises:
        DataError: the file or the test file of SVHN is missing or corrupt, holds other arrays or
            labels, or the axis of samples is uncertain.
    """
    arrays = _contents(path)
    keys = next((keys for keys in LAYOUTS if set(keys) <= set(arrays)), None)
    if keys is None:
        raise DataError(
            f"{path} must hold X and y, or the arrays of one of the files of Digits-Five, "
            f"{' or '.join(', '.join(keys) for keys in DIGITS_FIVE)}; got "
            f"{', '.join(arrays) or 'none'}"
        )
    parts = LAYOUTS[keys](path, arrays)
    if num_classes == 10 or keys == NESTED or path.name.endswith(SVHN_TRAIN):
        parts = _zeros_for_tens(parts)
    if num_classes is None:
        parts = _from_zero(parts)
    for part in parts:
        check_labels(str(part.path), part.labels, num_classes)
    train, *test = [(part.inputs, part.labels) for part in parts]
    held = test[0] if test else None
    reading: Reading = {"channels": _channels(parts[0]), **scaling}
    return Dataset.from_arrays(name, train, held, str(path), num_classes=num_classes, **reading)


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
        if not is_file(each):
            raise DataError(f"{each.parent} lacks {each.name}")
        try:
            pixels, labels = load_svmlight_file(each, n_features=SIDE**2, dtype=np.float32)
        except Exception as error:  # damaged files raise errors of a dozen kinds
            raise DataError(f"{each} cannot be read as a file of LIBSVM: {error}") from error
        check_labels(str(each), labels.astype(np.int64), num_classes, first=1)
        images = (pixels.toarray().reshape(-1, SIDE, SIDE) + 1) / 2
        parts.append((images, labels.astype(np.int64) - 1))
    return Dataset.from_arrays(name, parts[0], parts[1], str(path), num_classes=num_classes)


Arrays = Mapping[str, NDArray[np.generic]]


@dataclass(frozen=True)
class Part:
    """Training or test samples.

    Attributes:
        path: the file that holds them.
        inputs: (samples, ...) numbers.
        labels: (samples,) classes, or what is there in their place.
        is_last: whether samples are the last axis in the file.
    """

    path: Path
    inputs: NDArray[np.generic]
    labels: NDArray[np.generic]
    is_last: bool = False


def _rows(path: Path, arrays: Arrays) -> list[Part]:
    keys, found = ("X", "y"), [(path, arrays, ("X", "y"))]
    if path.name.endswith(SVHN_TRAIN):
        other = path.with_name(path.name.replace(SVHN_TRAIN, SVHN_TEST))
        if not is_file(other):
            raise DataError(f"{path.parent} lacks the test file {other.name} beside {path.name}")
        found.append((other, _contents(other), keys))
    else:
        tests = [keys for keys in TEST_KEYS if set(keys) <= set(arrays)][:1]
        found += [(path, arrays, keys) for keys in tests]
        unread = set(arrays) - {key for _, _, keys in found for key in keys}
        if unread:
            warn_of_data(f"{path} holds arrays that are not read: {', '.join(sorted(unread))}")
    parts = []
    for file, held, (x, y) in found:
        if not {x, y} <= set(held):
            raise DataError(f"{file} must hold X and y, got {', '.join(held) or 'none'}")
        parts.append(_part(file, held[x], held[y]))
    told = [is_last for part in parts if (is_last := _are_last(part)) is not None]
    return [_samples_first(part, told) for part in parts]


def _are_last(part: Part) -> bool | None:
    """Whether samples are the last axis of images; None where the sizes do not tell."""
    inputs, samples = part.inputs, len(part.labels)
    if inputs.ndim not in (3, 4) or inputs.shape[-1] != samples:
        return False
    return None if inputs.shape[0] == samples else True


def _samples_first(part: Part, told: Sequence[bool]) -> Part:
    """The same with samples as the first axis of inputs.

    Args:
        part: as it is in the file.
        told: whether samples are the last axis in the parts whose sizes tell.
    """
    is_last = _are_last(part)
    if is_last is None and part.path.name.endswith((SVHN_TRAIN, SVHN_TEST)):
        is_last = True
    elif is_last is None and not told:
        raise DataError(
            f"{part.path}: X of shape {part.inputs.shape} has {len(part.labels)} samples in its "
            "first axis or in its last, which cannot be told; save them as an .npz file with "
            "x_train and y_train, whose first axis is that of samples"
        )
    elif is_last is None:
        is_last = told[0]
    return replace(part, inputs=np.moveaxis(part.inputs, -1, 0), is_last=True) if is_last else part


def _channels(part: Part) -> Channels | None:
    """Where the channels of images are; None of other samples, and of cubes after the samples."""
    if part.inputs.ndim != 4:
        return None
    shape = part.inputs.shape[1:]
    told = told_channels(shape)
    if told is not None or (not part.is_last and len(set(shape)) == 1):
        return told
    taken: Channels = "last" if part.is_last else "first"
    warn_of_data(
        f"{part.path}: images of shape {shape} have their channels first or last, which cannot be "
        f"told from the sizes; the {taken} axis is taken. Otherwise save them as an .npz file with "
        "x_train and y_train, samples first, and channels, which is 'first' or 'last', or 'none' "
        "if they are no images"
    )
    return taken


def _train_and_test(inputs: str, labels: str) -> Callable[[Path, Arrays], list[Part]]:
    return lambda path, arrays: [
        _part(path, arrays[inputs.format(part)], arrays[labels.format(part)])
        for part in ("train", "test")
    ]


def _nested(path: Path, arrays: Arrays) -> list[Part]:
    table = arrays["dataset"]
    if table.shape != (2, 2):
        raise DataError(f"{path}: dataset must be a 2 x 2 cell array, got {table.shape}")
    return [_part(path, np.asarray(inputs), np.asarray(labels)) for inputs, labels in table]


def _part(path: Path, inputs: NDArray[np.generic], labels: NDArray[np.generic]) -> Part:
    return Part(path, inputs, _labels(labels, inputs))


DIGITS_FIVE: Mapping[tuple[str, ...], Callable[[Path, Arrays], list[Part]]] = {
    ("train_28", "test_28", "label_train", "label_test"): _train_and_test("{}_28", "label_{}"),
    ("train", "test", "label_train", "label_test"): _train_and_test("{}", "label_{}"),
    ("train_data", "train_label", "test_data", "test_label"): _train_and_test(
        "{}_data", "{}_label"
    ),
    NESTED: _nested,
}
LAYOUTS = {("X", "y"): _rows, **DIGITS_FIVE}


def _contents(path: Path) -> dict[str, NDArray[np.generic]]:
    from scipy.io import loadmat

    try:
        arrays = loadmat(path)
    except Exception as error:  # damaged files raise errors of a dozen kinds
        raise DataError(f"{path} cannot be read as a MATLAB file: {error}") from error
    return {
        key: array if isinstance(array, np.ndarray) else array.toarray()  # of sparse matrices
        for key, array in arrays.items()
        if not key.startswith("__")
    }


def _labels(labels: NDArray[np.generic], inputs: NDArray[np.generic]) -> NDArray[np.generic]:
    """Labels, whole numbers of which a row or column is (samples,), but a row of one sample.

    A row is that of one sample if the inputs hold one, and images in their last axis no more.
    """
    are_one = len(labels) == len(inputs) == 1
    if are_one and inputs.ndim > 2:
        are_one = inputs.shape[-1] != labels.size
    return whole_labels(labels.reshape(-1) if 1 in labels.shape and not are_one else labels)


def _zeros_for_tens(parts: list[Part]) -> list[Part]:
    """The same with zeros in place of 10, as digits are, where there are no zeros."""
    if any((part.labels == 0).any() for part in parts):
        return parts
    return [replace(part, labels=np.where(part.labels == 10, 0, part.labels)) for part in parts]


def _from_zero(parts: list[Part]) -> list[Part]:
    """The same with classes 0 to k - 1 in place of labels 1 to k, where all of these occur."""
    labels = [part.labels for part in parts]
    if not all(one.ndim == 1 and one.dtype.kind in "iu" for one in labels):
        return parts
    present = np.unique(np.concatenate(labels))
    if not np.array_equal(present, np.arange(1, len(present) + 1)):
        return parts
    warn_of_data(
        f"{parts[0].path}: labels 1 to {len(present)} are read as classes 0 to {len(present) - 1}"
    )
    return [replace(part, labels=part.labels.astype(np.int64) - 1) for part in parts]
