"""Device selection and thread limits; torch is imported by what needs it."""

from __future__ import annotations

import re
from collections.abc import Iterator
from contextlib import contextmanager
from functools import cache
from typing import TYPE_CHECKING

from threadpoolctl import threadpool_limits

from bcfl.runtime.numbers import check_whole

if TYPE_CHECKING:
    import torch

    from posteriors.global_state import TemporaryChanges, Undo


def device_named(name: str | torch.device) -> torch.device:
    """Resolve a device or its name; `auto` is CUDA where available, else the CPU.

    Raises:
        TypeError: it is neither.
        ValueError: the name is unknown or the device is not available.
    """
    allowed = "device must be 'auto', 'cpu', 'cuda' or 'cuda:N', or such a torch.device"
    if not isinstance(name, str) and type(name).__name__ != "device":
        raise TypeError(f"{allowed}, got {name!r}")
    name = "cpu" if str(name) == "cpu:0" else str(name)
    if not re.fullmatch(r"auto|cpu|cuda(:\d+)?", name):
        raise ValueError(f"{allowed}, got {name!r}")
    import torch

    if name == "auto":
        name = "cuda" if torch.cuda.is_available() else "cpu"
    device = torch.device(name)
    if device.type == "cuda" and not torch.cuda.is_available():
        raise ValueError(f"device {name!r} is not available: torch finds no CUDA device")
    if device.index and device.index >= (count := torch.cuda.device_count()):
        raise ValueError(f"device {name!r} is not available: torch finds {count} CUDA devices")
    return device


def checked_threads(threads: int | None) -> int | None:
    """Check a number of threads and return it.

    Raises:
        ValueError: it is no whole number of at least 1.
    """
    if threads is not None:
        check_whole("threads", threads, other=" or None")
    return threads


@contextmanager
def limited_threads(threads: int | None) -> Iterator[None]:
    """Context manager that limits the threads of torch, BLAS and OpenMP.

    Args:
        threads: number of threads, at least 1; None changes nothing.

    Raises:
        ValueError: `threads` is below 1.
    """
    checked_threads(threads)
    if threads is None:
        yield
        return
    import torch

    before = torch.get_num_threads()
    with _limits().made(lambda: _limit(threads)):
        try:
            yield
        finally:
            torch.set_num_threads(before)  # which is a setting of each thread


@cache
def _limits() -> TemporaryChanges:
    from posteriors.global_state import TemporaryChanges

    return TemporaryChanges()


def _limit(threads: int) -> Undo:
    import torch

    before, libraries = torch.get_num_threads(), threadpool_limits(limits=threads)
    torch.set_num_threads(threads)

    def restore() -> None:
        libraries.restore_original_limits()
        torch.set_num_threads(before)

    return restore
