"""Squared per-sample gradients of convolutions in one, two or three dimensions."""

from __future__ import annotations

from collections.abc import Iterable
from math import prod

from torch import Tensor, nn
from torch.nn import functional

Convolution = nn.Conv1d | nn.Conv2d | nn.Conv3d


def patches(layer: Convolution, inputs: Tensor, models: int = 1) -> Tensor:
    """Patches under the kernel at each output position: what `squares` needs of the input.

    Any stride, padding and number of groups.

    Args:
        layer: The layer of one network.
        inputs: Images, (samples, models x in_channels, height, width), or with one or three
            spatial axes.
        models: Networks in the stack, whose channels are concatenated.

    Returns:
        A copy, (samples, models x groups, in_channels / groups x kernel area, positions).
    """
    mode = "constant" if layer.padding_mode == "zeros" else layer.padding_mode
    padded = functional.pad(inputs, _edges(layer), mode=mode).contiguous()
    spans = [d * (k - 1) for d, k in zip(layer.dilation, layer.kernel_size, strict=True)]
    sizes = [
        (size - span - 1) // stride + 1
        for size, span, stride in zip(padded.shape[2:], spans, layer.stride, strict=True)
    ]
    sample, channel, *along = padded.stride()
    windows = padded.as_strided(
        (*padded.shape[:2], *layer.kernel_size, *sizes),
        (
            sample,
            channel,
            *(step * d for step, d in zip(along, layer.dilation, strict=True)),
            *(step * s for step, s in zip(along, layer.stride, strict=True)),
        ),
    )
    return windows.reshape(len(inputs), models * layer.groups, -1, prod(sizes))


def squares(patches: Tensor, columns: Iterable[Tensor]) -> tuple[Tensor, Tensor]:
    """Sum of squared per-sample gradients of weight and bias; positions are summed first.

    Memory: one product (samples, models, *weight shape).

    Args:
        patches: (samples, models x groups, in_channels / groups x kernel area, positions).
        columns: Gradients with respect to the output, each (samples, models x out_channels,
            *output sizes).

    Returns:
        Those of the weight, (models x groups, out_channels / groups, in_channels / groups x kernel
        area), and of the bias, (models x groups, out_channels / groups).
    """
    transposed = patches.transpose(2, 3)
    weight = bias = patches.new_zeros(())
    for column in columns:
        gradient = column.reshape(*patches.shape[:2], -1, patches.shape[3])
        weight = weight + (gradient @ transposed).square_().sum(0)
        bias = bias + gradient.sum(3).square_().sum(0)
    return weight, bias


def _edges(layer: Convolution) -> list[int]:
    """Padding before and after each spatial axis, last axis first."""
    axes = range(len(layer.kernel_size))[::-1]
    if not isinstance(layer.padding, str):
        return [int(layer.padding[axis]) for axis in axes for _ in range(2)]
    if layer.padding == "valid":
        return [0] * (2 * len(axes))
    totals = [layer.dilation[axis] * (layer.kernel_size[axis] - 1) for axis in axes]
    return [edge for total in totals for edge in (total // 2, total - total // 2)]
