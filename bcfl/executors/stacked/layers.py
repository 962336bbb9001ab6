"""Layers batched over models: forward passes here, squared gradients in `posteriors.curvature`.

Images are (batch, models x channels, height, width), vectors (models, batch, features).
"""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass
from typing import Protocol, TypeAlias

import torch
from torch import Tensor, nn
from torch.nn import functional

from bcfl.executors.stacked.network import Stacked, Weights
from posteriors.curvature.layers import convolution, linear, normalisation

Columns: TypeAlias = Iterable[Tensor]


class Layer(Protocol):
    """A layer of many models."""

    def __call__(self, stacked: Stacked, values: Tensor) -> Tensor:
        """Forward pass."""
        ...

    def prepare(self, stacked: Stacked, values: Tensor) -> Tensor | None:
        """What `add_squares` needs of the inputs; None for a layer without parameters.

        Args:
            stacked: tensors of the models.
            values: inputs of the layer.
        """
        ...

    def add_squares(self, prepared: Tensor, columns: Columns, into: Weights) -> None:
        """Add squared per-sample gradients of its parameters, summed over samples and columns.

        Args:
            prepared: result of `prepare`.
            columns: gradients with respect to the output, each shaped as that.
            into: (models, *shape) for each parameter tensor of the architecture.
        """
        ...


class ParameterFree:
    """A layer without parameters."""

    def prepare(self, stacked: Stacked, values: Tensor) -> None:
        """See `Layer`."""

    def add_squares(self, prepared: Tensor, columns: Columns, into: Weights) -> None:
        """See `Layer`."""


@dataclass(frozen=True, eq=False)
class Elementwise(ParameterFree):
    """A layer that acts on every channel independently and equally, such as an activation.

    Attributes:
        module: the layer of one model.
    """

    module: nn.Module

    def __call__(self, stacked: Stacked, values: Tensor) -> Tensor:
        """See `Layer`."""
        del stacked
        result: Tensor = self.module(values)
        return result


class FlattenSamples(ParameterFree):
    """From (models, batch, ...) to (models, batch, features)."""

    def __call__(self, stacked: Stacked, values: Tensor) -> Tensor:
        """See `Layer`."""
        del stacked
        return values.flatten(2)


class FlattenImages(ParameterFree):
    """From (batch, models x channels, height, width) to (models, batch, features)."""

    def __call__(self, stacked: Stacked, values: Tensor) -> Tensor:
        """See `Layer`."""
        batch, models = len(values), len(stacked.weights[0])
        return values.reshape(batch, models, -1).transpose(0, 1)


@dataclass(frozen=True)
class Linear:
    """A fully connected layer.

    Attributes:
        weight: index of its weight among the parameter tensors.
        bias: index of its bias, or None.
    """

    weight: int
    bias: int | None

    def __call__(self, stacked: Stacked, values: Tensor) -> Tensor:
        """See `Layer`."""
        matrix = stacked.weights[self.weight].transpose(1, 2)
        if self.bias is None:
            return torch.bmm(values, matrix)
        return torch.baddbmm(stacked.weights[self.bias].unsqueeze(1), values, matrix)

    def prepare(self, stacked: Stacked, values: Tensor) -> Tensor:
        """See `Layer`."""
        del stacked
        return linear.prepared(values)

    def add_squares(self, prepared: Tensor, columns: Columns, into: Weights) -> None:
        """See `Layer`."""
        _add(into, (self.weight, self.bias), linear.squares(prepared, columns))


@dataclass(frozen=True, eq=False)
class Convolution:
    """A convolution with zero padding, of all models by one grouped convolution.

    Attributes:
        module: the layer of one model.
        weight: index of its kernels among the parameter tensors.
        bias: index of its bias, or None.
    """

    module: nn.Conv2d
    weight: int
    bias: int | None

    def __call__(self, stacked: Stacked, values: Tensor) -> Tensor:
        """See `Layer`."""
        module, kernels = self.module, stacked.weights[self.weight]
        return functional.conv2d(
            values,
            kernels.flatten(0, 1),
            None if self.bias is None else stacked.weights[self.bias].flatten(),
            module.stride,
            module.padding,
            module.dilation,
            module.groups * len(kernels),
        )

    def prepare(self, stacked: Stacked, values: Tensor) -> Tensor:
        """See `Layer`."""
        return convolution.patches(self.module, values, len(stacked.weights[self.weight]))

    def add_squares(self, prepared: Tensor, columns: Columns, into: Weights) -> None:
        """See `Layer`."""
        _add(into, (self.weight, self.bias), convolution.squares(prepared, columns))


