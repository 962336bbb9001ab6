"""Convolutional networks batched over models, by grouped convolutions."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass, replace
from itertools import takewhile
from typing import NamedTuple, TypeAlias

import torch
from torch import Tensor, nn
from torch.autograd.graph import GradientEdge, get_gradient_edge

from bcfl.architecture.model import Model
from bcfl.executors.stacked.layers import (
    BatchNorm,
    Convolution,
    Elementwise,
    FlattenImages,
    FlattenSamples,
    GroupNorm,
    Layer,
    Linear,
    VectorBatchNorm,
)
from bcfl.executors.stacked.network import NORMS, Stacked, Weights, chain_of, gradients_by_autograd
from posteriors.networks.functional import own_copy

Places: TypeAlias = tuple[int | None, int | None]

ELEMENTWISE = (nn.ReLU, nn.Tanh, nn.Sigmoid, nn.GELU, nn.SiLU, nn.ELU, nn.LeakyReLU, nn.Identity)
POOLING = (nn.MaxPool2d, nn.AvgPool2d)
IMAGES = (nn.Conv2d, nn.GroupNorm, nn.BatchNorm2d, *POOLING)


class _Call(NamedTuple):
    """A layer with parameters, what its squares need of its input, and its place in the graph."""

    layer: Layer
    prepared: Tensor
    edge: GradientEdge


@dataclass(frozen=True, eq=False)
class GroupedNetwork:
    """A chain of layers for many models; its derivatives are those of autograd.

    Images are (batch, models x channels, height, width), so that one grouped convolution serves all
    models; vectors are (models, batch, features).

    Attributes:
        layers: in order of evaluation.
        starts_with_images: whether the first layer reads images.
        mixes_samples: whether a layer normalises by the statistics of the batch.
        overwrites: whether a first activation changes its inputs in place.
    """

    layers: tuple[Layer, ...]
    starts_with_images: bool
    mixes_samples: bool = False
    overwrites: bool = False

    @classmethod
    def of(cls, model: Model) -> GroupedNetwork | None:
        """The network of a model, or None where it has an unsupported layer.

        Supported are fully connected layers, convolutions, group and batch normalisation, pooling,
        flattening and elementwise activations.
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
            layer: Layer | None
            if isinstance(module, NORMS):
                layer = _batch_norm(module, own, norms, sees_images)
                norms += 1
            else:
                layer = _of_images(module, own) if sees_images else _of_vectors(module, own)
            if layer is None:
                return None
            sees_images = sees_images and type(module) is not nn.Flatten
            layers.append(layer)
        if sees_images:
            return None
        return cls(tuple(layers), images, norms > 0, _overwrites(layers))

    def outputs(self, stacked: Stacked, inputs: Tensor) -> Tensor:
        """See `Network`."""
        values = self._laid_out(inputs)
        for layer in self.layers:
            values = layer(stacked, values)
        return values

    def outputs_of_one(self, stacked: Stacked, inputs: Tensor) -> Tensor:
        """See `Network`."""
        together = self.outputs(stacked, inputs.flatten(0, 1).unsqueeze(0))
        return together.view(*inputs.shape[:2], -1)

    def gradients(
        self,
        stacked: Stacked,
        inputs: Tensor,
        grad_output: Callable[[Tensor], Tensor],
        into: Weights,
    ) -> None:
        """See `Network`."""
        training = replace(stacked, training=inputs.shape[1] > 1)
        gradients_by_autograd(lambda live: self.outputs(live, inputs), training, grad_output, into)

    def diag_ggn(
        self, stacked: Stacked, inputs: Tensor, factors: Callable[[Tensor], Tensor], into: Weights
    ) -> None:
        """See `Network`; one backward pass per column."""
        for place in into:
            place.zero_()
        with torch.enable_grad():
            outputs, calls, _ = self._recorded(stacked.live(), inputs)
        edges = [call.edge for call in calls]
        columns = factors(outputs.detach())
        for index, column in enumerate(columns):
            last = index == len(columns) - 1
            gradients = torch.autograd.grad(outputs, edges, column, retain_graph=not last)
            for call, grad_output in zip(calls, gradients, strict=True):
                call.layer.add_squares(call.prepared, (grad_output,), into)

    def peak_numel(self, stacked: Stacked, inputs: Tensor) -> int:
        """See `Network`.

        Three times the activations, what the squares need of them, the gradients of one layer and
        column, and the columns.
        """
        with torch.enable_grad():
            outputs, calls, size = self._recorded(stacked.live(), inputs)
        prepared = sum(call.prepared.numel() for call in calls)
        gradients = max(weight.numel() for weight in stacked.weights)
        return 3 * size + prepared + gradients + 4 * outputs.numel() ** 2

    def _recorded(self, stacked: Stacked, inputs: Tensor) -> tuple[Tensor, list[_Call], int]:
        """Outputs, the layers with parameters, and the numel of all activations."""
        values, size = self._laid_out(inputs), inputs.numel()
        calls = []
        for layer in self.layers:
            with torch.no_grad():
                prepared = layer.prepare(stacked, values)
            values = layer(stacked, values)
            size += values.numel()
            if prepared is not None:
                calls.append(_Call(layer, prepared, get_gradient_edge(values)))
        return values, calls, size

    def _laid_out(self, inputs: Tensor) -> Tensor:
        laid_out = inputs.transpose(0, 1).flatten(1, 2) if self.starts_with_images else inputs
        return own_copy(laid_out) if self.overwrites else laid_out


def _overwrites(layers: Sequence[Layer]) -> bool:
    """Whether there is an activation in place before any layer whose outputs are new tensors."""
    views = (Elementwise, FlattenImages, FlattenSamples)
    first = takewhile(lambda layer: isinstance(layer, views), layers)
    return any(getattr(getattr(layer, "module", None), "inplace", False) for layer in first)


def _of_vectors(module: nn.Module, own: Places) -> Layer | None:
    kind = type(module)
    if kind is nn.Linear and own[0] is not None:
        return Linear(own[0], own[1])
    if isinstance(module, nn.Flatten) and (module.start_dim, module.end_dim) == (1, -1):
        return FlattenSamples() if kind is nn.Flatten else None
    return Elementwise(module) if kind in ELEMENTWISE else None


def _of_images(module: nn.Module, own: Places) -> Layer | None:
    kind = type(module)
    if isinstance(module, nn.Conv2d) and own[0] is not None:
        known = kind is nn.Conv2d and module.padding_mode == "zeros"
        return Convolution(module, own[0], own[1]) if known else None
    if isinstance(module, nn.GroupNorm) and own[0] is not None and own[1] is not None:
        return GroupNorm(module, own[0], own[1]) if kind is nn.GroupNorm else None
    if isinstance(module, nn.Flatten) and (module.start_dim, module.end_dim) == (1, -1):
        return FlattenImages() if kind is nn.Flatten else None
    return Elementwise(module) if kind in (*ELEMENTWISE, *POOLING) else None


def _batch_norm(module: nn.Module, own: Places, which: int, images: bool) -> Layer | None:
    """The layer, the `which`th of its kind; None where it is unsupported."""
    kind = nn.BatchNorm2d if images else nn.BatchNorm1d
    if type(module) is not kind or module.momentum is None or module.running_mean is None:
        return None
    if own[0] is None or own[1] is None:
        return None
    layer = BatchNorm(module, own[0], own[1], 2 * which)
    return layer if images else VectorBatchNorm(layer)
