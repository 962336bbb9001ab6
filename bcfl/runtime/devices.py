"""Where the work is done, and with how many threads."""

from __future__ import annotations

import re
from collections.abc import Iterator
from contextlib import contextmanager

import torch
from threadpoolctl import threadpool_limits


def device_named(name: str) -> torch.device:
    """The device of a name; `auto` is CUDA where there is one, else the CPU.

    Raises:
        ValueError: the name is unknown, or there is no such device here.
    """
    if name == "auto":
        name = "cuda" if torch.cuda.is_available() else "cpu"
    if not re.fullmatch(r"cpu|cuda(:\d+)?", name):
        raise ValueError(f"device must be 'auto', 'cpu', 'cuda' or 'cuda:N', got {name!r}")
    device = torch.device(name)
    if device.type == "cuda" and not torch.cuda.is_available():
        raise ValueError(f"device {name!r} was asked for, but torch sees no CUDA device here")
    if device.index and device.index >= (count := torch.cuda.device_count()):
        raise ValueError(f"device {name!r} was asked for, but torch sees {count} CUDA devices here")
    return device


def checked_threads(threads: int | None) -> int | None:
    """The number itself.

    Raises:
        ValueError: it is below 1.
    """
    if threads is not None and threads < 1:
        raise ValueError(f"threads must be at least 1, got {threads}")
    return threads


@contextmanager
def limited_threads(threads: int | None) -> Iterator[None]:
    """Give torch, BLAS and OpenMP the same number of threads for a while.

    Args:
        threads: at least 1; None leaves everything as it is.

    Raises:
        ValueError: `threads` is below 1.
    """
    checked_threads(threads)
    if threads is None:
        yield
        return
    before = torch.get_num_threads()
    torch.set_num_threads(threads)
    try:
        with threadpool_limits(limits=threads):
            yield
    finally:
        torch.set_num_threads(before)
