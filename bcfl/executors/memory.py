"""Memory budget of batched work, and batches that fit in it."""

from __future__ import annotations

import re
from collections.abc import Iterator, Sequence
from typing import TypeVar

import torch

Item = TypeVar("Item")
UNITS = {"B": 1, "KB": 10**3, "MB": 10**6, "GB": 10**9, "KIB": 2**10, "MIB": 2**20, "GIB": 2**30}
ON_CPU = 256 * 2**20
"""Default bytes on a CPU; more no longer saves time."""
SHARE_ON_GPU = 0.5
"""Default share of the free memory of a GPU."""


def bytes_named(text: str) -> int:
    """The number of bytes that a text such as 2GB, 512MiB or 1.5e9 stands for.

    Raises:
        ValueError: it stands for none, or for less than one byte.
    """
    found = re.fullmatch(r"\s*([0-9.]+(?:e[0-9]+)?)\s*([a-zA-Z]*)\s*", text)
    unit = UNITS.get(found[2].upper() or "B") if found else None
    try:
        number = float(found[1]) * unit if found and unit else 0.0
    except ValueError:
        number = 0.0
    if number < 1:
        raise ValueError(f"memory must be a size such as 2GB, 512MiB or 800MB, got {text!r}")
    return int(number)


def checked_memory(memory: int | None) -> int | None:
    """The budget itself.

    Raises:
        ValueError: it is no whole number of at least one byte.
    """
    if memory is not None and (not isinstance(memory, int) or memory < 1):
        raise ValueError(f"memory must be a whole number of bytes, at least 1, got {memory!r}")
    return memory


def budget(memory: int | None, device: torch.device) -> int:
    """Bytes of working memory: the given number, or one that suits the device."""
    if memory is not None:
        return memory
    if device.type == "cuda":
        return int(SHARE_ON_GPU * torch.cuda.mem_get_info(device)[0])
    return ON_CPU


def chunks(items: Sequence[Item], bytes_each: int, limit: int) -> Iterator[Sequence[Item]]:
    """Consecutive parts of nearly equal size that fit in a limit, of one item at least."""
    most = max(1, limit // max(1, bytes_each))
    parts = -(-len(items) // most)
    size = -(-len(items) // max(1, parts))
    for start in range(0, len(items), max(1, size)):
        yield items[start : start + size]
