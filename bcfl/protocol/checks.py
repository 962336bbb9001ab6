"""Checks of the numbers in an answer."""

from __future__ import annotations

import math
from collections.abc import Collection

import numpy as np
import torch
from torch import Tensor

from posteriors.checks import largest_magnitude

LARGEST_SUM = 1e30
"""Losses and precisions beyond this could overflow when those of many clients are added up."""


LARGEST_COUNT = 2**53
"""Numbers of samples beyond this are not exact in float64, and no client has as many."""


def is_count(number: object) -> bool:
    """Whether it is a whole number from 1 to `LARGEST_COUNT`."""
    return isinstance(number, int | np.integer) and bool(1 <= number <= LARGEST_COUNT)


def is_sum(number: object) -> bool:
    """Whether it is a real number of magnitude up to `LARGEST_SUM`."""
    if not isinstance(number, float | int | np.floating | np.integer):
        return False
    return abs(float(number)) <= LARGEST_SUM


def tensor_trouble(
    tensor: object, shapes: Collection[tuple[int, ...]], largest: float = LARGEST_SUM
) -> str:
    """Why a tensor of an answer is invalid; empty if it is valid.

    Args:
        tensor: float32 or float64 where it is usable.
        shapes: that it may have.
        largest: absolute value of its entries.
    """
    if not isinstance(tensor, Tensor) or tensor.dtype not in (torch.float32, torch.float64):
        return "is no tensor of float32 or float64"
    if tuple(tensor.shape) not in shapes:
        return f"has shape {tuple(tensor.shape)}"
    magnitude = largest_magnitude(tensor)
    if not math.isfinite(magnitude):
        return "is not finite"
    if magnitude > largest:
        return f"has entries beyond {largest:g}"
    return ""
