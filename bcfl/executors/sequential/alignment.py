"""Tensors as they must lie in memory for results that do not depend on where they came from."""

from __future__ import annotations

import torch
from torch import Tensor

ALIGNMENT = 64
"""Bytes. Vectorised routines treat the ends of an array by where it begins: the same numbers
elsewhere may be summed in another order."""


def aligned(tensor: Tensor, device: torch.device, dtype: torch.dtype) -> Tensor:
    """The tensor on a device, contiguous, beginning at a multiple of `ALIGNMENT`.

    Args:
        tensor: of any numbers.
        device: where it goes.
        dtype: what floating-point numbers become; others keep their type.
    """
    placed = tensor.to(device, dtype) if tensor.is_floating_point() else tensor.to(device)
    placed = placed.contiguous()
    return placed if placed.data_ptr() % ALIGNMENT == 0 else placed.clone()
