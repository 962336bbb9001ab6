"""Squared per-sample gradients of fully connected layers."""

from __future__ import annotations

from collections.abc import Sequence

import torch
from torch import Tensor, nn


def linear(layer: nn.Linear, inputs: Tensor, gradients: Sequence[Tensor]) -> dict[str, Tensor]:
    """Sum of squared per-sample gradients of weight and bias.

    Args:
        layer: The layer.
        inputs: Its input, (samples, ..., in_features).
        gradients: Columns of gradients with respect to its output, each (samples, ...,
            out_features).

    Returns:
        `weight` (out_features, in_features) and, if the layer has one, `bias` (out_features,).
    """
    if inputs.ndim > 2:
        return _over_positions(layer, inputs.flatten(1, -2), gradients)
    squared = torch.zeros_like(gradients[0])
    for column in gradients:
        squared.addcmul_(column, column)
    result = {"weight": squared.T @ inputs.square()}
    if layer.bias is not None:
        result["bias"] = squared.sum(0)
    return result


def _over_positions(
    layer: nn.Linear, inputs: Tensor, gradients: Sequence[Tensor]
) -> dict[str, Tensor]:
    """The same where each sample passes the layer at several positions, (samples, positions, _)."""
    weight = torch.zeros_like(layer.weight, requires_grad=False)
    bias = weight.new_zeros(len(weight))
    for column in gradients:
        flat = column.flatten(1, -2)
        weight += (flat.transpose(1, 2) @ inputs).square().sum(0)
        bias += flat.sum(1).square().sum(0)
    return {"weight": weight} if layer.bias is None else {"weight": weight, "bias": bias}
