"""Loader of NumPy archives: training and test arrays, those of MedMNIST, and images as JPEG."""

from __future__ import annotations

import re
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from itertools import chain
from pathlib import Path
from typing import Any, BinaryIO, Unpack, cast

import numpy as np
from numpy.lib.npyio import NpzFile
from numpy.typing import NDArray

from bcfl.runtime import warn_of_data
from experiments.datasets.arrays import Reading, Scaling, is_stated
from experiments.datasets.dataset import Dataset, of_parts
from experiments.datasets.errors import DataError
from experiments.datasets.formats.files import ending_of, is_file
from experiments.datasets.formats.images import decoded, when_turned
from experiments.datasets.labels import check_labels
from experiments.datasets.parts import Pair
from experiments.datasets.splits import PARTS, with_test

PART_KEYS = {
    part: [*((f"x_{name}", f"y_{name}") for name in names), *[("x", "y")] * (part == "training")]
    for part, names in PARTS.items()
}
"""Names of inputs and labels of each part; the first that are there are read."""
SAMPLES = re.compile("[xy]([_-]?(train|val|dev|test).*)?|.*(images|labels|inputs|targets)", re.I)
"""Names of arrays that may be meant to be inputs or labels, beside those of a published set."""
MEDICAL_PARTS = {"training": "train", "validation": "val", "test": "test"}
MEDICAL_KEYS = tuple(
    f"{part}_{what}" for part in MEDICAL_PARTS.values() for what in ("images", "labels")
)
JPEG_KEYS = ("jpeg", "offsets", "label", "is_train")
STATED: Mapping[str, tuple[str, tuple[type, ...]]] = {
    "highest": ("number", (int, float)),
    "scaled": ("truth value", (bool,)),
    "channels": ("text", (str,)),
}
"""Keywords of `Dataset.from_arrays` that an archive may state, what they are, and their types."""
LABEL_KEYS = {"label", *MEDICAL_KEYS[1::2], *(y for keys in PART_KEYS.values() for _, y in keys)}
WRITERS = "{}_{}_writers.npz"
"""Name of the file of writers of an archive, of `train` or `test`."""
NAMES = (*(key for pairs in PART_KEYS.values() for key in chain(*pairs)), *MEDICAL_KEYS, *JPEG_KEYS)
Arrays = Mapping[str, NDArray[Any]]
Parts = dict[str, Pair]


@dataclass(frozen=True)
class Archive:
    """What a file holds.

    Attributes:
        path: of the file.
        arrays: the arrays that may be read, by name.
        names: of all arrays.
    """

    path: Path
    arrays: Arrays
    names: tuple[str, ...]


def holds_samples(path: Path) -> bool:
    """Whether a file is an archive with inputs and labels."""
    try:
        with path.open("rb") as file, _loaded(file) as archive:
            held = set(archive.files)
    except Exception:  # damaged archives raise errors of a dozen kinds
        return False
    return any(set(keys) <= held for keys in (*PART_KEYS["training"], MEDICAL_KEYS, JPEG_KEYS))


def load_npz(
    name: str, path: Path, num_classes: int | None = None, **scaling: Unpack[Scaling]
) -> Dataset:
    """Load an archive, and the writers of its samples if NAME_train_writers.npz exists.

    That file, and NAME_test_writers.npz if there is a test set, hold one array `writer`, as in
    archives made from QMNIST. Where samples of validation are training samples, their writers
    follow those of training.

    The archive holds `x_train`, `y_train`, or `x`, `y`, and optionally `x_val`, `y_val` and
    `x_test`, `y_test`; names may also end in `_training` and `_testing`, and those of validation in
    `_valid`, `_validation` or `_dev`. Or it holds the arrays of MedMNIST (Yang et al., 2023), whose
    labels are one class or a row of 0 and 1 for each sample; or images as `jpeg` (bytes one after
    the other), `offsets`, `label`, `is_train`. JPEG images are divided by 255, and so are 8-bit
    images of MedMNIST that exceed 1. Validation samples follow those of training where there is a
    test set, and else are the test set; without samples they are left out. A warning names all
    arrays that are not read.

    Beside these it may hold `highest`, `scaled` or `channels`, which say how the inputs are read,
    see `experiments.datasets.Dataset.from_arrays`: word numbers are saved by
    `numpy.savez(path, x_train=x, y_train=y, scaled=False)`.

    Args:
        name: name of the data set.
        path: the `.npz` file.
        num_classes: number of classes of a published data set, whose 8-bit images of MedMNIST are
            always divided by 255 and whose further arrays are left out; by default as many as there
            are.
        **scaling: `highest` and `scaled`; one that is given counts more than what the archive says.

    Raises:
        DataError: the file is corrupt, lacks an array or holds pickled objects, the arrays are
            invalid, or there is not one writer per sample.
    """
    archive = _opened(path, (*NAMES, *STATED))
    keys, is_published = _keys(archive), num_classes is not None
    _check_arrays(archive, keys, num_classes)
    source, highest = str(path), None
    if keys is MEDICAL_KEYS:
        parts = _medical(archive)
        highest = _white_of_bytes(parts, is_published)
    elif keys is JPEG_KEYS:
        parts, source, highest = _of_jpeg(archive), f"JPEG images of {path}", 255
    else:
        parts = _named(archive)
    parts = with_test(parts)
    reading = _reading(path, archive.arrays, scaling)
    _warn_of_unread(archive, keys, is_published)
    if not is_stated(reading):
        reading["highest"] = highest
    dataset = of_parts(name, parts, source, num_classes, reading)
    return replace(dataset, writers=_writers(path, parts))


