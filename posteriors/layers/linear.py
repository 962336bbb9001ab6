"""Squared per-sample gradients of fully connected layers."""

from __future__ import annotations

from torch import Tensor, nn


def linear(layer: nn.Linear, inputs: Tensor, gradients: Tensor) -> dict[str, Tensor]:
    """Sum of squared per-sample gradients of weight and bias.

    Args:
        layer: The layer.
        inputs: Its input, (samples, ..., in_features).
        gradients: Gradients with respect to its output, (columns, samples, ..., out_features).

    Returns:
        `weight` (out_features, in_features) and, if the layer has one, `bias` (out_features,).
    """
    if inputs.ndim > 2:
        return _over_positions(layer, inputs.flatten(1, -2), gradients.flatten(2, -2))
    squared = gradients.square().sum(0)
    result = {"weight": squared.T @ inputs.square()}
    if layer.bias is not None:
        result["bias"] = squared.sum(0)
    return result


def _over_positions(layer: nn.Linear, inputs: Tensor, gradients: Tensor) -> dict[str, Tensor]:
    """The same where each sample passes the layer at several positions, (samples, positions, _)."""
    weight = gradients.new_zeros(layer.weight.shape)
    for column in gradients:
        weight += (column.transpose(1, 2) @ inputs).square().sum(0)
    result = {"weight": weight}
    if layer.bias is not None:
        result["bias"] = gradients.sum(2).square().sum((0, 1))
    return result
