"""Loader of CIFAR-10 as published: batches as Python pickles or as binary records."""

from __future__ import annotations

import io
import pickle
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray

from experiments.datasets.dataset import Dataset, of_parts
from experiments.datasets.errors import DataError
from experiments.datasets.formats.files import content_of, is_file, text_of
from experiments.datasets.labels import check_labels

TRAIN_BATCHES = tuple(f"data_batch_{number}" for number in range(1, 6))
TEST_BATCH = "test_batch"
META = "batches.meta"
"""File of the names of the classes, which may be missing; beside binary records it ends in .txt."""
SHAPE = (3, 32, 32)
RECORD = 1 + 3 * 32 * 32
"""Bytes of a binary record: a label, then the red, green and blue pixels."""


def holds_cifar(folder: Path) -> bool:
    """Whether a folder holds at least one of the batches."""
    return _suffix(folder) is not None


def load_cifar(name: str, folder: Path, num_classes: int | None = None) -> Dataset:
    """Load five training batches and the test batch (Krizhevsky, 2009).

    Args:
        name: name of the data set.
        folder: folder of `data_batch_1` to `data_batch_5` and `test_batch`, all of them with the
            suffix `.bin`, or none. Names of the classes are in `batches.meta` beside them, or
            `batches.meta.txt`, if there is such a file.
        num_classes: number of classes; by default as many as there are.

    Raises:
        DataError: a batch is missing, a file is corrupt, or a label is out of range.
    """
    paths = [folder / f"{batch}{_suffix(folder) or ''}" for batch in (*TRAIN_BATCHES, TEST_BATCH)]
    parts = [_batch(path) for path in paths]
    for path, (_, targets) in zip(paths, parts, strict=True):
        check_labels(str(path), targets, num_classes)
    images, labels = (np.concatenate(arrays) for arrays in zip(*parts[:-1], strict=True))
    return of_parts(
        name,
        {"training": (images, labels), "test": parts[-1]},
        f"CIFAR-10 batches in {folder}",
        num_classes,
        {"highest": 255, "channels": "first"},
        _class_names(folder / (META + ".txt" * (paths[0].suffix == ".bin"))),
    )


def _class_names(path: Path) -> tuple[str, ...] | None:
    """Names of the classes in a file, a name a line or pickled; None if there is no such file."""
    if not is_file(path):
        return None
    if path.suffix == ".txt":
        return tuple(line.strip() for line in text_of(path).splitlines() if line.strip())
    try:
        return tuple(map(bytes.decode, _unpickled(content_of(path))[b"label_names"]))
    except DataError:
        raise
    except Exception as error:  # damaged pickles raise errors of a dozen kinds
        raise DataError(f"{path} cannot be read as names of classes: {error}") from error


def _suffix(folder: Path) -> str | None:
    """The suffix that most batches have, None if there are none."""
    found = {
        suffix: sum(is_file(folder / f"{one}{suffix}") for one in (*TRAIN_BATCHES, TEST_BATCH))
        for suffix in (".bin", "")
    }
    best = max(found, key=lambda suffix: found[suffix])
    return best if found[best] else None


def _batch(path: Path) -> tuple[NDArray[np.uint8], NDArray[np.int64]]:
    if not is_file(path):
        raise DataError(f"{path.parent} lacks {path.name}")
    content = content_of(path)
    try:
        images, labels = _records(content) if path.suffix == ".bin" else _pickled(content)
        return images.reshape(-1, *SHAPE), labels
    except Exception as error:  # damaged pickles raise errors of a dozen kinds
        raise DataError(f"{path} cannot be read as a batch of CIFAR-10: {error}") from error


def _records(packed: bytes) -> tuple[NDArray[np.uint8], NDArray[np.int64]]:
    content = np.frombuffer(packed, dtype=np.uint8)
    if not len(content) or len(content) % RECORD:
        raise ValueError(f"it must be records of {RECORD} bytes, got {len(content)} bytes")
    records = content.reshape(-1, RECORD)
    return records[:, 1:], records[:, 0].astype(np.int64)


def _pickled(content: bytes) -> tuple[NDArray[np.uint8], NDArray[np.int64]]:
    batch = _unpickled(content)
    if not isinstance(batch, dict):
        raise ValueError(f"it must hold a dictionary with data and labels, got {batch!r:.80}")
    missing = [key.decode() for key in (b"data", b"labels") if key not in batch]
    if missing:
        held = [key.decode() if isinstance(key, bytes) else str(key) for key in batch]
        raise ValueError(f"it lacks {' and '.join(missing)}, and holds {', '.join(held)}")
    images, labels = np.asarray(batch[b"data"]), np.asarray(batch[b"labels"])
    if images.dtype != np.uint8 or images.ndim != 2 or len(images) != len(labels):
        raise ValueError(f"data must be (samples, 3072) uint8, got {images.shape} {images.dtype}")
    return images, labels


def _unpickled(content: bytes) -> Any:  # noqa: ANN401 - what a file holds
    return _ArraysOnly(io.BytesIO(content), encoding="bytes").load()


class _ArraysOnly(pickle.Unpickler):
    """Reads pickled arrays, lists and dictionaries, and refuses everything that could run code."""

    def find_class(self, module: str, name: str) -> Any:  # noqa: ANN401 - as in pickle
        allowed = {
            "_reconstruct": np.empty(0).__reduce__()[0],
            "ndarray": np.ndarray,
            "dtype": np.dtype,
        }
        if module.split(".")[0] == "numpy" and name in allowed:
            return allowed[name]
        if (module, name) == ("_codecs", "encode"):
            return super().find_class(module, name)
        raise pickle.UnpicklingError(f"it holds {module}.{name}, not only arrays")
