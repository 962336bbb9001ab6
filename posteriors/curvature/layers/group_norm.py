"""Squared per-sample gradients of group normalisation."""

from __future__ import annotations

from collections.abc import Sequence

import torch
from torch import Tensor, nn
from torch.nn import functional


def group_norm(
    layer: nn.GroupNorm, inputs: Tensor, gradients: Sequence[Tensor]
) -> dict[str, Tensor]:
    """Sum of squared per-sample gradients of scale and offset.

    Args:
        layer: The layer, with scale and offset.
        inputs: Its input, (samples, channels, ...).
        gradients: Columns of gradients with respect to its output, each (samples, channels, ...).

    Returns:
        `weight` and `bias`, both (channels,).
    """
    samples, channels = inputs.shape[:2]
    normalised = functional.group_norm(inputs, layer.num_groups, eps=layer.eps)
    normalised = normalised.reshape(samples, channels, -1)
    weight = torch.zeros_like(layer.weight, requires_grad=False)
    bias = torch.zeros_like(weight)
    for column in gradients:
        gradient = column.reshape(normalised.shape)
        weight += (gradient * normalised).sum(2).square().sum(0)
        bias += gradient.sum(2).square().sum(0)
    return {"weight": weight, "bias": bias}
