"""Folders of images: by class, or with lists of labels."""

from __future__ import annotations

from collections import Counter
from collections.abc import Collection, Mapping, Sequence
from dataclasses import replace
from pathlib import Path
from typing import Unpack

import numpy as np

from bcfl.runtime import as_path, counted, is_whole, warn_of_data
from experiments.datasets.arrays import SCALING, Scaling, is_stated
from experiments.datasets.dataset import Dataset
from experiments.datasets.errors import DataError, check_options
from experiments.datasets.formats.files import (
    Look,
    absent,
    ending_of,
    files_below,
    folders_in,
    inside,
    is_file,
    is_folder,
    is_hidden,
    name_of,
    seen,
    text_of,
)
from experiments.datasets.formats.images import IMAGE_ENDINGS, in_unit, read_images, stacked
from experiments.datasets.labels import check_labels
from experiments.datasets.splits import PARTS, with_test

UNREAD_ENDINGS = (".avif", ".heic", ".heif", ".jp2", ".jxl", ".tga", ".dcm")
"""Of images that are not read."""
DEV = "dev"
"""Name of a folder of samples of validation that is not read beside another one of them."""
SHOWN = 5
"""Folders that a warning names."""


def holds_images(folder: Path) -> bool:
    """Whether a folder has subfolders of images, one for each class, or one for each part."""
    return is_folder(folder) and any(
        _images(one, seen) or any(_images(deeper, seen) for deeper in folders_in(one, seen))
        for one in folders_in(folder, seen)
    )


def from_folder(
    folder: str | Path,
    name: str | None = None,
    size: tuple[int, int] | None = None,
    **scaling: Unpack[Scaling],
) -> Dataset:
    """Load images of a folder with one subfolder for each class.

    Where the folder has a subfolder `train` or `training` of such folders and without images of its
    own, the classes are inside this one, and inside `test` or `val`, which may be beside it (or
    `testing`, `valid`, `validation`, or, where there is none of these, `dev`). Images of `val` are
    training samples where there is a `test`, as validation samples of MedMNIST are, and else the
    original test set. Hidden files and folders, and `__MACOSX`, are left out; a warning counts all
    other images that are not read, and names the folders of classes without images, or the class if
    there is only one. Photographs are turned as their EXIF data say.

    Pixels are scaled as `experiments.datasets.Dataset.from_arrays` says, but where images differ in
    type, those of 8 bits are divided by 255 and those of 16 bits by 65,535; and so are images of 8
    bits alone, but for levels up to 16, such as those of masks. Floating-point and
    signed numbers must be from 0 to 1, unless it is said how they are scaled. Where any image has
    colours, grey ones get three equal channels.

    Args:
        folder: the folder; classes are numbered by the sorted names of their subfolders, which are
            the `class_names` of the data set: in the order of numbers if all names are whole
            numbers, so that 10 comes after 9, and else as text.
        name: name of the data set; that of the folder by default.
        size: height and width to resize to; needed where images differ in size.
        **scaling: `highest=NUMBER` divides pixels of any type, `scaled=False` keeps them; see
            `experiments.datasets.Dataset.from_arrays`.

    Raises:
        DataError: the folder does not exist, there are no images, in the test set neither, they
            differ in size, an image or a folder of them cannot be read, `test` or `val` has classes
            that `train` lacks, two folders are for the same part, pixels are not in 0 to `highest`,
            or have no known scale, `size` is not two numbers, or an option has another name.
        TypeError: `folder` is no path.
    """
    folder = as_path("folder", folder).expanduser()
    if size is not None and not _is_size(size):
        raise DataError(f"size must be height and width, two whole numbers, got {size!r}")
    name = name or name_of(folder)
    check_options(name, scaling, SCALING)
    parts = _parts(folder)
    classes = _classes(folder, parts)
    files = {part: _by_class(inner, classes) for part, inner in parts.items()}
    if "test" in files and not files["test"]:
        raise DataError(_without_classes(parts["test"]))
    read = {path for part in files.values() for path, _ in part}
    _warn_of_unread(name, folder, read, classes=parts["training"])
    test = [files.pop("test")] if "test" in files else []
    pairs = read_images([[file for part in files.values() for file in part], *test], size)
    if not is_stated(scaling):
        pairs, scaling["highest"] = in_unit(pairs, name)
    samples = list(map(stacked, pairs))
    source = f"images in {folder}"
    dataset = Dataset.from_arrays(
        name, samples[0], samples[1] if test else None, source, channels="first", **scaling
    )
    return replace(dataset, class_names=tuple(classes))


def holds_lists(folder: Path) -> bool:
    """Whether a folder has lists of labels, `..._train_labels.txt` and `..._test_labels.txt`."""
    return len(_lists(folder)) == 2


def load_lists(name: str, folder: Path, num_classes: int | None = None) -> Dataset:
    """Load images whose labels stand in lists, as MNIST-M is published.

    Each line of `X_train_labels.txt` is a file of the folder `X_train` and its label.

    Args:
        name: name of the data set.
        folder: folder of two lists and two folders of images.
        num_classes: number of classes; by default as many as there are.

    Raises:
        DataError: a list or an image is missing or unreadable, or a label is out of range.
    """
    parts = []
    for path in _lists(folder):
        rows = [line.split() for line in text_of(path).splitlines() if line.strip()]
        if not rows or any(len(row) != 2 or not row[1].isdigit() for row in rows):
            raise DataError(f"{path} must have lines of a file name and a label")
        check_labels(str(path), np.array([int(label) for _, label in rows]), num_classes)
        images = path.with_name(path.name.removesuffix("_labels.txt"))
        parts.append([(images / file, int(label)) for file, label in rows])
    pairs, highest = in_unit(read_images(parts), name)
    train, test = map(stacked, pairs)
    scaling: Scaling = {"highest": highest}
    source, number = f"images in {folder}", num_classes
    return Dataset.from_arrays(
        name, train, test, source, channels="first", num_classes=number, **scaling
    )


