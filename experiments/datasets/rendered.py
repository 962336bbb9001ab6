"""Digits rendered from the fonts that ship with matplotlib."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path
from typing import TYPE_CHECKING

import numpy as np
from numpy.typing import NDArray

from experiments.datasets.dataset import Dataset

if TYPE_CHECKING:
    from PIL.ImageFont import FreeTypeFont

NAME = "rendered-digits"
SOURCE = "digits rendered from fonts that ship with matplotlib"
SIDE = 32
FONT_SIZES = (20, 23, 26, 30)
LEAST_CONTRAST = 80
"""Of the mean of the three channels, between digit and background, of 255."""


def rendered_digits(samples: int = 5_000, seed: int = 0) -> Dataset:
    """Digits in random fonts, sizes, places, angles and colours on noise, 10 classes.

    A stand-in for the synthetic digits of Ganin and Lempitsky (2015); the last sixth is the test
    set.

    Args:
        samples: number of images.
        seed: seed of everything that is random.

    Returns:
        Images (3, 32, 32), and as many samples of each class as the number allows.
    """
    rng = np.random.default_rng(seed)
    targets = rng.permutation(np.arange(samples) % 10)
    fonts = _fonts()
    images = np.stack([_image(int(digit), fonts, rng) for digit in targets])
    inputs = np.moveaxis(images, 3, 1).astype(np.float32) / 255
    return Dataset(
        name=NAME,
        inputs=np.ascontiguousarray(inputs),
        targets=targets.astype(np.int64),
        num_classes=10,
        num_native_test=samples // 6,
        source=SOURCE,
    )


def _image(
    digit: int, fonts: Sequence[FreeTypeFont], rng: np.random.Generator
) -> NDArray[np.uint8]:
    from PIL import Image, ImageDraw

    font = fonts[int(rng.integers(len(fonts)))]
    mask = Image.new("L", (SIDE, SIDE))
    centre = tuple(SIDE / 2 + rng.uniform(-3, 3, size=2))
    ImageDraw.Draw(mask).text(centre, str(digit), fill=255, font=font, anchor="mm")
    mask = mask.rotate(rng.uniform(-20, 20), resample=Image.Resampling.BILINEAR)
    ink, paper = _colours(rng)
    share = np.asarray(mask, dtype=np.float64)[:, :, None] / 255
    noise = rng.normal(0, rng.uniform(0, 20), size=(SIDE, SIDE, 3))
    return (share * ink + (1 - share) * paper + noise).clip(0, 255).astype(np.uint8)


def _colours(rng: np.random.Generator) -> tuple[NDArray[np.float64], NDArray[np.float64]]:
    """Two colours that differ enough in brightness."""
    while True:
        ink, paper = rng.uniform(0, 255, size=(2, 3))
        if abs(ink.mean() - paper.mean()) >= LEAST_CONTRAST:
            return ink, paper


def _fonts() -> list[FreeTypeFont]:
    """Fonts of letters and digits in some sizes; the others draw mathematical symbols."""
    import matplotlib as mpl
    from PIL import ImageFont

    folder = Path(mpl.get_data_path()) / "fonts" / "ttf"
    kept = ("DejaVuSans", "DejaVuSerif", "STIXGeneral", "cmr10", "cmb10", "cmss10", "cmtt10")
    paths = sorted(
        path
        for path in folder.glob("*.ttf")
        if path.stem.startswith(kept) and not path.stem.endswith("Display")
    )
    return [ImageFont.truetype(path, size) for path in paths for size in FONT_SIZES]
