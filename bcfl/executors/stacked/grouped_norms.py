"""Normalisation in many models at one time; values lie as in `grouped_layers`."""

from __future__ import annotations

from dataclasses import dataclass

import torch
from torch import Tensor
from torch.nn import functional

from bcfl.executors.stacked.network import Stacked, Weights


@dataclass(frozen=True)
class GroupNorm:
    """Normalisation of groups of channels.

    Attributes:
        groups: of one model.
        weight: place of the scales.
        bias: place of the offsets.
        epsilon: added to variances.
    """

    groups: int
    weight: int
    bias: int
    epsilon: float

    def __call__(self, stacked: Stacked, values: Tensor) -> Tensor:
        """See `Layer`."""
        scale, shift = stacked.weights[self.weight], stacked.weights[self.bias]
        groups = self.groups * len(scale)
        return functional.group_norm(values, groups, scale.flatten(), shift.flatten(), self.epsilon)

    def seen(self, stacked: Stacked, values: Tensor) -> Tensor:
        """See `Layer`; normalised values."""
        groups = self.groups * len(stacked.weights[self.weight])
        return functional.group_norm(values, groups, eps=self.epsilon)

    def add_squares(self, seen: Tensor, slopes: Tensor, into: Weights) -> None:
        """See `Layer`."""
        _add_channels(seen, slopes, into[self.weight], into[self.bias])


@dataclass(frozen=True)
class BatchNorm:
    """Batch normalisation; channels of all problems side by side are each normalised by itself.

    Attributes:
        weight: place of the scales.
        bias: place of the offsets.
        mean: place of the running means among the buffers; the variances come next.
        epsilon: added to variances.
        momentum: share of the batch in the running statistics.
    """

    weight: int
    bias: int
    mean: int
    epsilon: float
    momentum: float

    def __call__(self, stacked: Stacked, values: Tensor) -> Tensor:
        """See `Layer`."""
        running = stacked.buffers[self.mean : self.mean + 2]
        mean, variance = (one.clone(memory_format=torch.contiguous_format) for one in running)
        result = functional.batch_norm(
            values,
            mean.view(-1),
            variance.view(-1),
            stacked.weights[self.weight].flatten(),
            stacked.weights[self.bias].flatten(),
            stacked.training,
            self.momentum,
            self.epsilon,
        )
        if stacked.training:
            for place, one in zip(running, (mean, variance), strict=True):
                place.copy_(one)
        return result

    def seen(self, stacked: Stacked, values: Tensor) -> Tensor:
        """See `Layer`; values normalised by the running statistics."""
        mean, variance = (one.flatten() for one in stacked.buffers[self.mean : self.mean + 2])
        return functional.batch_norm(values, mean, variance, eps=self.epsilon)

    def add_squares(self, seen: Tensor, slopes: Tensor, into: Weights) -> None:
        """See `Layer`."""
        _add_channels(seen, slopes, into[self.weight], into[self.bias])


@dataclass(frozen=True)
class VectorBatchNorm:
    """Batch normalisation of vectors.

    Attributes:
        channels: the same, of features side by side.
    """

    channels: BatchNorm

    def __call__(self, stacked: Stacked, values: Tensor) -> Tensor:
        """See `Layer`."""
        problems, batch, features = values.shape
        flat = self.channels(stacked, _side_by_side(values))
        return flat.view(batch, problems, features).transpose(0, 1)

    def seen(self, stacked: Stacked, values: Tensor) -> Tensor:
        """See `Layer`."""
        return self.channels.seen(stacked, _side_by_side(values))

    def add_squares(self, seen: Tensor, slopes: Tensor, into: Weights) -> None:
        """See `Layer`."""
        self.channels.add_squares(seen, _side_by_side(slopes), into)


def _side_by_side(values: Tensor) -> Tensor:
    """(batch, problems x features) of values (problems, batch, features)."""
    return values.transpose(0, 1).flatten(1)


def _add_channels(normalised: Tensor, slopes: Tensor, scales: Tensor, offsets: Tensor) -> None:
    """Add squared gradients of scales and offsets, positions summed before the square.

    Args:
        normalised: (batch, problems x channels, ...).
        slopes: of the same shape.
        scales: (problems, channels) where those of the scales go.
        offsets: (problems, channels) where those of the offsets go.
    """
    by_channel = (*normalised.shape[:2], -1)
    products = (slopes * normalised).reshape(by_channel).sum(2)
    scales.add_(products.square_().sum(0).view_as(scales))
    sums = slopes.reshape(by_channel).sum(2)
    offsets.add_(sums.square_().sum(0).view_as(offsets))
