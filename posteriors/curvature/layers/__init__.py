"""Squared per-sample gradients of single layers, one file per kind of layer.

The same rule serves one network and a stack of networks of one architecture, whose vectors are
(models, samples, features) and whose images are (samples, models x channels, height, width), as
batched matrix products and grouped convolutions take them.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping
from dataclasses import dataclass
from types import MappingProxyType
from typing import Any

from torch import Tensor, nn

from posteriors.curvature.layers import convolution, linear, normalisation


@dataclass(frozen=True)
class LayerRule:
    """How the layers of one kind give their squared per-sample gradients.

    Attributes:
        prepare: From the layer and its input, (samples, ...), to what `squares` needs of them; done
            once for all columns.
        squares: From that, and columns of gradients with respect to the layer's output, each
            (samples, ...), to the squared gradients of weight and bias, summed over samples and
            columns, in the order of the parameter's entries.
    """

    prepare: Callable[[Any, Tensor], Tensor]
    squares: Callable[[Tensor, Iterable[Tensor]], tuple[Tensor, Tensor]]


_BATCH_NORM = LayerRule(normalisation.by_running_statistics, normalisation.squares)
LAYER_RULES: Mapping[type[nn.Module], LayerRule] = MappingProxyType(
    {
        nn.Linear: LayerRule(linear.inputs_of_one, linear.squares),
        nn.Conv2d: LayerRule(convolution.patches, convolution.squares),
        nn.BatchNorm1d: _BATCH_NORM,
        nn.BatchNorm2d: _BATCH_NORM,
        nn.GroupNorm: LayerRule(normalisation.by_groups, normalisation.squares),
        nn.LayerNorm: LayerRule(normalisation.by_features, normalisation.squares_by_features),
    }
)


def rule_for(layer: nn.Module) -> LayerRule | None:
    """Rule of a layer's class; None if there is none or a subclass computes something else."""
    for kind, rule in LAYER_RULES.items():
        if isinstance(layer, kind) and type(layer).forward is kind.forward:
            return rule
    return None
