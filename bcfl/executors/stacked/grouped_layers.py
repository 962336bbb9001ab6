"""Layers of many models at one time.

Images lie as (batch, problems x channels, height, width), vectors as (problems, batch, features).
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Protocol

import torch
from torch import Tensor, nn
from torch.nn import functional

from bcfl.executors.stacked.network import Stacked, Weights


class Layer(Protocol):
    """A function of the models and of what the layer before gave."""

    def __call__(self, stacked: Stacked, values: Tensor) -> Tensor:
        """What it gives."""
        ...

    def seen(self, stacked: Stacked, values: Tensor) -> Tensor | None:
        """What `add_squares` has to know of the values; None for a layer without parameters."""
        ...

    def add_squares(self, seen: Tensor, slopes: Tensor, into: Weights) -> None:
        """Add squared gradients in its parameters, one for each sample, summed over samples.

        Args:
            seen: what `seen` gave.
            slopes: gradient in what the layer gave, shaped as that.
            into: (problems, *shape) for each parameter tensor of the model.
        """
        ...


class Plain:
    """A layer without parameters."""

    def seen(self, stacked: Stacked, values: Tensor) -> None:
        """See `Layer`."""

    def add_squares(self, seen: Tensor, slopes: Tensor, into: Weights) -> None:
        """See `Layer`."""


@dataclass(frozen=True, eq=False)
class Elementwise(Plain):
    """A layer that treats channels alike.

    Attributes:
        module: the layer of one model.
    """

    module: nn.Module

    def __call__(self, stacked: Stacked, values: Tensor) -> Tensor:
        """See `Layer`."""
        del stacked
        result: Tensor = self.module(values)
        return result


class FlattenVectors(Plain):
    """Samples of any shape, not side by side, as vectors."""

    def __call__(self, stacked: Stacked, values: Tensor) -> Tensor:
        """See `Layer`."""
        del stacked
        return values.flatten(2)


class FlattenImages(Plain):
    """Images side by side, as vectors."""

    def __call__(self, stacked: Stacked, values: Tensor) -> Tensor:
        """See `Layer`."""
        batch, problems = len(values), len(stacked.weights[0])
        return values.reshape(batch, problems, -1).transpose(0, 1)


@dataclass(frozen=True)
class Linear:
    """A fully connected layer.

    Attributes:
        weight: place of its weights.
        bias: place of its offsets, or None.
    """

    weight: int
    bias: int | None

    def __call__(self, stacked: Stacked, values: Tensor) -> Tensor:
        """See `Layer`."""
        matrix = stacked.weights[self.weight].transpose(1, 2)
        if self.bias is None:
            return torch.bmm(values, matrix)
        return torch.baddbmm(stacked.weights[self.bias].unsqueeze(1), values, matrix)

    def seen(self, stacked: Stacked, values: Tensor) -> Tensor:
        """See `Layer`."""
        del stacked
        return values.square()

    def add_squares(self, seen: Tensor, slopes: Tensor, into: Weights) -> None:
        """See `Layer`; the square of a product is the product of squares."""
        diag_ggn = slopes.square()
        into[self.weight].add_(torch.bmm(diag_ggn.transpose(1, 2), seen))
        if self.bias is not None:
            into[self.bias].add_(diag_ggn.sum(1))


@dataclass(frozen=True, eq=False)
class Convolution:
    """A convolution with zeros around the images.

    Attributes:
        module: the layer of one model.
        weight: place of its kernels.
        bias: place of its offsets, or None.
    """

    module: nn.Conv2d
    weight: int
    bias: int | None

    def __call__(self, stacked: Stacked, values: Tensor) -> Tensor:
        """See `Layer`."""
        one, kernels = self.module, stacked.weights[self.weight]
        return functional.conv2d(
            values,
            kernels.flatten(0, 1),
            None if self.bias is None else stacked.weights[self.bias].flatten(),
            one.stride,
            one.padding,
            one.dilation,
            one.groups * len(kernels),
        )

    def seen(self, stacked: Stacked, values: Tensor) -> Tensor:
        """See `Layer`; patches (batch, problems x groups, channels x kernel, positions)."""
        one = self.module
        padded = functional.pad(values, self._edges()).contiguous()
        reach = [d * (k - 1) for d, k in zip(one.dilation, one.kernel_size, strict=True)]
        places = [
            (size - r - 1) // s + 1
            for size, r, s in zip(padded.shape[2:], reach, one.stride, strict=True)
        ]
        batch, channel, *along = padded.stride()
        patches = padded.as_strided(
            (*padded.shape[:2], *one.kernel_size, *places),
            (
                batch,
                channel,
                *(step * d for step, d in zip(along, one.dilation, strict=True)),
                *(step * s for step, s in zip(along, one.stride, strict=True)),
            ),
        )
        groups = one.groups * len(stacked.weights[self.weight])
        return patches.reshape(len(values), groups, -1, places[0] * places[1])

    def add_squares(self, seen: Tensor, slopes: Tensor, into: Weights) -> None:
        """See `Layer`; positions are summed before the square."""
        batch, groups, _, positions = seen.shape
        by_place = slopes.reshape(batch, groups, -1, positions)
        kernels = torch.matmul(by_place, seen.transpose(2, 3)).square_().sum(0)
        into[self.weight].add_(kernels.view_as(into[self.weight]))
        if self.bias is not None:
            offsets = by_place.sum(3).square_().sum(0)
            into[self.bias].add_(offsets.view_as(into[self.bias]))

    def _edges(self) -> list[int]:
        """Zeros before and after each axis, last axis first."""
        one = self.module
        if not isinstance(one.padding, str):
            return [int(one.padding[axis]) for axis in (1, 1, 0, 0)]
        if one.padding == "valid":
            return [0] * 4
        totals = [one.dilation[axis] * (one.kernel_size[axis] - 1) for axis in (1, 0)]
        return [edge for total in totals for edge in (total // 2, total - total // 2)]
