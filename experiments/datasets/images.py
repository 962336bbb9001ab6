"""Images in files: folders by class and lists of labels; decoding and resizing."""

from __future__ import annotations

import io
import os
from collections import Counter
from collections.abc import Collection, Mapping, Sequence
from pathlib import Path
from typing import Any, Unpack

import numpy as np
from numpy.typing import NDArray

from bcfl.runtime import as_path, counted, is_whole, warn_of_data
from experiments.datasets.arrays import (
    WHERE,
    WHITE,
    Scaling,
    is_dark,
    is_stated,
    is_unit,
)
from experiments.datasets.dataset import DataError, Dataset, check_labels

SUFFIXES = (".png", ".jpg", ".jpeg", ".bmp", ".gif", ".tif", ".tiff", ".ppm", ".pgm", ".webp")
OTHER_SUFFIXES = (".avif", ".heic", ".heif", ".jp2", ".jxl", ".tga", ".dcm")
"""Of images that are not read."""
ROLES = {
    "train": ("train", "training"),
    "test": ("test", "testing"),
    "val": ("val", "valid", "validation"),
}
"""Names of the folders of each part, in lower case."""
RESIZED_AT_ONCE = 4096
SHOWN = 5
"""Folders that a warning names."""
WITH_PREVIEWS = ("MPO",)
"""Formats in Pillow of photographs, whose other images are previews or from another lens."""


def decoded(content: bytes, where: str, size: tuple[int, int] | None = None) -> NDArray[Any]:
    """An image as an array; see `bcfl.data.pixels_of`.

    Args:
        content: bytes of the file.
        where: the file, for errors.
        size: height and width to resize to; its own by default.

    Returns:
        (channels, height, width), of one channel if it is grey, else of three; uint8, or, of grey
        images with more bits, uint16, int32 or float32.

    Raises:
        DataError: the bytes are no image, they hold several, or Pillow does not read all bits.
    """
    from PIL import Image, UnidentifiedImageError

    from bcfl.data import pixels_of

    try:
        with Image.open(io.BytesIO(content)) as image:
            frames = 1 if image.format in WITH_PREVIEWS else getattr(image, "n_frames", 1)
            if frames > 1:
                raise ValueError(f"it holds {frames} images; save each as a file of its own")
            pixels = pixels_of(image)
    except UnidentifiedImageError:
        raise DataError(f"{where} cannot be read: it is no image") from None
    except Exception as error:  # damaged images raise errors of a dozen kinds
        raise DataError(f"{where} cannot be read: {error}") from error
    return pixels if size is None or pixels.shape[1:] == size else _of_size(pixels, size)


def _of_size(pixels: NDArray[Any], size: tuple[int, int]) -> NDArray[Any]:
    """An image as decoded of another height and width; more than 8 bits by way of float32."""
    from PIL import Image

    numbers = pixels if pixels.dtype == np.uint8 else pixels.astype(np.float32)
    channels = [
        np.asarray(Image.fromarray(channel).resize(size[::-1], Image.Resampling.BILINEAR))
        for channel in numbers
    ]
    is_whole = pixels.dtype.kind in "ui"
    return (np.stack(channels).round() if is_whole else np.stack(channels)).astype(pixels.dtype)


def resized(inputs: NDArray[np.float32], size: tuple[int, int]) -> NDArray[np.float32]:
    """Images of another height and width, by antialiased bilinear interpolation.

    Args:
        inputs: (samples, channels, height, width).
        size: height and width.
    """
    if inputs.shape[2:] == size:
        return inputs
    import torch
    from torch.nn.functional import interpolate

    parts = [
        interpolate(torch.from_numpy(part), size, mode="bilinear", antialias=True).numpy()
        for part in np.split(inputs, range(RESIZED_AT_ONCE, len(inputs), RESIZED_AT_ONCE))
    ]
    return np.concatenate(parts).clip(0, 1)


