"""Loader of IDX files, the format of MNIST, Fashion-MNIST and EMNIST, plain or gzipped."""

from __future__ import annotations

from dataclasses import dataclass
from math import prod
from pathlib import Path
from typing import Unpack

import numpy as np
from numpy.typing import NDArray

from experiments.datasets.arrays import Scaling
from experiments.datasets.dataset import Dataset
from experiments.datasets.errors import DataError
from experiments.datasets.formats.files import content_of, is_file, is_folder
from experiments.datasets.labels import check_labels

UNSIGNED_BYTES = 0x08


@dataclass(frozen=True)
class Stems:
    """How the names of the four files begin.

    Attributes:
        train: those of training images and labels.
        test: those of the original test set.
    """

    train: str = "train"
    test: str = "t10k"

    @property
    def parts(self) -> tuple[tuple[str, str, int], ...]:
        """What each file holds, how its name begins, and its number of axes."""
        return (
            ("training images", f"{self.train}-images", 3),
            ("training labels", f"{self.train}-labels", 1),
            ("test images", f"{self.test}-images", 3),
            ("test labels", f"{self.test}-labels", 1),
        )


MNIST = Stems()


def holds_idx(folder: Path, stems: Stems = MNIST) -> bool:
    """Whether a folder holds at least one of the four files."""
    return is_folder(folder) and any(
        _find(folder, stem, axes) is not None for _, stem, axes in stems.parts
    )


def load_idx(
    name: str, folder: Path, num_classes: int | None = None, **scaling: Unpack[Scaling]
) -> Dataset:
    """Load the four IDX files of a folder.

    File names are `train-images-idx3-ubyte`, `train-labels-idx1-ubyte` and the same with `t10k`,
    optionally with a dot before `idx` and the suffix `.gz`.

    Args:
        name: name of the data set.
        folder: folder of the four files.
        num_classes: number of classes; by default as many as there are.
        **scaling: `highest` and `scaled`, see `experiments.datasets.Dataset.from_arrays`.

    Raises:
        DataError: a file is missing or corrupt, or the arrays are invalid.
    """
    train_inputs, train_labels, test_inputs, test_labels = _arrays(folder, MNIST, num_classes)
    return Dataset.from_arrays(
        name,
        (train_inputs, train_labels),
        (test_inputs, test_labels),
        f"IDX files in {folder}",
        num_classes=num_classes,
        **scaling,
    )


def load_emnist(
    name: str, folder: Path, split: str, num_classes: int, kept: int | None = None
) -> Dataset:
    """Load the four IDX files of a split of EMNIST (Cohen et al., 2017).

    File names are `emnist-SPLIT-train-images-idx3-ubyte.gz` and the like. Images are stored with
    their axes swapped; those that are returned are upright. Labels of `letters` begin at 1.

    Args:
        name: name of the data set.
        folder: folder of the files.
        split: `balanced`, `byclass`, `bymerge`, `digits`, `letters` or `mnist`.
        num_classes: number of classes of the split.
        kept: only samples of the first so many classes; all by default.

    Raises:
        DataError: a file is missing or corrupt, or the arrays are invalid.
    """
    first = 1 if split == "letters" else 0
    pairs = []
    arrays = _arrays(folder, emnist_stems(split), num_classes, first)
    for images, labels in (arrays[:2], arrays[2:]):
        rows = labels < first + (kept or num_classes)
        pairs.append((images[rows].swapaxes(1, 2), labels[rows].astype(np.int64) - first))
    train, test = pairs
    source = f"EMNIST {split} in {folder}"
    return Dataset.from_arrays(
        name, train, test, source, highest=255, num_classes=kept or num_classes
    )


def emnist_stems(split: str) -> Stems:
    """How the names of the files of a split of EMNIST begin."""
    return Stems(f"emnist-{split}-train", f"emnist-{split}-test")


def _arrays(
    folder: Path, stems: Stems, num_classes: int | None, first: int = 0
) -> list[NDArray[np.uint8]]:
    arrays = []
    for what, stem, axes in stems.parts:
        path = _find(folder, stem, axes)
        if path is None:
            raise DataError(
                f"{folder} lacks the {what}: {stem}-idx{axes}-ubyte or {stem}-idx{axes}-ubyte.gz"
            )
        arrays.append(read_idx(path, axes))
        if axes == 1:
            check_labels(str(path), arrays[-1], num_classes, first)
    return arrays


def read_idx(path: Path, axes: int) -> NDArray[np.uint8]:
    """Read one IDX file of unsigned bytes.

    Args:
        path: the file; it is decompressed if its name ends in `.gz`.
        axes: expected number of axes.

    Returns:
        uint8 array of the shape stated in the header.

    Raises:
        DataError: the file cannot be decompressed, or its header or length is wrong.
    """
    content = content_of(path)
    head = 4 + 4 * axes
    if content[:4] != bytes([0, 0, UNSIGNED_BYTES, axes]):
        raise DataError(
            f"{path} is not an IDX file of unsigned bytes with {axes} axes: it must begin with "
            f"0000080{axes}, got {content[:4].hex() or 'nothing'}"
        )
    if len(content) < head:
        raise DataError(f"{path} is truncated: its header takes {head} bytes, got {len(content)}")
    shape = tuple(np.frombuffer(content, dtype=">u4", count=axes, offset=4).tolist())
    if len(content) != head + prod(shape):
        raise DataError(
            f"{path} {'is truncated' if len(content) < head + prod(shape) else 'is too long'}: its "
            f"header states {shape}, {head + prod(shape)} bytes in all, got {len(content)}"
        )
    return np.frombuffer(content, dtype=np.uint8, offset=head).reshape(shape)


def _find(folder: Path, stem: str, axes: int) -> Path | None:
    names = [f"{stem}{dot}idx{axes}-ubyte{end}" for end in ("", ".gz", ".GZ") for dot in "-."]
    return next((folder / name for name in names if is_file(folder / name)), None)
