"""Loader of IDX files, the format of MNIST and Fashion-MNIST, plain or gzipped."""

from __future__ import annotations

import gzip
from math import prod
from pathlib import Path

import numpy as np
from numpy.typing import NDArray

from experiments.datasets.dataset import DataError, Dataset

PARTS = {
    "training images": ("train-images", 3),
    "training labels": ("train-labels", 1),
    "test images": ("t10k-images", 3),
    "test labels": ("t10k-labels", 1),
}
UNSIGNED_BYTES = 0x08


def holds_idx(folder: Path) -> bool:
    """Whether a folder holds at least one of the four files."""
    return folder.is_dir() and any(_find(folder, *part) is not None for part in PARTS.values())


def load_idx(name: str, folder: Path) -> Dataset:
    """Load the four IDX files of a folder.

    File names are `train-images-idx3-ubyte`, `train-labels-idx1-ubyte` and the same with `t10k`,
    optionally with a dot before `idx` and the suffix `.gz`.

    Args:
        name: name of the data set.
        folder: folder of the four files.

    Raises:
        DataError: a file is missing or corrupt, or the arrays are invalid.
    """
    arrays = []
    for what, (stem, axes) in PARTS.items():
        path = _find(folder, stem, axes)
        if path is None:
            raise DataError(
                f"{folder} lacks the {what}: {stem}-idx{axes}-ubyte or {stem}-idx{axes}-ubyte.gz"
            )
        arrays.append(read_idx(path, axes))
    train_inputs, train_labels, test_inputs, test_labels = arrays
    return Dataset.from_arrays(
        name, (train_inputs, train_labels), (test_inputs, test_labels), f"IDX files in {folder}"
    )


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
    content = _bytes(path)
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
    names = [f"{stem}{dot}idx{axes}-ubyte{end}" for end in ("", ".gz") for dot in "-."]
    return next((folder / name for name in names if (folder / name).is_file()), None)


def _bytes(path: Path) -> bytes:
    try:
        return gzip.decompress(path.read_bytes()) if path.suffix == ".gz" else path.read_bytes()
    except Exception as error:  # damaged archives raise errors of several kinds
        raise DataError(f"{path} cannot be read: {error}") from error
