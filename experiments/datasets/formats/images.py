"""Images in files as arrays: decoding, resizing and scales."""

from __future__ import annotations

import io
from collections.abc import Collection, Sequence
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray

from bcfl.runtime import SMALL_SCALE, warn_of_data
from experiments.datasets.arrays import (
    WHERE,
    WHITE,
    is_dark,
    is_unit,
)
from experiments.datasets.errors import DataError
from experiments.datasets.formats.files import content_of

IMAGE_ENDINGS = (
    ".png",
    ".jpg",
    ".jpeg",
    ".bmp",
    ".gif",
    ".tif",
    ".tiff",
    ".ppm",
    ".pgm",
    ".webp",
)
"""Of files of images that are read."""
RESIZED_AT_ONCE = 4096
BYTE, DEEP = np.dtype(np.uint8), np.dtype(np.uint16)
Images = tuple[list[NDArray[Any]], NDArray[np.int64]]
"""Images, all grey or all in colours and of one size, and their labels."""
ORIENTATION = 274
"""Tag in EXIF data."""
TURNS = {
    2: (True, 0),
    3: (False, 2),
    4: (True, 2),
    5: (True, 1),
    6: (False, 3),
    7: (True, 3),
    8: (False, 1),
}
"""By orientation: whether an image is mirrored, then how often it is turned by 90 degrees."""
WITH_PREVIEWS = ("MPO",)
"""Formats in Pillow of photographs, whose other images are previews or from another lens."""


def decoded(content: bytes, where: str, size: tuple[int, int] | None = None) -> NDArray[Any]:
    """An image of a file as an array, turned as its EXIF data say; see `bcfl.data.pixels_of`.

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
            pixels = _turned(pixels_of(image), image)
    except UnidentifiedImageError:
        raise DataError(f"{where} cannot be read: it is no image") from None
    except Exception as error:  # damaged images raise errors of a dozen kinds
        raise DataError(f"{where} cannot be read: {error}") from error
    return pixels if size is None or pixels.shape[1:] == size else _of_size(pixels, size)


def _turned(pixels: NDArray[Any], image: Any) -> NDArray[Any]:  # noqa: ANN401
    """Pixels (channels, height, width) of an image as viewers show it.

    Cameras store how they were held; Pillow itself applies that to TIFF files alone.
    """
    try:
        orientation = image.getexif().get(ORIENTATION, 1)
    except Exception:  # damaged EXIF data raise errors of several kinds
        return pixels
    flipped, quarters = TURNS.get(orientation, (False, 0))
    turned = np.rot90(pixels[:, :, ::-1] if flipped else pixels, quarters, axes=(1, 2))
    return np.ascontiguousarray(turned)


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


def read_images(
    parts: Sequence[Sequence[tuple[Path, int]]], size: tuple[int, int] | None = None
) -> list[Images]:
    """Read images of one size; grey ones get three equal channels where any has colours.

    Args:
        parts: files and labels of each part.
        size: height and width to resize to; their own by default.

    Returns:
        The images of each part, and their labels.

    Raises:
        DataError: a part has none, one cannot be read, or they differ in size.
    """
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
            f"images must agree in size, got {shapes[:3]} in {folder}{when_turned(shapes)}; resize "
            "them, or give experiments.datasets.from_folder a size (a scenario names a function "
            "that does)"
        )
    labels = [np.array([label for _, label in files]) for files in parts]
    return list(zip(alike, labels, strict=True))


def when_turned(sizes: Collection[tuple[int, ...]]) -> str:
    """That images are turned, in words, if some are as high as others are wide; or ''.

    Args:
        sizes: heights and widths.
    """
    are_turned = any((width, height) in sizes for height, width in sizes if height != width)
    return " when photographs are turned as their EXIF data say" * are_turned


def _image(path: Path, size: tuple[int, int] | None) -> NDArray[Any]:
    return decoded(content_of(path), str(path), size)


def in_unit(pairs: Sequence[Images], name: str) -> tuple[list[Images], float | None]:
    """The same with pixels from 0 to 1, unless all of them have 8 bits, or all of them 16.

    Args:
        pairs: images and labels of each part.
        name: name of the data set, for messages.

    Returns:
        The pairs, and what their pixels are yet to be divided by: 255 if all have 8 bits, as files
        of images say, but for levels up to 16, such as those of masks; else None.

    Raises:
        DataError: floating-point or signed numbers are not from 0 to 1.
    """
    highest: dict[np.dtype[Any], float] = {}
    for image in (image for images, _ in pairs for image in images):
        highest[image.dtype] = max(highest.get(image.dtype, 0), float(image.max()))
    if len(highest) == 1 and highest.keys() <= WHITE.keys():
        return [*pairs], WHITE[BYTE] if highest.get(BYTE, 0) > SMALL_SCALE else None
    if is_dark(DEEP, highest.get(DEEP, 0)):
        warn_of_data(
            f"dataset {name!r}: 16-bit images, beside others of another type, end at "
            f"{highest[DEEP]:.0f} and are divided by {WHITE[DEEP]}; save all in one type if that "
            "is not their scale"
        )
    return [([_shares(image, name) for image in images], labels) for images, labels in pairs], None


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


def stacked(pair: Images) -> tuple[NDArray[Any], NDArray[np.int64]]:
    """Images as one array (samples, channels, height, width), and their labels.

    Args:
        pair: the images, of one type, and the labels.
    """
    images, labels = pair
    return np.stack(images), labels