def _keys(archive: Archive) -> Sequence[str]:
    """Names of the arrays of samples, of which some may be missing."""
    held = archive.arrays.keys()
    if held & set(MEDICAL_KEYS):
        return MEDICAL_KEYS
    return JPEG_KEYS if held >= set(JPEG_KEYS) else [*chain(*_chosen(archive).values())]


def _check_arrays(archive: Archive, keys: Sequence[str], num_classes: int | None) -> None:
    """Check that arrays of samples are such, and their labels those of a published set."""
    for key in keys:
        array = archive.arrays.get(key)
        if array is None:
            continue
        where = f"{archive.path}, {key}"
        if not array.ndim:
            raise DataError(f"{where}: must be an array of samples, got one value, {array!s:.80}")
        if key in LABEL_KEYS and array.shape[1:] in ((), (1,)):
            check_labels(where, array, num_classes)


def _warn_of_unread(archive: Archive, keys: Sequence[str], is_published: bool) -> None:
    unread = [name for name in archive.names if name not in keys and name not in STATED]
    if is_published:
        unread = [name for name in unread if SAMPLES.fullmatch(name)]
    if unread:
        path, read = archive.path, [key for key in keys if key in archive.arrays]
        advice = (
            "" if keys in (MEDICAL_KEYS, JPEG_KEYS) else " (test samples from x_test and y_test)"
        )
        writers = " and ".join(WRITERS.format(path.stem, part) for part in ("train", "test"))
        warn_of_data(
            f"{path} holds arrays that are not read: {', '.join(unread)}; samples are read from "
            f"{', '.join(read)}{advice}, options from {', '.join(STATED)}, and writers from the "
            f"files {writers}"
        )


def _reading(path: Path, arrays: Arrays, scaling: Scaling) -> Reading:
    """How the inputs are to be read: as given, or else as the archive says."""
    options: dict[str, Any] = {}
    for key in sorted(arrays.keys() & set(STATED)):
        array, (kind, types) = arrays[key], STATED[key]
        if array.ndim or type(array.item()) not in types:
            got = f"{array.dtype} {array.shape}"
            raise DataError(f"{path}: {key} must be one {kind}, got {got}")
        options[key] = array.item()
    given = {key: value for key, value in scaling.items() if value is not None}
    if given.get("scaled") is False:
        options.pop("highest", None)
    if "highest" in given:
        options.pop("scaled", None)
    return cast("Reading", options | given)


def _medical(archive: Archive) -> Parts:
    path, arrays = archive.path, archive.arrays
    missing = [key for key in MEDICAL_KEYS if key not in arrays]
    if missing:
        raise DataError(f"{path} holds arrays of MedMNIST, but lacks {', '.join(missing)}")
    parts = {}
    for name, part in MEDICAL_PARTS.items():
        images, labels = arrays[f"{part}_images"], arrays[f"{part}_labels"]
        if labels.ndim != 2:
            raise DataError(
                f"{path}: {part}_labels must be (samples, 1), one class for each sample, or "
                f"(samples, labels) of 0 and 1, got {labels.shape}"
            )
        is_volume = images.ndim == 4 and len(set(images.shape[1:])) == 1
        parts[name] = (images[:, None] if is_volume else images, labels)
    return parts


