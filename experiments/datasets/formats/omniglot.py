"""Loader of Omniglot, from `.zip` files as published or from a folder."""

from __future__ import annotations

import zipfile
from dataclasses import dataclass
from pathlib import Path

import numpy as np
from numpy.typing import NDArray

from experiments.datasets.dataset import Dataset
from experiments.datasets.errors import DataError
from experiments.datasets.formats.images import decoded


@dataclass(frozen=True)
class _Drawing:
    alphabet: str
    character: str
    drawer: int
    content: bytes


def holds_omniglot(path: Path) -> bool:
    """Whether a `.zip` file or folder holds ALPHABET/characterNN/NNNN_DD.png."""
    if path.suffix == ".zip" and path.is_file():
        try:
            with zipfile.ZipFile(path) as archive:
                return any(_place(entry) for entry in archive.namelist())
        except (zipfile.BadZipFile, OSError):
            return False
    return path.is_dir() and any(path.glob("*/character[0-9]*/*.png"))


SIZE = (28, 28)


def load_omniglot(name: str, path: Path) -> Dataset:
    """Load Omniglot (Lake et al., 2015): a class is a character, a domain is an alphabet.

    Writers are the 20 drawers of each alphabet. Ink is 1 and paper is 0; images are resized to
    28 x 28.

    Args:
        name: name of the data set.
        path: a `.zip` file as published, or the folder of alphabets.

    Raises:
        DataError: the file or an image cannot be read, or an image is in colours or of more than
            8 bits.
    """
    drawings = sorted(_drawings(path), key=lambda one: (one.alphabet, one.character, one.drawer))
    if not drawings:
        raise DataError(f"{path} must hold ALPHABET/characterNN/NNNN_DD.png, found none")
    characters = sorted({(one.alphabet, one.character) for one in drawings})
    writers = sorted({(one.alphabet, one.drawer) for one in drawings})
    alphabets = sorted({one.alphabet for one in drawings})
    images = np.stack([255 - _image(one, path) for one in drawings])
    classes = {pair: number for number, pair in enumerate(characters)}
    numbers = {pair: number for number, pair in enumerate(writers)}
    return Dataset(
        name=name,
        inputs=images.astype(np.float32) / np.float32(255),
        targets=np.array([classes[one.alphabet, one.character] for one in drawings]),
        num_classes=len(characters),
        source=str(path),
        writers=np.array([numbers[one.alphabet, one.drawer] for one in drawings]),
        domains=np.array([alphabets.index(one.alphabet) for one in drawings]),
        domain_names=tuple(alphabets),
    )


def _image(drawing: _Drawing, path: Path) -> NDArray[np.uint8]:
    where = f"{path}: {drawing.alphabet}/{drawing.character}, drawer {drawing.drawer}"
    image = decoded(drawing.content, where, SIZE)
    if len(image) != 1 or image.dtype != np.uint8:
        raise DataError(f"{where} must be black on white, of at most 8 bits and without colours")
    return image


def _drawings(path: Path) -> list[_Drawing]:
    if path.is_dir():
        files = [(str(file.relative_to(path)), file) for file in path.glob("*/*/*.png")]
        placed = [(_place(inside), file) for inside, file in files]
        return [_Drawing(*place, file.read_bytes()) for place, file in placed if place]
    try:
        with zipfile.ZipFile(path) as archive:
            entries = [(_place(entry), entry) for entry in archive.namelist()]
            return [_Drawing(*place, archive.read(entry)) for place, entry in entries if place]
    except Exception as error:  # damaged archives raise errors of a dozen kinds
        raise DataError(f"{path} cannot be read as a .zip file: {error}") from error


def _place(inside: str) -> tuple[str, str, int] | None:
    """Alphabet, character and drawer of a file; None if it is no drawing."""
    parts = inside.replace("\\", "/").split("/")
    stem = parts[-1].removesuffix(".png").split("_")
    is_drawing = len(parts) >= 3 and len(stem) == 2 and parts[-2].startswith("character")
    if not is_drawing or not parts[-1].endswith(".png") or not stem[1].isdigit():
        return None
    return parts[-3], parts[-2], int(stem[1])
