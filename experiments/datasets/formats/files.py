"""Looking at files and folders, and reading them."""

from __future__ import annotations

import gzip
import os
import zlib
from collections.abc import Callable, Iterable, Iterator
from pathlib import Path
from typing import TypeAlias

from bcfl.runtime import nearest_name
from experiments.datasets.errors import DataError

Look: TypeAlias = Callable[[Path], list[Path]]
"""What a folder holds, see `inside` and `seen`."""


def is_file(path: Path) -> bool:
    """Whether a path is a file; not where it may not be looked at, or its name is too long."""
    try:
        return path.is_file()
    except OSError:
        return False


def is_folder(path: Path) -> bool:
    """Whether a path is a folder; not where it may not be looked at, or its name is too long."""
    try:
        return path.is_dir()
    except OSError:
        return False


def name_of(folder: Path) -> str:
    """Name of a folder, also where the path is that of the working directory or ends in `..`."""
    return folder.name if folder.name not in ("", "..") else folder.resolve().name


def absent(path: Path) -> str:
    """That a path does not exist, in words, with the most similar name that is there."""
    folder, name = path.parent, path.name
    while not is_folder(folder) and folder != folder.parent:
        folder, name = folder.parent, folder.name
    near = nearest_name(name, [one.name for one in seen(folder) if not is_hidden(one.name)])
    where = f", as there is no {folder / name}" * (name != path.name)
    if near is None:
        return f"does not exist{where}"
    beside = f".{os.sep}" * (str(folder) == ".")  # so that it is no name of a data set
    return f"does not exist{where}. Did you mean {f'{beside}{folder / near}'!r}?"


def is_hidden(name: str) -> bool:
    """Whether a file or folder of this name is none of the user's own."""
    return name.startswith(".") or name == "__MACOSX"


def ending_of(name: str, endings: Iterable[str]) -> str:
    """The longest of these endings, in lower case, that a file name has in any case; or ''."""
    found = (ending for ending in endings if name.lower().endswith(ending))
    return max(found, key=len, default="")


def inside(folder: Path) -> list[Path]:
    """What a folder holds, sorted by name; hidden files and folders as well.

    Raises:
        DataError: it cannot be read.
    """
    try:
        return sorted(folder.iterdir())
    except (OSError, ValueError) as error:  # of a name that no file can have
        raise DataError(f"{folder} cannot be read: {_reason(error)}") from error


def seen(folder: Path) -> list[Path]:
    """As `inside`, but nothing of a folder that cannot be read, and of what is no folder."""
    try:
        return inside(folder)
    except DataError:
        return []


def folders_in(folder: Path, look: Look = inside) -> list[Path]:
    """Folders inside a folder, sorted by name, without hidden ones; none of what is no folder.

    Args:
        folder: a path.
        look: `seen` where a folder that cannot be read is empty.

    Raises:
        DataError: it cannot be read.
    """
    paths = look(folder) if is_folder(folder) else []
    return [path for path in paths if not is_hidden(path.name) and is_folder(path)]


def files_below(folder: Path, look: Look = inside) -> Iterator[Path]:
    """Files in a folder and in all folders below it, symbolic links too, without hidden ones.

    Args:
        folder: the folder.
        look: `seen` where a folder that cannot be read is empty.

    Raises:
        DataError: a folder cannot be read.
    """
    return _files_below(folder, look, (folder.resolve(),))


def _files_below(folder: Path, look: Look, around: tuple[Path, ...]) -> Iterator[Path]:
    """As `files_below`, but not in links to the folders around."""
    paths = [path for path in look(folder) if not is_hidden(path.name)]
    yield from (path for path in paths if not is_folder(path))
    for path in filter(is_folder, paths):
        if (itself := path.resolve()) not in around:
            yield from _files_below(path, look, (*around, itself))


def content_of(path: Path) -> bytes:
    """Bytes of a file, decompressed where its name ends in `.gz`.

    Raises:
        DataError: it cannot be read or decompressed.
    """
    try:
        content = path.read_bytes()
        return gzip.decompress(content) if ending_of(path.name, (".gz",)) else content
    except (OSError, ValueError, EOFError, zlib.error) as error:
        raise DataError(f"{path} cannot be read: {_reason(error)}") from error


def text_of(path: Path, encoding: str = "utf-8-sig") -> str:
    """Text of a file, decompressed where its name ends in `.gz`.

    Raises:
        DataError: it cannot be read, decompressed or decoded.
    """
    try:
        return content_of(path).decode(encoding)
    except UnicodeDecodeError as error:
        raise DataError(f"{path} cannot be read: {error}") from error


def _reason(error: Exception) -> str:
    """What an error says, without the path."""
    return getattr(error, "strerror", None) or str(error)