def _of_jpeg(archive: Archive) -> Parts:
    path, arrays = archive.path, archive.arrays
    content, offsets = arrays["jpeg"].astype(np.uint8).tobytes(), arrays["offsets"].astype(np.int64)
    labels, is_train = arrays["label"], arrays["is_train"].astype(bool)
    if len(offsets) != len(labels) + 1 or is_train.shape != labels.shape[:1]:
        raise DataError(
            f"{path}: offsets must be one more than label and is_train, got {offsets.shape}, "
            f"{labels.shape} and {is_train.shape}"
        )
    spans = zip(offsets[:-1].tolist(), offsets[1:].tolist(), strict=True)
    images = [
        decoded(content[start:stop], f"{path}, image {number}")
        for number, (start, stop) in enumerate(spans)
    ]
    odd = [number for number, image in enumerate(images) if image.shape != images[0].shape]
    if odd or not images:
        got = f"{images[0].shape} and, of image {odd[0]}, {images[odd[0]].shape}" if odd else "none"
        turned = when_turned({image.shape[1:] for image in images})
        raise DataError(f"{path}: images must agree in shape, at least one, got {got}{turned}")
    pixels = np.stack(images)
    chosen = {"training": is_train} if is_train.all() else {"training": is_train, "test": ~is_train}
    return {part: (pixels[rows], labels[rows]) for part, rows in chosen.items()}


def _chosen(archive: Archive) -> dict[str, tuple[str, str]]:
    """Names of inputs and labels of each part, of which at least one is there."""
    first = {
        part: next((keys for keys in pairs if archive.arrays.keys() & set(keys)), None)
        for part, pairs in PART_KEYS.items()
    }
    return {part: keys for part, keys in first.items() if keys is not None}


def _named(archive: Archive) -> Parts:
    arrays, chosen = archive.arrays, _chosen(archive)
    wanted = {"training": ("x_train", "y_train")} | chosen
    missing = [key for keys in wanted.values() for key in keys if key not in arrays]
    if missing:
        raise DataError(
            f"{archive.path} must hold x_train and y_train, or x and y, and both arrays of each "
            f"other part; it lacks {missing[0]}, and holds {', '.join(archive.names) or 'no array'}"
        )
    return {part: (arrays[x], arrays[y]) for part, (x, y) in chosen.items()}


def _white_of_bytes(parts: Parts, is_published: bool) -> float | None:
    """What images are divided by: 255 if they are bytes, but for masks of 0 and 1 of one's own."""
    images = [images for images, _ in parts.values()]
    are_bytes = all(one.dtype == np.uint8 for one in images)
    are_masks = not is_published and not any((one > 1).any() for one in images)
    return 255 if are_bytes and not are_masks else None


def holds_writers(path: Path) -> bool:
    """Whether a file is by its name that of the writers of another."""
    ends = tuple(WRITERS.format("", part) for part in ("train", "test"))
    return ending_of(path.name, ends) != ""


def _writers(path: Path, parts: Parts) -> NDArray[Any] | None:
    """Writers of training and test samples; None where there is no file of them."""
    sizes = {part: len(labels) for part, (_, labels) in parts.items()}
    held = {"test": sizes.pop("test")} if "test" in sizes else {}
    siblings = {part: path.with_name(WRITERS.format(path.stem, part)) for part in ("train", "test")}
    there = {part: sibling for part, sibling in siblings.items() if is_file(sibling)}
    if not there:
        return None
    if "test" in there and not held:
        raise DataError(
            f"{there['test']} has writers of test samples, but {path} has no such samples"
        )
    wanted = {"train": sizes, **({"test": held} if held else {})}
    missing = next((siblings[part].name for part in wanted if part not in there), None)
    if missing:
        raise DataError(f"{path.parent} lacks {missing}, the writers of the other samples")
    found = [_writers_of(there[part], samples) for part, samples in wanted.items()]
    return np.concatenate(found)


def _writers_of(path: Path, sizes: Mapping[str, int]) -> NDArray[Any]:
    """Writers in a file, one for each sample of parts of these sizes."""
    archive = _opened(path, ("writer",))
    if "writer" not in archive.arrays:
        raise DataError(f"{path} must hold writer, got {', '.join(archive.names)}")
    writers = archive.arrays["writer"]
    if writers.shape != (sum(sizes.values()),):
        samples = " and ".join(f"{size} {part}" for part, size in sizes.items())
        raise DataError(
            f"{path}: writer must have one entry for each of {samples} samples, got shape "
            f"{writers.shape}"
        )
    return writers


def _opened(path: Path, names: Sequence[str]) -> Archive:
    """Arrays of these names, and the names of all."""
    key = None
    try:
        with path.open("rb") as file, _loaded(file) as archive:
            arrays = {}
            for key in archive:
                if key in names:
                    arrays[key] = archive[key]
            return Archive(path, arrays, tuple(archive))
    except Exception as error:  # damaged archives raise errors of a dozen kinds
        where = "" if key is None else f"array {key}: "
        raise DataError(
            f"{path} cannot be read as an .npz archive of plain arrays, as numpy.savez writes "
            f"them ({where}{type(error).__name__}: {error})"
        ) from error


def _loaded(file: BinaryIO) -> NpzFile:
    archive = np.load(file, allow_pickle=False)
    if not isinstance(archive, NpzFile):
        raise ValueError("it holds one array without a name, as numpy.save writes it")
    return archive
