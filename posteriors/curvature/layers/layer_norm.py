"""Squared per-sample gradients of layer normalisation."""

from __future__ import annotations

from collections.abc import Sequence

import torch
from torch import Tensor, nn
from torch.nn import functional


def layer_norm(
    layer: nn.LayerNorm, inputs: Tensor, gradients: Sequence[Tensor]
) -> dict[str, Tensor]:
    """Sum of squared per-sample gradients of scale and offset, summed over positions first.

    Args:
        layer: The layer, with a scale.
        inputs: Its input, (samples, ..., *normalized_shape).
        gradients: Columns of gradients with respect to its output, each of the input's shape.

    Returns:
        `weight` and, if the layer has one, `bias`, both of shape `normalized_shape`.
    """
    by_position = (len(inputs), -1, *layer.normalized_shape)
    normalised = functional.layer_norm(inputs, layer.normalized_shape, eps=layer.eps)
    normalised = normalised.reshape(by_position)
    weight = torch.zeros_like(layer.weight, requires_grad=False)
    bias = torch.zeros_like(weight)
    for column in gradients:
        gradient = column.reshape(by_position)
        weight += (gradient * normalised).sum(1).square().sum(0)
        bias += gradient.sum(1).square().sum(0)
    return {"weight": weight} if layer.bias is None else {"weight": weight, "bias": bias}
