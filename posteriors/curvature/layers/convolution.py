"""Squared per-sample gradients of two-dimensional convolutions."""

from __future__ import annotations

from collections.abc import Sequence

import torch
from torch import Tensor, nn
from torch.nn import functional


def convolution(layer: nn.Conv2d, inputs: Tensor, gradients: Sequence[Tensor]) -> dict[str, Tensor]:
    """Sum of squared per-sample gradients of weight and bias, for any stride, padding and groups.

    Args:
        layer: The layer.
        inputs: Its input, (samples, in_channels, height, width).
        gradients: Columns of gradients with respect to its output, each (samples, out_channels,
            output height, output width).

    Returns:
        `weight`, in the shape of the layer's, and, if the layer has one, `bias` (out_channels,).

    Memory: the unfolded input, (samples, in_channels x kernel area, output area), and one product
    (samples, *weight shape).
    """
    patches = _unfold(layer, inputs)
    samples, _, positions = patches.shape
    patches = patches.view(samples * layer.groups, -1, positions).transpose(1, 2)
    weight = torch.zeros_like(layer.weight, requires_grad=False)
    bias = weight.new_zeros(len(weight))
    for column in gradients:
        per_sample = column.reshape(samples * layer.groups, -1, positions) @ patches
        weight += per_sample.square_().view(samples, -1).sum(0).view(weight.shape)
        bias += column.sum((2, 3)).square().sum(0)
    return {"weight": weight} if layer.bias is None else {"weight": weight, "bias": bias}


def _unfold(layer: nn.Conv2d, inputs: Tensor) -> Tensor:
    """Patches under the kernel at each output position, (samples, channels x kernel, positions)."""
    mode = "constant" if layer.padding_mode == "zeros" else layer.padding_mode
    padded = functional.pad(inputs, _edges(layer), mode=mode)
    return functional.unfold(
        padded, layer.kernel_size, dilation=layer.dilation, stride=layer.stride
    )


def _edges(layer: nn.Conv2d) -> list[int]:
    """Padding before and after each spatial axis, last axis first."""
    edges: list[int] = []
    for axis in (1, 0):
        if isinstance(layer.padding, str):
            total = layer.dilation[axis] * (layer.kernel_size[axis] - 1)
            total = total if layer.padding == "same" else 0
            edges += [total // 2, total - total // 2]
        else:
            edges += [int(layer.padding[axis])] * 2
    return edges