def holds_images(folder: Path) -> bool:
    """Whether a folder has subfolders of images, one for each class, or one for each part."""
    return folder.is_dir() and any(
        _images(inner) or any(_images(deeper) for deeper in _folders(inner))
        for inner in _folders(folder)
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
    `testing`, `valid`, `validation`). Images of `val` are training samples where there is a `test`,
    as validation samples of MedMNIST are, and else the original test set. Hidden files and folders,
    and `__MACOSX`, are left out; a warning counts all other images that are not read, and names
    the folders of classes without images.

    Pixels are scaled as `experiments.datasets.Dataset.from_arrays` says, but where images differ in
    type, those of 8 bits are divided by 255 and those of 16 bits by 65,535. Floating-point and
    signed numbers must be from 0 to 1, unless it is said how they are scaled. Where any image has
    colours, grey ones get three equal channels.

    Args:
        folder: the folder; classes are numbered by the sorted names of their subfolders.
        name: name of the data set; that of the folder by default.
        size: height and width to resize to; needed where images differ in size.
        **scaling: `highest=NUMBER` divides pixels of any type, `scaled=False` keeps them; see
            `experiments.datasets.Dataset.from_arrays`.

    Raises:
        DataError: the folder does not exist, there are no images, in the test set neither, they
            differ in size, one cannot be read, `test` or `val` has classes that `train` lacks, two
            folders are for the same part, pixels are not in 0 to `highest`, or have no known scale,
            or `size` is not two numbers.
        TypeError: `folder` is no path.
    """
    folder = as_path("folder", folder).expanduser()
    if size is not None and not _is_size(size):
        raise DataError(f"size must be height and width, two whole numbers, got {size!r}")
    parts = _parts(folder)
    classes = _classes(folder, parts)
    files = {role: _by_class(part, classes) for role, part in parts.items()}
    name = name or folder.name
    held = next((role for role in ("test", "val") if role in files), None)
    if held is not None and not files[held]:
        raise DataError(_without_classes(parts[held]))
    read = {path for part in files.values() for path, _ in part}
    _warn_of_unread(name, folder, read, classes=parts["train"])
    test = [] if held is None else [files.pop(held)]
    pairs = _read([[file for part in files.values() for file in part], *test], size)
    samples = list(map(_stacked, pairs if is_stated(scaling) else _in_unit(pairs, name)))
    source = f"images in {folder}"
    return Dataset.from_arrays(
        name, samples[0], samples[1] if test else None, source, channels="first", **scaling
    )


def _is_size(size: object) -> bool:
    return (
        isinstance(size, tuple | list)
        and len(size) == 2
        and all(is_whole(number, 1) for number in size)
    )


def _parts(folder: Path) -> dict[str, Path]:
    """Folders of classes, by their part; the folder itself if it is not divided."""
    if not folder.is_dir():
        raise DataError(f"{folder} {'is no folder' if folder.exists() else 'does not exist'}")
    found = {
        role: [path for path in _folders(folder) if path.name.lower() in names]
        for role, names in ROLES.items()
    }
    if not any(any(map(_images, _folders(one))) and not _images(one) for one in found["train"]):
        return {"train": folder}
    for paths in found.values():
        if len(paths) > 1:
            names = " and ".join(path.name for path in paths)
            raise DataError(f"{folder} must have one folder for each part, got {names}")
    return {role: paths[0] for role, paths in found.items() if paths}


def _classes(folder: Path, parts: Mapping[str, Path]) -> list[str]:
    """Names of the classes, those of the training samples."""
    train = parts["train"]
    classes = sorted(path.name for path in _folders(train) if _images(path))
    of_parts = {name for names in ROLES.values() for name in names}
    if train == folder and classes and {name.lower() for name in classes} <= of_parts:
        raise DataError(
            f"{folder} must hold subfolders of images by class, in its folders of training and "
            f"test samples as well, got images in {', '.join(classes)}"
        )
    if not classes:
        raise DataError(_without_classes(train))
    for part in parts.values():
        unknown = {path.name for path in _folders(part) if _images(path)} - set(classes)
        if unknown:
            raise DataError(f"{part} has classes that {train} lacks: {', '.join(sorted(unknown))}")
    return classes


def _without_classes(folder: Path) -> str:
    return (
        f"{folder} must hold one subfolder of images for each class, found none with files "
        f"{', '.join(SUFFIXES)}"
    )


def _warn_of_unread(name: str, folder: Path, read: Collection[Path], classes: Path) -> None:
    """Warn of images that are not read, and of folders of classes that have none."""
    unread: Counter[str] = Counter()
    for inner, folders, files in os.walk(folder):
        folders[:] = sorted(one for one in folders if not _is_hidden(one))
        paths = (Path(inner, file) for file in files if not _is_hidden(file))
        images = [one for one in paths if one.suffix.lower() in (*SUFFIXES, *OTHER_SUFFIXES)]
        if number := sum(one not in read for one in images):
            unread[str(Path(inner).relative_to(folder))] = number
    said = []
    if unread:
        places = [f"{number} in {inner}" for inner, number in unread.items()]
        shown = ", ".join([*places[:SHOWN], *["..."] * (len(places) > SHOWN)])
        said.append(
            f"{counted(unread.total(), 'image')} not read ({shown}), "
            f"outside the folders of classes or not of the kinds {', '.join(SUFFIXES)}"
        )
    empty = [path.name for path in _folders(classes) if not _images(path)]
    if empty:
        said.append(f"no image for the classes {', '.join(empty)}")
    if said:
        warn_of_data(f"dataset {name!r}: in {folder}, {'; '.join(said)}")


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
        try:
            lines = path.read_text("utf-8").splitlines()
        except (OSError, UnicodeDecodeError) as error:
            raise DataError(f"{path} cannot be read: {error}") from error
        rows = [line.split() for line in lines if line.strip()]
        if not rows or any(len(row) != 2 or not row[1].isdigit() for row in rows):
            raise DataError(f"{path} must have lines of a file name and a label")
        check_labels(str(path), np.array([int(label) for _, label in rows]), num_classes)
        images = path.with_name(path.name.removesuffix("_labels.txt"))
        parts.append([(images / file, int(label)) for file, label in rows])
    train, test = map(_stacked, _in_unit(_read(parts), name))
    source = f"images in {folder}"
    return Dataset.from_arrays(name, train, test, source, channels="first", num_classes=num_classes)


def _folders(folder: Path) -> list[Path]:
    found = folder.iterdir() if folder.is_dir() else ()
    return sorted(path for path in found if path.is_dir() and not _is_hidden(path.name))


def _images(folder: Path) -> bool:
    return any(map(_is_image, folder.iterdir()))


def _is_image(path: Path) -> bool:
    return path.suffix.lower() in SUFFIXES and not _is_hidden(path.name)


def _is_hidden(name: str) -> bool:
    return name.startswith(".") or name == "__MACOSX"


def _lists(folder: Path) -> list[Path]:
    if not folder.is_dir():
        return []
    found = [sorted(folder.glob(f"*_{part}_labels.txt")) for part in ("train", "test")]
    return [paths[0] for paths in found if len(paths) == 1]


def _by_class(folder: Path, classes: Sequence[str]) -> list[tuple[Path, int]]:
    return [
        (path, number)
        for number, label in enumerate(classes)
        for path in sorted((folder / label).glob("*"))
        if _is_image(path)
    ]


Images = tuple[list[NDArray[Any]], NDArray[np.int64]]
"""Images, all grey or all in colours and of one size, and their labels."""


def _read(
    parts: Sequence[Sequence[tuple[Path, int]]], size: tuple[int, int] | None = None
) -> list[Images]:
    """The images of each part, and their labels."""
    read = [[_image(path, size) for path, _ in files] for files in parts]
    if not all(read):
        raise DataError("there must be at least one image of each part")
    channels = max(len(image) for images in read for image in images)
    alike = [
        [np.repeat(image, channels // len(image), axis=0) for image in images] for images in read
    ]
    shapes = sorted({image.shape[1:] for images in alike for image in images})
    if len(shapes) != 1:
        folder = parts[0][0][0].parent.parent
        raise DataError(
            f"images must agree in size, got {shapes[:3]} in {folder}; resize them, or give "
            "experiments.datasets.from_folder a size (a scenario names a function that does)"
        )
    labels = [np.array([label for _, label in files]) for files in parts]
    return list(zip(alike, labels, strict=True))


def _image(path: Path, size: tuple[int, int] | None) -> NDArray[Any]:
    try:
        content = path.read_bytes()
    except OSError as error:  # without the path
        raise DataError(f"{path} cannot be read: {error.strerror or error}") from error
    return decoded(content, str(path), size)


def _in_unit(pairs: Sequence[Images], name: str) -> Sequence[Images]:
    """The same with pixels from 0 to 1, unless all of them have 8 bits, or all of them 16."""
    highest: dict[np.dtype[Any], float] = {}
    for image in (image for images, _ in pairs for image in images):
        highest[image.dtype] = max(highest.get(image.dtype, 0), float(image.max()))
    if len(highest) == 1 and highest.keys() <= WHITE.keys():
        return pairs
    for kind, high in highest.items():
        if kind in WHITE and is_dark(kind, high):
            warn_of_data(
                f"dataset {name!r}: {8 * kind.itemsize}-bit images, beside others of another type, "
                f"end at {high:.0f} and are divided by {WHITE[kind]}; save all in one type if that "
                "is not their scale"
            )
    return [([_shares(image, name) for image in images], labels) for images, labels in pairs]


def _shares(image: NDArray[Any], name: str) -> NDArray[np.float32]:
    if image.dtype in WHITE:
        return image.astype(np.float32) / np.float32(WHITE[image.dtype])
    if not is_unit(image):
        kind = "floating-point numbers" if image.dtype.kind == "f" else "signed whole numbers"
        raise DataError(
            f"dataset {name!r}: {kind} in images must be from 0 to 1, got {image.min():.6g} to "
            f"{image.max():.6g}; set highest=NUMBER to divide by it, or scaled=False to keep them "
            f"{WHERE}"
        )
    return image.astype(np.float32)


def _stacked(pair: Images) -> tuple[NDArray[Any], NDArray[np.int64]]:
    images, labels = pair
    return np.stack(images), labels