@dataclass(frozen=True, eq=False)
class GroupNorm:
    """Normalisation of groups of channels.

    Attributes:
        module: the layer of one model.
        weight: index of its scale among the parameter tensors.
        bias: index of its offset.
    """

    module: nn.GroupNorm
    weight: int
    bias: int

    def __call__(self, stacked: Stacked, values: Tensor) -> Tensor:
        """See `Layer`."""
        scale, shift = stacked.weights[self.weight], stacked.weights[self.bias]
        groups = self.module.num_groups * len(scale)
        return functional.group_norm(
            values, groups, scale.flatten(), shift.flatten(), self.module.eps
        )

    def prepare(self, stacked: Stacked, values: Tensor) -> Tensor:
        """See `Layer`."""
        return normalisation.by_groups(self.module, values, len(stacked.weights[self.weight]))

    def add_squares(self, prepared: Tensor, columns: Columns, into: Weights) -> None:
        """See `Layer`."""
        _add(into, (self.weight, self.bias), normalisation.squares(prepared, columns))


@dataclass(frozen=True, eq=False)
class BatchNorm:
    """Batch normalisation of images; every channel of every model is normalised by itself.

    Attributes:
        module: the layer of one model.
        weight: index of its scale among the parameter tensors.
        bias: index of its offset.
        mean: index of its running mean among the buffers; the variance comes next.
    """

    module: nn.BatchNorm1d | nn.BatchNorm2d
    weight: int
    bias: int
    mean: int

    def __call__(self, stacked: Stacked, values: Tensor) -> Tensor:
        """See `Layer`."""
        buffers = stacked.buffers[self.mean : self.mean + 2]
        mean, variance = (b.clone(memory_format=torch.contiguous_format) for b in buffers)
        result = functional.batch_norm(
            values,
            mean.view(-1),
            variance.view(-1),
            stacked.weights[self.weight].flatten(),
            stacked.weights[self.bias].flatten(),
            stacked.training,
            self.module.momentum or 0.0,
            self.module.eps,
        )
        if stacked.training:
            for buffer, statistic in zip(buffers, (mean, variance), strict=True):
                buffer.copy_(statistic)
        return result

    def prepare(self, stacked: Stacked, values: Tensor) -> Tensor:
        """See `Layer`."""
        mean, variance = stacked.buffers[self.mean : self.mean + 2]
        statistics = mean.flatten(), variance.flatten()
        return normalisation.by_running_statistics(self.module, values, statistics)

    def add_squares(self, prepared: Tensor, columns: Columns, into: Weights) -> None:
        """See `Layer`."""
        _add(into, (self.weight, self.bias), normalisation.squares(prepared, columns))


@dataclass(frozen=True, eq=False)
class VectorBatchNorm:
    """Batch normalisation of vectors.

    Attributes:
        channels: the same with features as channels, (batch, models x features).
    """

    channels: BatchNorm

    def __call__(self, stacked: Stacked, values: Tensor) -> Tensor:
        """See `Layer`."""
        models, batch, features = values.shape
        flat = self.channels(stacked, _as_channels(values))
        return flat.view(batch, models, features).transpose(0, 1)

    def prepare(self, stacked: Stacked, values: Tensor) -> Tensor:
        """See `Layer`."""
        return self.channels.prepare(stacked, _as_channels(values))

    def add_squares(self, prepared: Tensor, columns: Columns, into: Weights) -> None:
        """See `Layer`."""
        self.channels.add_squares(prepared, map(_as_channels, columns), into)


def _as_channels(values: Tensor) -> Tensor:
    """(batch, models x features) of values (models, batch, features)."""
    return values.transpose(0, 1).flatten(1)


def _add(into: Weights, indices: tuple[int, int | None], squares: tuple[Tensor, Tensor]) -> None:
    """Add the squares to those of weight and bias."""
    for index, square in zip(indices, squares, strict=True):
        if index is not None:
            into[index].add_(square.view_as(into[index]))
