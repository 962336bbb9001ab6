"""Checks of tensor arguments: each names the argument, what it holds and what is allowed."""

from __future__ import annotations

import math

import torch
from torch import Tensor


def require_float(name: str, tensor: Tensor) -> None:
    """Raise TypeError unless `tensor` is a float32 or float64 tensor."""
    if not isinstance(tensor, Tensor) or tensor.dtype not in (torch.float32, torch.float64):
        found = tensor.dtype if isinstance(tensor, Tensor) else type(tensor).__name__
        raise TypeError(f"{name} must be a float32 or float64 tensor, got {found}")


def require_broadcastable(name: str, tensor: Tensor, target: Tensor) -> None:
    """Raise ValueError unless `tensor` broadcasts to the shape of `target`."""
    axes = zip(reversed(tensor.shape), reversed(target.shape), strict=False)
    if tensor.ndim > target.ndim or any(have not in (1, want) for have, want in axes):
        raise ValueError(
            f"{name} must be broadcastable to the mean's shape {tuple(target.shape)}, "
            f"got {tuple(tensor.shape)}"
        )


def require_finite(name: str, tensor: Tensor) -> None:
    """Raise ValueError if `tensor` holds NaN or infinities."""
    low, high = (float(edge) for edge in tensor.aminmax())
    if not (math.isfinite(low) and math.isfinite(high)):
        count = int((~tensor.isfinite()).sum())
        raise ValueError(f"{name} must be finite, {count} of {tensor.numel()} entries are not")


def require_non_negative(name: str, tensor: Tensor) -> None:
    """Raise ValueError unless every entry of `tensor` is finite and at least 0."""
    require_finite(name, tensor)
    smallest = float(tensor.min())
    if smallest < 0:
        raise ValueError(f"{name} must be at least 0, smallest is {smallest}")
