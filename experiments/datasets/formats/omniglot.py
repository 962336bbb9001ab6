"""Loader of Omniglot, from `.zip` files as published or from a folder."""

from __future__ import annotations

import re
import zipfile
from collections import Counter
from collections.abc import Collection, Iterable, Iterator
from dataclasses import dataclass
from itertools import chain
from pathlib import Path

import numpy as np
from numpy.typing import NDArray

from bcfl.runtime import counted, warn_of_data
from experiments.datasets.dataset import Dataset
from experiments.datasets.errors import DataError
from experiments.datasets.formats.files import (
    content_of,
    ending_of,
    files_below,
    is_file,
    is_folder,
    is_hidden,
    seen,
)
from experiments.datasets.formats.images import IMAGE_ENDINGS, decoded
from experiments.datasets.splits import PARTS

DRAWING = re.compile(r"(?:.*/)?([^/]+)/(character\d+)/\d{4}_(\d\d?)\.png")
"""Alphabet, character and drawer in the path of a drawing."""
PUBLISHED = ("images_background", "images_evaluation")
"""Folders of both published parts."""


@dataclass(frozen=True)
class _Drawing:
    alphabet: str
    character: str
    drawer: int
    content: bytes


def holds_omniglot(path: Path) -> bool:
    """Whether a `.zip` file or folder holds ALPHABET/characterNN/NNNN_DD.png.

    In a folder these may be inside `images_background` and `images_evaluation`. Alphabets are never
    called `train`, `test` or the like.
    """
    if ending_of(path.name, (".zip",)) and is_file(path):
        try:
            with zipfile.ZipFile(path) as archive:
                return any(_place(entry) for entry in archive.namelist())
        except Exception:  # damaged archives raise errors of a dozen kinds
            return False
    return is_folder(path) and any(map(_place, _seen(path)))


SIZE = (28, 28)


def load_omniglot(name: str, path: Path) -> Dataset:
    """Load Omniglot (Lake et al., 2015): a class is a character, a domain is an alphabet.

    Writers are the 20 drawers of each alphabet. Ink is 1 and paper is 0; images are resized to
    28 x 28. A warning tells of other images beside the drawings, which are left out.

    Args:
        name: name of the data set.
        path: a `.zip` file as published, the folder of alphabets, or that of both parts.

    Raises:
        DataError: the file or an image cannot be read, an image is in colours or of more than
            8 bits, there are as many other images as drawings, or a drawing in several folders.
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
        writer_names=tuple(f"{alphabet} {drawer}" for alphabet, drawer in writers),
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
    if is_folder(path):
        places = _places(path, [str(file.relative_to(path)) for file in files_below(path)])
        return [_Drawing(*place, content_of(path / file)) for file, place in places.items()]
    try:
        with zipfile.ZipFile(path) as archive:
            places = _places(path, archive.namelist())
            return [_Drawing(*place, archive.read(file)) for file, place in places.items()]
    except DataError:
        raise
    except Exception as error:  # damaged archives raise errors of a dozen kinds
        raise DataError(f"{path} cannot be read as a .zip file: {error}") from error


def _places(path: Path, files: Iterable[str]) -> dict[str, tuple[str, str, int]]:
    """Alphabet, character and drawer of each drawing."""
    images = [file for file in sorted(files) if ending_of(file, IMAGE_ENDINGS)]
    found = {file: _place(file) for file in images if not _is_hidden(file)}
    places = {file: place for file, place in found.items() if place is not None}
    _tell_others(path, len(places), [file for file in found if file not in places])
    names = Counter("/".join(re.split(r"[/\\]", file)[-3:]) for file in places)
    twice = next((name for name, count in names.items() if count > 1), None)
    if twice is not None:
        raise DataError(
            f"{path} holds the drawing {twice} in several folders; leave out all but one"
        )
    return places


def _tell_others(path: Path, drawings: int, others: Collection[str]) -> None:
    """Tell of images that are no drawings, of which there are fewer."""
    if not others:
        return
    held = (
        f"{path} holds {counted(drawings, 'drawing')} of Omniglot, ALPHABET/characterNN/"
        f"NNNN_DD.png, and {counted(len(others), 'other image')} ({next(iter(others))}"
        f"{', ...' * (len(others) > 1)})"
    )
    if len(others) >= drawings:
        raise DataError(f"{held}; leave these out, or name images by class otherwise")
    warn_of_data(f"{held}, which {'is' if len(others) == 1 else 'are'} not read")


def _place(file: str) -> tuple[str, str, int] | None:
    """Alphabet, character and drawer of a file; None if it is no drawing."""
    found = DRAWING.fullmatch(file.replace("\\", "/"))
    if found is None or found[1].lower() in chain(*PARTS.values()):
        return None
    return found[1], found[2], int(found[3])


def _is_hidden(file: str) -> bool:
    return any(map(is_hidden, file.replace("\\", "/").split("/")))


def _seen(folder: Path) -> Iterator[str]:
    """Files of characters in a folder, or its published parts, as far as it can be looked at."""
    around = [folder, *(folder / part for part in PUBLISHED)]
    for alphabet in filter(is_folder, chain(*map(seen, around))):
        for character in seen(alphabet):
            if character.name.startswith("character"):
                yield from (str(file.relative_to(folder)) for file in seen(character))
