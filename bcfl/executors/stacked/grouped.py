"""Convolutional networks, many at one time, by grouped convolutions."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, replace
from typing import NamedTuple, TypeAlias

import torch
from torch import Tensor, nn
from torch.autograd.graph import GradientEdge, get_gradient_edge

from bcfl.architecture.model import Model
from bcfl.executors.stacked.grouped_layers import (
    Convolution,
    Elementwise,
    FlattenImages,
    FlattenVectors,
    Layer,
    Linear,
)
from bcfl.executors.stacked.grouped_norms import BatchNorm, GroupNorm, VectorBatchNorm
from bcfl.executors.stacked.network import NORMS, Stacked, Weights, chain_of, gradients_by_autograd

Places: TypeAlias = tuple[int | None, int | None]

ELEMENTWISE = (nn.ReLU, nn.Tanh, nn.Sigmoid, nn.GELU, nn.SiLU, nn.ELU, nn.LeakyReLU, nn.Identity)
POOLING = (nn.MaxPool2d, nn.AvgPool2d)
IMAGES = (nn.Conv2d, nn.GroupNorm, nn.BatchNorm2d, *POOLING)


class _Call(NamedTuple):
    """A layer with parameters, what it has to know of its input, and its place in the graph."""

    layer: Layer
    seen: Tensor
    edge: GradientEdge


@dataclass(frozen=True, eq=False)
class GroupedNetwork:
    """A chain of layers for many models; its derivatives are those of autograd.

    Images lie as (batch, problems x channels, height, width), so that one grouped convolution
    does those of all problems; vectors as (problems, batch, features).

    Attributes:
        layers: in order of evaluation.
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
        return None if sees_images else cls(tuple(layers), images, norms > 0)

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
        """See `Network`; one column goes back through the layers after the other."""
        for place in into:
            place.zero_()
        with torch.enable_grad():
            outputs, calls, _ = self._recorded(stacked.live(), inputs)
        edges = [call.edge for call in calls]
        columns = factors(outputs.detach())
        for index, column in enumerate(columns):
            last = index == len(columns) - 1
            slopes = torch.autograd.grad(outputs, edges, column, retain_graph=not last)
            for call, grad_output in zip(calls, slopes, strict=True):
                call.layer.add_squares(call.seen, grad_output, into)

    def peak_numel(self, stacked: Stacked, inputs: Tensor) -> int:
        """See `Network`.

        What lies between the layers thrice, what they have to know of it, the gradients of one
        layer and column, and the columns.
        """
        with torch.enable_grad():
            outputs, calls, size = self._recorded(stacked.live(), inputs)
        seen = sum(call.seen.numel() for call in calls)
        gradients = max(weight.numel() for weight in stacked.weights)
        return 3 * size + seen + gradients + 4 * outputs.numel() ** 2

    def _recorded(self, stacked: Stacked, inputs: Tensor) -> tuple[Tensor, list[_Call], int]:
        """Outputs, the layers with parameters, and how many numbers all layers gave."""
        values, size = self._laid_out(inputs), inputs.numel()
        calls = []
        for layer in self.layers:
            with torch.no_grad():
                seen = layer.seen(stacked, values)
            values = layer(stacked, values)
            size += values.numel()
            if seen is not None:
                calls.append(_Call(layer, seen, get_gradient_edge(values)))
        return values, calls, size

    def _laid_out(self, inputs: Tensor) -> Tensor:
        return inputs.transpose(0, 1).flatten(1, 2) if self.starts_with_images else inputs


def _of_vectors(module: nn.Module, own: Places) -> Layer | None:
    kind = type(module)
    if kind is nn.Linear and own[0] is not None:
        return Linear(own[0], own[1])
    if isinstance(module, nn.Flatten) and (module.start_dim, module.end_dim) == (1, -1):
        return FlattenVectors()
    return Elementwise(module) if kind in ELEMENTWISE else None


def _of_images(module: nn.Module, own: Places) -> Layer | None:
    kind = type(module)
    if isinstance(module, nn.Conv2d) and own[0] is not None:
        known = kind is nn.Conv2d and module.padding_mode == "zeros"
        return Convolution(module, own[0], own[1]) if known else None
    if isinstance(module, nn.GroupNorm) and own[0] is not None and own[1] is not None:
        return GroupNorm(module.num_groups, own[0], own[1], module.eps)
    if isinstance(module, nn.Flatten) and (module.start_dim, module.end_dim) == (1, -1):
        return FlattenImages()
    return Elementwise(module) if kind in (*ELEMENTWISE, *POOLING) else None


def _batch_norm(module: nn.Module, own: Places, which: int, images: bool) -> Layer | None:
    """The layer, the `which`th of its kind; None for what is not known of it."""
    kind = nn.BatchNorm2d if images else nn.BatchNorm1d
    if type(module) is not kind or module.momentum is None or module.running_mean is None:
        return None
    if own[0] is None or own[1] is None:
        return None
    layer = BatchNorm(own[0], own[1], 2 * which, module.eps, module.momentum)
    return layer if images else VectorBatchNorm(layer)
