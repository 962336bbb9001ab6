"""Images of Pillow as arrays."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np
from numpy.typing import NDArray

from bcfl.runtime import arrays_in, warn_of_data

GREY = ("1", "L", "LA")
"""Modes in Pillow of grey images of at most 8 bits."""
DEEP = ("I", "F", "I;16", "I;16L", "I;16B", "I;16N")
"""Modes in Pillow of grey images of more than 8 bits."""
SIXTEEN_BITS = ("PNG", "PPM")
"""Formats in Pillow whose deepest grey has 16 bits."""
BITS_OF_TIFF = 258
"""Tag of a TIFF file with the bits of each channel."""


def is_image(value: object) -> bool:
    """Whether it is an image of Pillow, or its type."""
    return hasattr(value, "getbands")


def holds_images(values: Any) -> bool:  # noqa: ANN401 - of any library
    """Whether there are images of Pillow in nested lists, or in an array or series of objects.

    Args:
        values: inputs of all samples.
    """
    values = _listed(values)
    kinds = set(map(type, arrays_in(values))) if isinstance(values, list | tuple) else ()
    return any(map(is_image, kinds))


def with_pixels(values: Any) -> Any:  # noqa: ANN401 - of any library
    """The values with the pixels of the images of Pillow in them, as a list; others as they are.

    Args:
        values: inputs of all samples.

    Raises:
        ValueError: see `pixels_of`.
    """
    return _pixels(_listed(values)) if holds_images(values) else values


def _listed(values: Any) -> Any:  # noqa: ANN401
    """An array or series of objects as a list; anything else as it is."""
    is_object = getattr(getattr(values, "dtype", None), "kind", "") == "O"
    return list(values) if is_object and values.ndim == 1 else values


def _pixels(value: Any) -> Any:  # noqa: ANN401
    if isinstance(value, list | tuple):
        return coloured([_pixels(one) for one in value])
    if is_image(value):
        return pixels_of(value)
    return value[None] if getattr(value, "ndim", 0) == 2 else value  # grey, as those of one channel


def coloured(images: Sequence[Any]) -> Sequence[Any]:
    """Images with three equal channels in place of one, where others have three.

    Args:
        images: arrays (channels, height, width); where some are others, all are left as they are.
    """
    shapes = {getattr(one, "shape", ()) for one in images}
    if len(shapes) != 2 or {shape[:-2] for shape in shapes} != {(1,), (3,)}:
        return images
    return [np.repeat(one, 3 // len(one), axis=0) for one in images]


def pixels_of(image: Any) -> NDArray[Any]:  # noqa: ANN401 - Pillow may not be installed
    """Pixels of an image of Pillow, with the channels first.

    Grey images have one channel, all others three, which are red, green and blue: colours of a
    palette are looked up, and those of CMYK and the like are converted. Images are not turned as
    their EXIF data say, which Pillow's `exif_transpose` does. Transparency is left out, with a
    warning (`experiments.datasets.DataWarning`) where a pixel is not opaque.

    Args:
        image: an image of Pillow.

    Returns:
        (1, height, width) or (3, height, width) uint8; of grey images with more bits uint16, int32
        or float32.

    Raises:
        ValueError: the file has 16 bits in each channel of a colour, of which Pillow reads 8.
    """
    if image.mode in DEEP:
        is_short = image.mode.startswith("I;16") or (
            image.mode == "I" and image.format in SIXTEEN_BITS  # older Pillow reads them as 32 bits
        )
        pixels = np.asarray(image)
        return (pixels.astype(np.uint16) if is_short else pixels)[None]
    bits = _stored_bits(image)
    if bits > 8:
        raise ValueError(
            f"it has {bits} bits in each channel of its colours, of which Pillow reads 8; save it "
            "with 8 bits or in grey, or give the pixels as arrays"
        )
    if _is_transparent(image):
        warn_of_data(
            "images have transparent pixels, which are read as if they were opaque; lay them on a "
            "background before if their colours are not meant"
        )
    pixels = np.asarray(image.convert("L" if image.mode in GREY else "RGB"))
    return np.ascontiguousarray(np.moveaxis(np.atleast_3d(pixels), 2, 0))


def _stored_bits(image: Any) -> int:  # noqa: ANN401
    """Bits of each channel in the file, as far as Pillow still knows it, else 8."""
    if image.format == "TIFF":
        return int(max(image.tag_v2.get(BITS_OF_TIFF, (8,))))
    tiles = getattr(image, "tile", ())  # none once the pixels are read
    args = tiles[0][3] if tiles else ""
    if image.format == "PNG":
        return 16 if ";16" in str(args) else 8
    return 16 if image.format == "PPM" and isinstance(args, tuple) and args[-1] > 255 else 8


def _is_transparent(image: Any) -> bool:  # noqa: ANN401
    if not getattr(image, "has_transparency_data", False):
        return False
    return bool(image.convert("RGBA").getchannel("A").getextrema()[0] < 255)
