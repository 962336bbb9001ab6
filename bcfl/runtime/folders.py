"""Folders in which one process at a time works."""

from __future__ import annotations

import os
from collections.abc import Callable, Iterator
from contextlib import contextmanager, suppress
from pathlib import Path


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
