"""Convolutional networks, many at one time, by grouped convolutions."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, replace
from typing import TypeAlias

import torch
from torch import Tensor, nn
from torch.nn import functional

from bcfl.executors.chain import NORMS, chain_of
from bcfl.executors.network import Stacked, Weights
from bcfl.model import Model

Layer: TypeAlias = Callable[[Stacked, Tensor], Tensor]
Places: TypeAlias = tuple[int | None, int | None]

ELEMENTWISE = (nn.ReLU, nn.Tanh, nn.Sigmoid, nn.GELU, nn.SiLU, nn.ELU, nn.LeakyReLU, nn.Identity)
POOLING = (nn.MaxPool2d, nn.AvgPool2d)
IMAGES = (nn.Conv2d, nn.GroupNorm, nn.BatchNorm2d, *POOLING)


@dataclass(frozen=True, eq=False)
class GroupedNetwork:
    """A chain of layers for many models; its derivatives are those of autograd.

    Images lie as (batch, problems x channels, height, width), so that one grouped convolution
    does those of all problems; vectors as (problems, batch, features).

    Attributes:
        layers: functions of the models and of what the layer before gave.
        starts_with_images: whether the first layer reads images.
        mixes_samples: whether a layer normalises by the statistics of the batch.
    """

    layers: tuple[Layer, ...]
    starts_with_images: bool
    mixes_samples: bool = False

    @classmethod
    def of(cls, model: Model) -> GroupedNetwork | None:
        """The network of a model, or None where it has a layer that is not known here.

        Known are fully connected layers, convolutions, normalisation by groups and by batches,
        pooling, flattening and functions of single numbers.
        """
        chain = chain_of(model) or []
        shaped = [type(m) for m, _ in chain if type(m) in (nn.Linear, nn.Flatten, *IMAGES)]
        images = bool(shaped) and shaped[0] in IMAGES
        fits = len(model.input_shape) == (3 if images else 1) or shaped[:1] == [nn.Flatten]
        if not shaped or not fits:
            return None
        layers: list[Layer] = []
        sees_images, norms = images, 0
        for module, own in chain:
            if isinstance(module, NORMS):
                layer = _batch_norm(module, own, norms, sees_images)
                norms += 1
            else:
                layer = _of_images(module, own) if sees_images else _of_vectors(module, own)
            if layer is None:
                return None
            sees_images = sees_images and type(module) is not nn.Flatten
            layers.append(layer)
        return None if sees_images else cls(tuple(layers), images, norms > 0)

    def outputs(self, stacked: Stacked, inputs: Tensor) -> Tensor:
        """See `Network`."""
        values = inputs.transpose(0, 1).flatten(1, 2) if self.starts_with_images else inputs
        for layer in self.layers:
            values = layer(stacked, values)
        return values

    def outputs_of_one(self, stacked: Stacked, inputs: Tensor) -> Tensor:
        """See `Network`."""
        together = self.outputs(stacked, inputs.flatten(0, 1).unsqueeze(0))
        return together.view(*inputs.shape[:2], -1)

    def gradients(
        self, stacked: Stacked, inputs: Tensor, slope: Callable[[Tensor], Tensor], into: Weights
    ) -> None:
        """See `Network`."""
        with torch.enable_grad():
            live = [weight.detach().requires_grad_() for weight in stacked.weights]
            now = replace(stacked, weights=live, training=inputs.shape[1] > 1)
            outputs = self.outputs(now, inputs)
            found = torch.autograd.grad(outputs, live, slope(outputs.detach()))
        for place, gradient in zip(into, found, strict=True):
            place.copy_(gradient)


def _of_vectors(module: nn.Module, own: Places) -> Layer | None:
    kind = type(module)
    if kind is nn.Linear and own[0] is not None:
        return _Linear(own[0], own[1])
    if isinstance(module, nn.Flatten) and (module.start_dim, module.end_dim) == (1, -1):
        return lambda _, values: values.flatten(2)
    return _Plain(module) if kind in ELEMENTWISE else None


def _of_images(module: nn.Module, own: Places) -> Layer | None:
    kind = type(module)
    if isinstance(module, nn.Conv2d) and own[0] is not None:
        known = kind is nn.Conv2d and module.padding_mode == "zeros"
        return _Convolution(module, own[0], own[1]) if known else None
    if isinstance(module, nn.GroupNorm) and own[0] is not None and own[1] is not None:
        return _GroupNorm(module, own[0], own[1])
    if isinstance(module, nn.Flatten) and (module.start_dim, module.end_dim) == (1, -1):
        return _flatten_images
    return _Plain(module) if kind in (*ELEMENTWISE, *POOLING) else None


def _batch_norm(module: nn.Module, own: Places, which: int, images: bool) -> Layer | None:
    """The layer, the `which`th of its kind; None for what is not known of it."""
    kind = nn.BatchNorm2d if images else nn.BatchNorm1d
    if type(module) is not kind or module.momentum is None or module.running_mean is None:
        return None
    if own[0] is None or own[1] is None:
        return None
    layer = _BatchNorm(own[0], own[1], 2 * which, module.eps, module.momentum)
    return layer if images else layer.of_vectors


def _flatten_images(stacked: Stacked, values: Tensor) -> Tensor:
    batch, problems = len(values), stacked.weights[0].shape[0]
    return values.reshape(batch, problems, -1).transpose(0, 1)


@dataclass(frozen=True)
class _Linear:
    weight: int
    bias: int | None

    def __call__(self, stacked: Stacked, values: Tensor) -> Tensor:
        weights = stacked.weights
        matrix = weights[self.weight].transpose(1, 2)
        if self.bias is None:
            return torch.bmm(values, matrix)
        return torch.baddbmm(weights[self.bias].unsqueeze(1), values, matrix)


@dataclass(frozen=True, eq=False)
class _Convolution:
    module: nn.Conv2d
    weight: int
    bias: int | None

    def __call__(self, stacked: Stacked, values: Tensor) -> Tensor:
        weights = stacked.weights
        one, kernels = self.module, weights[self.weight]
        return functional.conv2d(
            values,
            kernels.flatten(0, 1),
            None if self.bias is None else weights[self.bias].flatten(),
            one.stride,
            one.padding,
            one.dilation,
            one.groups * len(kernels),
        )


@dataclass(frozen=True, eq=False)
class _GroupNorm:
    module: nn.GroupNorm
    weight: int
    bias: int

    def __call__(self, stacked: Stacked, values: Tensor) -> Tensor:
        scale, shift = stacked.weights[self.weight], stacked.weights[self.bias]
        groups = self.module.num_groups * len(scale)
        return functional.group_norm(
            values, groups, scale.flatten(), shift.flatten(), self.module.eps
        )


@dataclass(frozen=True)
class _BatchNorm:
    """Channels of all problems side by side are normalised each by itself, as in one problem.

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

    def of_vectors(self, stacked: Stacked, values: Tensor) -> Tensor:
        """The same for values (problems, batch, features)."""
        problems, batch, features = values.shape
        flat = values.transpose(0, 1).reshape(batch, problems * features)
        return self(stacked, flat).view(batch, problems, features).transpose(0, 1)


@dataclass(frozen=True, eq=False)
class _Plain:
    """A layer without parameters that treats channels alike."""

    module: nn.Module

    def __call__(self, stacked: Stacked, values: Tensor) -> Tensor:
        del stacked
        result: Tensor = self.module(values)
        return result
