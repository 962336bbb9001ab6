"""Convolutional networks, many at one time, by grouped convolutions."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import TypeAlias

import torch
from torch import Tensor, nn
from torch.nn import functional

from bcfl.executors.chain import chain_of
from bcfl.executors.network import Weights
from bcfl.model import Model

Layer: TypeAlias = Callable[[Weights, Tensor], Tensor]
Places: TypeAlias = tuple[int | None, int | None]

ELEMENTWISE = (nn.ReLU, nn.Tanh, nn.Sigmoid, nn.GELU, nn.SiLU, nn.ELU, nn.LeakyReLU, nn.Identity)
POOLING = (nn.MaxPool2d, nn.AvgPool2d)
IMAGES = (nn.Conv2d, nn.GroupNorm, *POOLING)


@dataclass(frozen=True, eq=False)
class GroupedNetwork:
    """A chain of layers for many models; its derivatives are those of autograd.

    Images lie as (batch, problems x channels, height, width), so that one grouped convolution
    does those of all problems; vectors as (problems, batch, features).

    Attributes:
        layers: functions of all weights and of what the layer before gave.
        starts_with_images: whether the first layer reads images.
    """

    layers: tuple[Layer, ...]
    starts_with_images: bool

    @classmethod
    def of(cls, model: Model) -> GroupedNetwork | None:
        """The network of a model, or None where it has a layer that is not known here.

        Known are fully connected layers, convolutions, group normalisation, pooling, flattening
        and functions of single numbers.
        """
        chain = chain_of(model) or []
        shaped = [type(m) for m, _ in chain if type(m) in (nn.Linear, nn.Flatten, *IMAGES)]
        images = bool(shaped) and shaped[0] in IMAGES
        fits = len(model.input_shape) == (3 if images else 1) or shaped[:1] == [nn.Flatten]
        if not shaped or not fits:
            return None
        layers: list[Layer] = []
        sees_images = images
        for module, own in chain:
            layer = _of_images(module, own) if sees_images else _of_vectors(module, own)
            if layer is None:
                return None
            sees_images = sees_images and type(module) is not nn.Flatten
            layers.append(layer)
        return None if sees_images else cls(tuple(layers), images)

    def outputs(self, weights: Weights, inputs: Tensor) -> Tensor:
        """See `Network`."""
        values = inputs.transpose(0, 1).flatten(1, 2) if self.starts_with_images else inputs
        for layer in self.layers:
            values = layer(weights, values)
        return values

    def outputs_of_one(self, weights: Weights, inputs: Tensor) -> Tensor:
        """See `Network`."""
        together = self.outputs(weights, inputs.flatten(0, 1).unsqueeze(0))
        return together.view(*inputs.shape[:2], -1)

    def gradients(
        self, weights: Weights, inputs: Tensor, slope: Callable[[Tensor], Tensor], into: Weights
    ) -> None:
        """See `Network`."""
        with torch.enable_grad():
            live = [weight.detach().requires_grad_() for weight in weights]
            outputs = self.outputs(live, inputs)
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


def _flatten_images(weights: Weights, values: Tensor) -> Tensor:
    batch, problems = len(values), weights[0].shape[0]
    return values.reshape(batch, problems, -1).transpose(0, 1)


@dataclass(frozen=True)
class _Linear:
    weight: int
    bias: int | None

    def __call__(self, weights: Weights, values: Tensor) -> Tensor:
        matrix = weights[self.weight].transpose(1, 2)
        if self.bias is None:
            return torch.bmm(values, matrix)
        return torch.baddbmm(weights[self.bias].unsqueeze(1), values, matrix)


@dataclass(frozen=True, eq=False)
class _Convolution:
    module: nn.Conv2d
    weight: int
    bias: int | None

    def __call__(self, weights: Weights, values: Tensor) -> Tensor:
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

    def __call__(self, weights: Weights, values: Tensor) -> Tensor:
        scale, shift = weights[self.weight], weights[self.bias]
        groups = self.module.num_groups * len(scale)
        return functional.group_norm(
            values, groups, scale.flatten(), shift.flatten(), self.module.eps
        )


@dataclass(frozen=True, eq=False)
class _Plain:
    """A layer without parameters that treats channels alike."""

    module: nn.Module

    def __call__(self, weights: Weights, values: Tensor) -> Tensor:
        del weights
        result: Tensor = self.module(values)
        return result
