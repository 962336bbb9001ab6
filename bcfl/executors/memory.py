"""Memory budget of batched work, and batches that fit in it."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from typing import TypeVar

import torch

Item = TypeVar("Item")
ON_CPU = 256 * 2**20
"""Default bytes on a CPU; more no longer saves time."""
SHARE_ON_GPU = 0.5
"""Default share of the free memory of a GPU."""


def budget(memory: int | None, device: torch.device) -> int:
    """Bytes of working memory: the given number, or one that suits the device.

    Args:
        memory: given number of bytes, or None.
        device: where the work is done.
    """
    if memory is not None:
        return memory
    if device.type == "cuda":
        return int(SHARE_ON_GPU * torch.cuda.mem_get_info(device)[0])
    return ON_CPU


def chunks(items: Sequence[Item], bytes_each: int, limit: int) -> Iterator[Sequence[Item]]:
    """Consecutive parts of nearly equal size that fit in a limit, of one item at least.

    Args:
        items: items to divide.
        bytes_each: working memory of one item, bytes.
        limit: working memory of a part, bytes.
    """
    most = max(1, limit // max(1, bytes_each))
    parts = -(-len(items) // most)
    size = -(-len(items) // max(1, parts))
    for start in range(0, len(items), max(1, size)):
        yield items[start : start + size]
