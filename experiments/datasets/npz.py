"""Loader of NumPy archives: training and test arrays, those of MedMNIST, and images as JPEG."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import replace
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray

from experiments.datasets.dataset import DataError, Dataset, check_labels, concatenated
from experiments.datasets.images import channels_first, decoded

TRAIN_KEYS, TEST_KEYS = ("x_train", "y_train"), ("x_test", "y_test")
WHOLE_KEYS = ("x", "y")
MEDICAL_KEYS = tuple(
    f"{part}_{what}" for part in ("train", "val", "test") for what in ("images", "labels")
)
JPEG_KEYS = ("jpeg", "offsets", "label", "is_train")
LABEL_KEYS = ("y_train", "y_test", "y", "train_labels", "val_labels", "test_labels", "label")
OPTIONS: Mapping[str, tuple[str, tuple[type, ...]]] = {
    "highest": ("number", (int, float)),
    "scaled": ("truth value", (bool,)),
    "channels": ("text", (str,)),
}
"""Keywords of `Dataset.from_arrays`, with what they are in words and as types."""


def holds_samples(path: Path) -> bool:
    """Whether a file is an archive with inputs and labels."""
    try:
        with path.open("rb") as file, np.load(file, allow_pickle=False) as archive:
            held = set(getattr(archive, "files", ()))
    except Exception:  # damaged archives raise errors of a dozen kinds
        return False
    return any(set(keys) <= held for keys in (TRAIN_KEYS, WHOLE_KEYS, MEDICAL_KEYS, JPEG_KEYS))


def load_npz(name: str, path: Path, num_classes: int | None = None) -> Dataset:
    """Load an archive, and the writers of its samples if NAME_train_writers.npz exists.

    That file, and NAME_test_writers.npz if there is a test set, hold one array `writer`, as in
    archives made from QMNIST.

    The archive holds `x_train`, `y_train` and optionally `x_test`, `y_test`; or `x`, `y` without a
    test set; or the arrays of MedMNIST (Yang et al., 2023), whose validation samples follow those
    of training, and whose labels are one class or a row of 0 and 1 for each sample; or images as
    `jpeg` (bytes one after the other), `offsets`, `label`, `is_train`.

    Beside `x_train` or `x` it may hold `highest`, `scaled` or `channels`, which say how the inputs
    are read, see `experiments.datasets.Dataset.from_arrays`: word numbers are saved by
    `numpy.savez(path, x_train=x, y_train=y, scaled=False)`.

    Args:
        name: name of the data set.
        path: the `.npz` file.
        num_classes: number of classes; by default as many as there are.

    Raises:
        DataError: the file is corrupt, lacks an array or holds pickled objects, or the arrays are
            invalid.
    """
    arrays = _arrays(path)
    for key in arrays.keys() & set(LABEL_KEYS):
        if arrays[key].shape[1:] in ((), (1,)):
            check_labels(f"{path}, {key}", arrays[key], num_classes)
    if set(MEDICAL_KEYS) & set(arrays):
        return _medical(name, path, arrays, num_classes)
    if set(JPEG_KEYS) <= set(arrays):
        return _of_jpeg(name, path, arrays, num_classes)
    if set(WHOLE_KEYS) <= set(arrays) and "x_train" not in arrays:
        train = arrays["x"], arrays["y"]
        options = {"num_classes": num_classes, **_options(path, arrays)}
        return Dataset.from_arrays(name, train, None, str(path), **options)
    missing = [key for key in TRAIN_KEYS if key not in arrays]
    if missing or len(arrays.keys() & set(TEST_KEYS)) == 1:
        missing = missing or [key for key in TEST_KEYS if key not in arrays]
        raise DataError(
            f"{path} must hold x_train and y_train, and both or neither of x_test and y_test; "
            f"it lacks {', '.join(missing)}"
        )
    test = (arrays["x_test"], arrays["y_test"]) if "x_test" in arrays else None
    train = arrays["x_train"], arrays["y_train"]
    options = {"num_classes": num_classes, **_options(path, arrays)}
    dataset = Dataset.from_arrays(name, train, test, str(path), **options)
    return replace(dataset, writers=_writers(path, has_test=test is not None))


def _options(path: Path, arrays: dict[str, NDArray[np.generic]]) -> dict[str, Any]:
    """How the archive says that its inputs are to be read."""
    options = {key: arrays[key] for key in OPTIONS if key in arrays}
    for key, array in options.items():
        kind, types = OPTIONS[key]
        if array.ndim or type(array.item()) not in types:
            raise DataError(f"{path}: {key} must be one {kind}, got {array.dtype} {array.shape}")
    return {key: array.item() for key, array in options.items()}


def _medical(
    name: str, path: Path, arrays: dict[str, NDArray[np.generic]], num_classes: int | None
) -> Dataset:
    missing = [key for key in MEDICAL_KEYS if key not in arrays]
    if missing:
        raise DataError(f"{path} holds arrays of MedMNIST, but lacks {', '.join(missing)}")
    pairs = []
    for part in ("train", "val", "test"):
        images, labels = arrays[f"{part}_images"], arrays[f"{part}_labels"]
        if labels.ndim != 2:
            raise DataError(
                f"{path}: {part}_labels must be (samples, 1), one class for each sample, or "
                f"(samples, labels) of 0 and 1, got {labels.shape}"
            )
        is_volume = images.ndim == 4 and images.shape[-1] == images.shape[1]
        pairs.append((images[:, None] if is_volume else images, labels))
    *pairs, test = pairs
    train = concatenated(name, pairs)
    return Dataset.from_arrays(name, train, test, str(path), highest=255, num_classes=num_classes)


def _of_jpeg(
    name: str, path: Path, arrays: dict[str, NDArray[np.generic]], num_classes: int | None
) -> Dataset:
    content, offsets = arrays["jpeg"].astype(np.uint8).tobytes(), arrays["offsets"].astype(np.int64)
    labels, is_train = arrays["label"], arrays["is_train"].astype(bool)
    if len(offsets) != len(labels) + 1 or is_train.shape != labels.shape[:1]:
        raise DataError(
            f"{path}: offsets must be one more than label and is_train, got {offsets.shape}, "
            f"{labels.shape} and {is_train.shape}"
        )
    spans = zip(offsets[:-1].tolist(), offsets[1:].tolist(), strict=True)
    images = channels_first(np.stack([decoded(content[start:stop]) for start, stop in spans]))
    test = (images[~is_train], labels[~is_train]) if not is_train.all() else None
    train = images[is_train], labels[is_train]
    return Dataset.from_arrays(
        name,
        train,
        test,
        f"JPEG images of {path}",
        highest=255,
        channels="first",
        num_classes=num_classes,
    )


def _writers(path: Path, has_test: bool) -> NDArray[np.int64] | None:
    parts = []
    for part in ("train", "test") if has_test else ("train",):
        sibling = path.with_name(f"{path.stem}_{part}_writers.npz")
        if not sibling.is_file():
            return None
        parts.append(_arrays(sibling, ("writer",)).get("writer", np.zeros(0)).astype(np.int64))
    return np.concatenate(parts)


def _arrays(
    path: Path,
    names: Sequence[str] = (
        *TRAIN_KEYS,
        *TEST_KEYS,
        *WHOLE_KEYS,
        *MEDICAL_KEYS,
        *JPEG_KEYS,
        *OPTIONS,
    ),
) -> dict[str, NDArray[np.generic]]:
    try:
        with path.open("rb") as file, np.load(file, allow_pickle=False) as archive:
            return {key: archive[key] for key in names if key in archive}
    except Exception as error:  # damaged archives raise errors of a dozen kinds
        raise DataError(
            f"{path} cannot be read as an .npz archive of plain arrays, as numpy.savez writes "
            f"them ({type(error).__name__})"
        ) from error
