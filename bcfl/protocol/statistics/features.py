"""Sums over the features of samples, from which the density of a cluster's samples follows."""

from __future__ import annotations

from dataclasses import dataclass
from typing import ClassVar

import torch
from torch import Tensor, nn

from bcfl.architecture.evaluation import CHUNK
from bcfl.architecture.model import Model
from bcfl.data.view import View
from bcfl.protocol.checks import LARGEST_SUM, tensor_trouble
from bcfl.protocol.statistics.statistic import NUMBER_BYTES, NetworkStatistic
from posteriors.networks.functional import own_copy
from posteriors.predictive.feature_density import FeatureSums

MAX_FEATURES = 64
"""Features beyond so many are projected to so many, at random but always in the same way."""


@dataclass(frozen=True)
class Features(NetworkStatistic):
    """The sums and summed outer products of a network's features: `FeatureSums` by model key."""

    name: ClassVar[str] = "features"

    def of_network(
        self, network: nn.Module, model: Model, view: View, num_samples: int
    ) -> FeatureSums:
        """A subset is rescaled to all samples.

        See `bcfl.protocol.statistics.statistic.NetworkStatistic.of_network`.
        """
        sums = FeatureSums.of(features(network, view.inputs))
        return sums if num_samples == len(view) else sums * (num_samples / len(view))

    def num_bytes(self, model: Model, num_models: int) -> int:
        """A number of samples, a vector and a matrix for each model.

        See `bcfl.protocol.Statistic.num_bytes`.
        """
        width = _width(model)
        return NUMBER_BYTES * (1 + width + width**2) * num_models

    def part_trouble(self, part: object, model: Model, num_models: int) -> str:
        """See `bcfl.protocol.Statistic.part_trouble`."""
        if not isinstance(part, FeatureSums) or not 1 <= part.count <= LARGEST_SUM:
            return "no feature sums"
        width = _width(model)
        for name, shape in (("first", (width,)), ("second", (width, width))):
            trouble = tensor_trouble(getattr(part, name), [shape])
            if trouble:
                return f"feature sums whose {name} {trouble}"
        return ""


def features(network: nn.Module, inputs: Tensor) -> Tensor:
    """(samples, features) float64: inputs of the last fully connected layer, at most 64.

    The outputs, where no layer is fully connected. More than 64 are projected to 64 by a Gaussian
    matrix that is always the same.

    Args:
        network: in evaluation mode.
        inputs: (samples, *input_shape), at least one.
    """
    return torch.cat([_features(network, part) for part in torch.split(inputs, CHUNK)])


def _features(network: nn.Module, inputs: Tensor) -> Tensor:
    recorded: list[Tensor] = []
    layers = [layer for layer in network.modules() if isinstance(layer, nn.Linear)]

    def record(_: nn.Module, arguments: tuple[Tensor, ...], named: dict[str, Tensor]) -> None:
        recorded.append((*arguments, *named.values())[0])

    hooks = [layer.register_forward_pre_hook(record, with_kwargs=True) for layer in layers]
    try:
        with torch.no_grad():
            outputs = network(own_copy(inputs))
    finally:
        for hook in hooks:
            hook.remove()
    values = (recorded[-1] if recorded else outputs).flatten(1).double()
    if values.shape[1] <= MAX_FEATURES:
        return values
    draw = torch.Generator().manual_seed(0)
    shape = (values.shape[1], MAX_FEATURES)
    projection = torch.randn(shape, generator=draw, dtype=torch.float64) / shape[0] ** 0.5
    projected: Tensor = values @ projection.to(values)
    return projected


def _width(model: Model) -> int:
    """Number of features of an architecture."""
    return features(model.module().eval(), torch.zeros(1, *model.input_shape)).shape[1]
