"""Squared per-sample gradients of batch normalisation with frozen running statistics."""

from __future__ import annotations

from collections.abc import Sequence

import torch
from torch import Tensor, nn


def batch_norm(
    layer: nn.BatchNorm1d | nn.BatchNorm2d, inputs: Tensor, gradients: Sequence[Tensor]
) -> dict[str, Tensor]:
    """Sum of squared per-sample gradients of scale and offset.

    Args:
        layer: The layer, in eval mode, with running statistics.
        inputs: Its input, (samples, features, ...).
        gradients: Columns of gradients with respect to its output, each (samples, features, ...).

    Returns:
        `weight` and `bias`, both (features,).
    """
    mean, variance = layer.running_mean, layer.running_var
    if mean is None or variance is None:
        raise ValueError("layer must have running statistics")
    flat = inputs.flatten(2) if inputs.ndim > 2 else inputs.unsqueeze(2)
    scale = torch.rsqrt(variance + layer.eps)
    normalised = (flat - mean[:, None]) * scale[:, None]
    weight, bias = torch.zeros_like(mean), torch.zeros_like(mean)
    for column in gradients:
        gradient = column.reshape(normalised.shape)
        weight += (gradient * normalised).sum(2).square().sum(0)
        bias += gradient.sum(2).square().sum(0)
    return {"weight": weight, "bias": bias}
