"""Folders of runs, in which one process at a time works, and files that are whole or not there.

DIR/run.json describes a run; DIR/METHOD/seed-S/ holds the `MethodFiles` of a method with a seed.
"""

from __future__ import annotations

import os
from collections.abc import Callable, Iterator, Mapping
from contextlib import contextmanager, suppress
from dataclasses import dataclass
from pathlib import Path
from shutil import rmtree

RUN_FORMAT = 2
"""Of `run.json` and of what stands in the rest of the folder of a run."""
FEDERATIONS = "federations"
"""Key of `run.json`: by name, `module:object` of a federation; there if Python wrote the run."""
PAIRS = "pairs"
"""Key of `run.json`: name and seed of each run; there if Python wrote the runs."""


GRAPHS: Mapping[str, str] = {
    "clients": "graph.graphml",
    "clusters": "clusters.graphml",
    "hypotheses": "hypotheses.graphml",
}
"""Graphs that every finished run has, by kind."""
OTHER_GRAPHS: Mapping[str, str] = {"support": "support.graphml"}
"""Graphs that only some methods have."""


@dataclass(frozen=True)
class MethodFiles:
    """Files of one method with one seed.

    Attributes:
        folder: DIR/METHOD/seed-S.
    """

    folder: Path

    @property
    def metrics(self) -> Path:
        """One line of JSON for each round that was done, see `bcfl.analysis.rows`."""
        return self.folder / "metrics.jsonl"

    @property
    def checkpoints(self) -> Path:
        """Folder of checkpoints."""
        return self.folder / "checkpoints"

    def graph(self, kind: str) -> Path:
        """GraphML of one of `GRAPHS` or `OTHER_GRAPHS`."""
        return self.folder / {**GRAPHS, **OTHER_GRAPHS}[kind]

    @property
    def is_finished(self) -> bool:
        """Whether all rounds were done; the graphs are written last."""
        return all(self.graph(kind).is_file() for kind in GRAPHS)


def whole_lines(path: Path) -> list[bytes]:
    """Lines of a file with their ends, without one that was cut off; none without the file."""
    if not path.is_file():
        return []
    return [line for line in path.read_bytes().splitlines(keepends=True) if line.endswith(b"\n")]


class BusyError(ValueError):
    """Another process is working in the folder."""


@contextmanager
def locked(folder: Path) -> Iterator[None]:
    """Lock a folder for this process; the lock is released when the process ends.

    Without effect on file systems without locks.

    Raises:
        BusyError: another process holds the lock.
    """
    try:
        import fcntl
    except ImportError:
        yield
        return
    handle = os.open(folder, os.O_RDONLY)
    try:
        with suppress(OSError):
            _hold(fcntl.flock, handle, fcntl.LOCK_EX | fcntl.LOCK_NB, folder)
        yield
    finally:
        os.close(handle)


def _hold(lock: Callable[[int, int], None], handle: int, how: int, folder: Path) -> None:
    try:
        lock(handle, how)
    except BlockingIOError:
        raise BusyError(f"another process is working in {folder}; wait for it, or end it") from None


def as_path(name: str, path: str | Path) -> Path:
    """A path.

    Args:
        name: of the argument, for the message.
        path: its value.

    Raises:
        TypeError: it is no path.
    """
    if not isinstance(path, str | os.PathLike):
        raise TypeError(f"{name} must be a path, got {path!r}")
    return Path(path)


def _check_new(folder: Path) -> None:
    """Check that nothing would be overwritten in a folder.

    Raises:
        FileExistsError: it holds something, or is a file.
    """
    if folder.exists() and not folder.is_dir():
        raise FileExistsError(f"folder {folder} must be new or empty, but it is a file")
    if folder.is_dir() and any(folder.iterdir()):
        raise FileExistsError(f"folder {folder} must be new or empty, but it holds files")


@contextmanager
def whole_folder(folder: Path) -> Iterator[Path]:
    """A folder to fill, whose contents move to their place when all is written.

    After an error nothing of them is left.

    Args:
        folder: new, or empty; missing parents are made.

    Raises:
        FileExistsError: it holds something, or is a file.
    """
    _check_new(folder)
    aside, is_new = folder / ".partial", not folder.exists()
    aside.mkdir(parents=True)
    try:
        yield aside
        for path in list(aside.iterdir()):
            path.rename(folder / path.name)
    except BaseException:
        rmtree(folder if is_new else aside, ignore_errors=True)
        raise
    aside.rmdir()


def write_aside(path: Path, content: str | bytes) -> None:
    """Write a file atomically: under another name, then renamed.

    Args:
        path: file to write; missing folders are made.
        content: text or bytes.

    Raises:
        OSError: it cannot be written; the error names this file, not the other one.
    """
    path.parent.mkdir(parents=True, exist_ok=True)
    aside = path.with_name(f".{path.name}.partial")
    try:
        with aside.open("wb") as file:
            file.write(content.encode() if isinstance(content, str) else content)
            file.flush()
            os.fsync(file.fileno())
        aside.replace(path)
    except OSError as error:
        error.filename, error.filename2 = str(path), None
        raise
