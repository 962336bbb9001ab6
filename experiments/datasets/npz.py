"""Loader of NumPy archives: training and test arrays, those of MedMNIST, and images as JPEG."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any, Unpack, cast

import numpy as np
from numpy.typing import NDArray

from bcfl.runtime import nearest_name
from experiments.datasets.arrays import Reading, Scaling, is_stated
from experiments.datasets.dataset import DataError, Dataset, Pair, check_labels, concatenated
from experiments.datasets.images import decoded

TRAIN_KEYS, TEST_KEYS = ("x_train", "y_train"), ("x_test", "y_test")
VALIDATION_KEYS = ("x_val", "y_val")
WHOLE_KEYS = ("x", "y")
MEDICAL_KEYS = tuple(
    f"{part}_{what}" for part in ("train", "val", "test") for what in ("images", "labels")
)
JPEG_KEYS = ("jpeg", "offsets", "label", "is_train")
LABEL_KEYS = (
    *("y_train", "y_val", "y_test", "y", "label"),
    *("train_labels", "val_labels", "test_labels"),
)
OPTIONS: Mapping[str, tuple[str, tuple[type, ...]]] = {
    "highest": ("number", (int, float)),
    "scaled": ("truth value", (bool,)),
    "channels": ("text", (str,)),
}
"""Keywords of `Dataset.from_arrays`, what they are, and their types."""
NAMES = (*TRAIN_KEYS, *VALIDATION_KEYS, *TEST_KEYS, *WHOLE_KEYS, *MEDICAL_KEYS, *JPEG_KEYS)
Arrays = Mapping[str, NDArray[Any]]


def holds_samples(path: Path) -> bool:
    """Whether a file is an archive with inputs and labels."""
    try:
        with path.open("rb") as file, np.load(file, allow_pickle=False) as archive:
            held = set(getattr(archive, "files", ()))
    except Exception:  # damaged archives raise errors of a dozen kinds
        return False
    return any(set(keys) <= held for keys in (TRAIN_KEYS, WHOLE_KEYS, MEDICAL_KEYS, JPEG_KEYS))


def load_npz(
    name: str, path: Path, num_classes: int | None = None, **scaling: Unpack[Scaling]
) -> Dataset:
    """Load an archive, and the writers of its samples if NAME_train_writers.npz exists.

    That file, and NAME_test_writers.npz if there is a test set, hold one array `writer`, as in
    archives made from QMNIST.

    The archive holds `x_train`, `y_train` and optionally `x_val`, `y_val` and `x_test`, `y_test`;
    or `x`, `y` without a test set; or the arrays of MedMNIST (Yang et al., 2023), whose labels are
    one class or a row of 0 and 1 for each sample; or images as `jpeg` (bytes one after the other),
    `offsets`, `label`, `is_train`. Validation samples follow those of training where there is a
    test set, and else are the test set.

    Beside these it may hold `highest`, `scaled` or `channels`, which say how the inputs are read,
    see `experiments.datasets.Dataset.from_arrays`: word numbers are saved by
    `numpy.savez(path, x_train=x, y_train=y, scaled=False)`.

    Args:
        name: name of the data set.
        path: the `.npz` file.
        num_classes: number of classes; by default as many as there are.
        **scaling: `highest` and `scaled`, in place of those in the archive.

    Raises:
        DataError: the file is corrupt, lacks an array or holds pickled objects, or the arrays are
            invalid.
    """
    arrays = _arrays(path, (*NAMES, *OPTIONS))
    for key in arrays.keys() & set(LABEL_KEYS):
        if arrays[key].shape[1:] in ((), (1,)):
            check_labels(f"{path}, {key}", arrays[key], num_classes)
    layout = next(layout for layout in LAYOUTS if layout.holds(arrays))
    train, test = layout.pairs_of(arrays, path)
    reading = _reading(path, arrays, scaling)
    if layout.highest is not None and not is_stated(reading):
        reading["highest"] = layout.highest
    source = layout.source.format(path)
    dataset = Dataset.from_arrays(name, train, test, source, num_classes=num_classes, **reading)
    return replace(dataset, writers=_writers(path, has_test=test is not None))


def _reading(path: Path, arrays: Arrays, scaling: Scaling) -> Reading:
    """How the inputs are to be read: as given, or else as the archive says."""
    options: dict[str, Any] = {}
    for key in arrays.keys() - set(NAMES):
        array = arrays[key]
        if key not in OPTIONS and not array.ndim:
            raise DataError(f"{path} holds {key!r}; the option is {_near_option(key)!r}")
        if key in OPTIONS:
            kind, types = OPTIONS[key]
            if array.ndim or type(array.item()) not in types:
                got = f"{array.dtype} {array.shape}"
                raise DataError(f"{path}: {key} must be one {kind}, got {got}")
            options[key] = array.item()
    own = cast("Reading", options)
    return {"channels": own.get("channels"), **scaling} if is_stated(scaling) else own


def _near_option(key: str) -> str | None:
    """The option whose name a key may be meant to be."""
    return nearest_name(key, OPTIONS, cutoff=0.8)


def _medical(arrays: Arrays, path: Path) -> tuple[Pair, Pair]:
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
    return concatenated(path.stem, pairs), test


def _of_jpeg(arrays: Arrays, path: Path) -> tuple[Pair, Pair | None]:
    content, offsets = arrays["jpeg"].astype(np.uint8).tobytes(), arrays["offsets"].astype(np.int64)
    labels, is_train = arrays["label"], arrays["is_train"].astype(bool)
    if len(offsets) != len(labels) + 1 or is_train.shape != labels.shape[:1]:
        raise DataError(
            f"{path}: offsets must be one more than label and is_train, got {offsets.shape}, "
            f"{labels.shape} and {is_train.shape}"
        )
    spans = enumerate(zip(offsets[:-1].tolist(), offsets[1:].tolist(), strict=True))
    images = np.stack(
        [decoded(content[start:stop], f"{path}, image {number}") for number, (start, stop) in spans]
    )
    test = (images[~is_train], labels[~is_train]) if not is_train.all() else None
    return (images[is_train], labels[is_train]), test


def _whole(arrays: Arrays, path: Path) -> tuple[Pair, None]:
    del path
    return (arrays["x"], arrays["y"]), None


def _split(arrays: Arrays, path: Path) -> tuple[Pair, Pair | None]:
    for keys in (TRAIN_KEYS, VALIDATION_KEYS, TEST_KEYS):
        missing = [key for key in keys if key not in arrays]
        if missing and (keys == TRAIN_KEYS or len(missing) == 1):
            raise DataError(
                f"{path} must hold x_train and y_train, and both or neither of x_val and y_val, "
                f"and of x_test and y_test; it lacks {', '.join(missing)}"
            )
    parts = [
        (arrays[x], arrays[y]) for x, y in (TRAIN_KEYS, VALIDATION_KEYS, TEST_KEYS) if x in arrays
    ]
    if len(parts) == 3:
        return concatenated(path.stem, parts[:2]), parts[2]
    return parts[0], parts[1] if len(parts) == 2 else None


@dataclass(frozen=True)
class Layout:
    """A set of arrays in an archive.

    Attributes:
        holds: whether these arrays are there.
        pairs_of: training and test samples, from the arrays and the path.
        highest: what inputs are divided by, unless it is said otherwise.
        source: origin of the data, around the path.
    """

    holds: Callable[[Arrays], bool]
    pairs_of: Callable[[Arrays, Path], tuple[Pair, Pair | None]]
    highest: float | None = None
    source: str = "{}"


LAYOUTS = (
    Layout(lambda arrays: bool(arrays.keys() & set(MEDICAL_KEYS)), _medical, 255),
    Layout(lambda arrays: arrays.keys() >= set(JPEG_KEYS), _of_jpeg, 255, "JPEG images of {}"),
    Layout(lambda arrays: arrays.keys() >= set(WHOLE_KEYS) and "x_train" not in arrays, _whole),
    Layout(lambda _: True, _split),
)


def _writers(path: Path, has_test: bool) -> NDArray[np.int64] | None:
    parts = []
    for part in ("train", "test") if has_test else ("train",):
        sibling = path.with_name(f"{path.stem}_{part}_writers.npz")
        if not sibling.is_file():
            return None
        parts.append(_arrays(sibling, ("writer",)).get("writer", np.zeros(0)).astype(np.int64))
    return np.concatenate(parts)


def _arrays(path: Path, names: Sequence[str]) -> Arrays:
    """Arrays of these names, and of names that may be misspelt options."""
    try:
        with path.open("rb") as file, np.load(file, allow_pickle=False) as archive:
            wanted = (key for key in archive if key in names or _near_option(key))
            return {key: archive[key] for key in wanted}
    except Exception as error:  # damaged archives raise errors of a dozen kinds
        raise DataError(
            f"{path} cannot be read as an .npz archive of plain arrays, as numpy.savez writes "
            f"them ({type(error).__name__})"
        ) from error
