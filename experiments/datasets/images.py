"""Images in files: folders by class and lists of labels; decoding and resizing."""

from __future__ import annotations

import io
from collections.abc import Sequence
from pathlib import Path
from typing import Any, Unpack

import numpy as np
from numpy.typing import NDArray

from bcfl.runtime import warn_of_data
from experiments.datasets.arrays import (
    WHERE,
    WHITE,
    Scaling,
    is_dark,
    is_stated,
    is_unit,
)
from experiments.datasets.dataset import DataError, Dataset, check_labels

SUFFIXES = (".png", ".jpg", ".jpeg", ".bmp", ".gif", ".tif", ".tiff", ".ppm", ".pgm")
TRAIN_FOLDERS, TEST_FOLDERS = ("train", "training"), ("test", "testing")
VALIDATION_FOLDERS = ("val", "valid", "validation")
RESIZED_AT_ONCE = 4096
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

    Where the folder has a subfolder `train` beside `test` or `val`, the classes are inside these.
    Images of `val` are training samples where there is a `test`, as validation samples of MedMNIST
    are, and else the original test set.
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
        DataError: there are no images, they differ in size, one cannot be read, `test` or `val` has
            classes that `train` lacks, or pixels are not in 0 to `highest`, or have no known scale.
    """
    folder = Path(folder).expanduser()
    inner = {path.name.lower(): path for path in _folders(folder)}
    train = next((inner[part] for part in TRAIN_FOLDERS if part in inner), folder)
    names = [] if train == folder else [*TEST_FOLDERS, *VALIDATION_FOLDERS]
    others = [inner[part] for part in names if part in inner]
    classes = sorted(path.name for path in _folders(train) if _images(path))
    if not classes:
        raise DataError(
            f"{folder} must hold one subfolder of images for each class, found none with files "
            f"{', '.join(SUFFIXES)}"
        )
    for part in others:
        unknown = {path.name for path in _folders(part) if _images(path)} - set(classes)
        if unknown:
            raise DataError(f"{part} has classes that {train} lacks: {', '.join(sorted(unknown))}")
    learnt = [file for part in (train, *others[1:]) for file in _by_class(part, classes)]
    pairs = _read([learnt, *(_by_class(part, classes) for part in others[:1])], size)
    name = name or folder.name
    samples = list(map(_stacked, pairs if is_stated(scaling) else _in_unit(pairs, name)))
    test = samples[1] if others else None
    source = f"images in {folder}"
    return Dataset.from_arrays(name, samples[0], test, source, channels="first", **scaling)


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
        rows = [line.split() for line in path.read_text("utf-8").splitlines() if line.strip()]
        if not rows or any(len(row) != 2 or not row[1].isdigit() for row in rows):
            raise DataError(f"{path} must have lines of a file name and a label")
        check_labels(str(path), np.array([int(label) for _, label in rows]), num_classes)
        images = path.with_name(path.name.removesuffix("_labels.txt"))
        parts.append([(images / file, int(label)) for file, label in rows])
    train, test = map(_stacked, _in_unit(_read(parts), name))
    source = f"images in {folder}"
    return Dataset.from_arrays(name, train, test, source, channels="first", num_classes=num_classes)


def _folders(folder: Path) -> list[Path]:
    return sorted(path for path in folder.iterdir() if path.is_dir()) if folder.is_dir() else []


def _images(folder: Path) -> bool:
    return any(map(_is_image, folder.iterdir()))


def _is_image(path: Path) -> bool:
    return path.suffix.lower() in SUFFIXES and not path.name.startswith(".")


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
        raise DataError("there must be at least one image")
    channels = max(len(image) for images in read for image in images)
    alike = [
        [np.repeat(image, channels // len(image), axis=0) for image in images] for images in read
    ]
    shapes = sorted({image.shape[1:] for images in alike for image in images})
    if len(shapes) != 1:
        folder = parts[0][0][0].parent.parent
        raise DataError(
            f"images must agree in size, got {shapes[:3]} in {folder}; give from_folder a size"
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