def _is_size(size: object) -> bool:
    return (
        isinstance(size, tuple | list)
        and len(size) == 2
        and all(is_whole(number, 1) for number in size)
    )


def _parts(folder: Path) -> dict[str, Path]:
    """Folders of classes, by their part; the folder itself if it is not divided."""
    if not is_folder(folder):
        raise DataError(f"{folder} {'is no folder' if is_file(folder) else absent(folder)}")
    found = {
        part: [path for path in folders_in(folder) if path.name.lower() in names]
        for part, names in PARTS.items()
    }
    training = found["training"]
    if not any(any(map(_images, folders_in(one))) and not _images(one) for one in training):
        return {"training": folder}
    others = [path for path in found["validation"] if path.name.lower() != DEV]
    found["validation"] = others or found["validation"]
    for paths in found.values():
        if len(paths) > 1:
            names = " and ".join(path.name for path in paths)
            raise DataError(f"{folder} must have one folder for each part, got {names}")
    return with_test({part: paths[0] for part, paths in found.items() if paths})


def _classes(folder: Path, parts: Mapping[str, Path]) -> list[str]:
    """Names of the classes, those of the training samples."""
    train = parts["training"]
    found = [path.name for path in folders_in(train) if _images(path)]
    are_numbers = all(name.isascii() and name.isdigit() for name in found)
    classes = sorted(found, key=lambda name: (int(name) if are_numbers else 0, name))
    of_parts = {name for names in PARTS.values() for name in names}
    if train == folder and classes and {name.lower() for name in classes} <= of_parts:
        raise DataError(
            f"{folder} must hold subfolders of images by class, in its folders of training and "
            f"test samples as well, got images in {', '.join(classes)}"
        )
    if not classes:
        raise DataError(_without_classes(train))
    for part in parts.values():
        unknown = {path.name for path in folders_in(part) if _images(path)} - set(classes)
        if unknown:
            raise DataError(f"{part} has classes that {train} lacks: {', '.join(sorted(unknown))}")
    return classes


def _by_class(folder: Path, classes: Sequence[str]) -> list[tuple[Path, int]]:
    return [
        (path, number)
        for number, label in enumerate(classes)
        if is_folder(folder / label)
        for path in inside(folder / label)
        if _is_image(path)
    ]


def _without_classes(folder: Path) -> str:
    above = [one for one in folders_in(folder, seen) if any(map(_holds, folders_in(one, seen)))]
    sites = ", ".join([*(one.name for one in above[:SHOWN]), *["..."] * (len(above) > SHOWN)])
    lacks = (
        f"{folder} must hold one subfolder of images for each class, found none with files "
        f"{', '.join(IMAGE_ENDINGS)}"
    )
    joins = (
        f"; its folders {sites} hold such subfolders, and become the domains of one data set by "
        "`datasets.joined(name, {site.name: datasets.from_folder(site) for site in sites})`, where "
        f"`sites = [*pathlib.Path({str(folder)!r}).iterdir()]`"
    )
    return lacks + joins * bool(above)


def _warn_of_unread(name: str, folder: Path, read: Collection[Path], classes: Path) -> None:
    """Warn of images that are not read, and of folders of classes that have none."""
    unread: Counter[str] = Counter()
    for file in files_below(folder, seen):
        if file not in read and ending_of(file.name, (*IMAGE_ENDINGS, *UNREAD_ENDINGS)):
            unread[str(file.parent.relative_to(folder))] += 1
    said = []
    if unread:
        places = [f"{number} in {inner}" for inner, number in unread.items()]
        shown = ", ".join([*places[:SHOWN], *["..."] * (len(places) > SHOWN)])
        said.append(
            f"{counted(unread.total(), 'image')} not read ({shown}), "
            "outside the folders of classes that are read, or not of the kinds "
            f"{', '.join(IMAGE_ENDINGS)}"
        )
    filled = {path: _images(path) for path in folders_in(classes)}
    empty = [path.name for path, has_images in filled.items() if not has_images]
    if empty:
        said.append(f"no image for the classes {', '.join(empty)}")
    if len(filled) - len(empty) == 1:
        (only,) = filled.keys() - {classes / one for one in empty}
        said.append(f"one class alone, {only.name}, as the folders of images are the classes")
    if said:
        warn_of_data(f"dataset {name!r}: in {folder}, {'; '.join(said)}")


def _holds(folder: Path) -> bool:
    return _images(folder, seen)


def _images(folder: Path, look: Look = inside) -> bool:
    return any(map(_is_image, look(folder)))


def _is_image(path: Path) -> bool:
    return ending_of(path.name, IMAGE_ENDINGS) != "" and not is_hidden(path.name)


def _lists(folder: Path) -> list[Path]:
    ends = tuple(f"_{part}_labels.txt" for part in ("train", "test"))
    found = [[path for path in seen(folder) if path.name.endswith(end)] for end in ends]
    return [paths[0] for paths in found if len(paths) == 1]
