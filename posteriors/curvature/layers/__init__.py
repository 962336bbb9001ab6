"""Squared per-sample gradients of single layers, one file per kind of layer.

A rule takes the layer, its input (samples, ...) and one or more columns: gradients with respect to
its output, each (samples, ...). It returns, for each parameter by its name in the layer, the square
of that parameter's gradient for one sample and column, summed over samples and columns.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from types import MappingProxyType
from typing import Any

from torch import Tensor, nn

from posteriors.curvature.layers.batch_norm import batch_norm
from posteriors.curvature.layers.convolution import convolution
from posteriors.curvature.layers.group_norm import group_norm
from posteriors.curvature.layers.layer_norm import layer_norm
from posteriors.curvature.layers.linear import linear

LayerRule = Callable[[Any, Tensor, Sequence[Tensor]], dict[str, Tensor]]

LAYER_RULES: Mapping[type[nn.Module], LayerRule] = MappingProxyType(
    {
        nn.Linear: linear,
        nn.Conv2d: convolution,
        nn.BatchNorm1d: batch_norm,
        nn.BatchNorm2d: batch_norm,
        nn.GroupNorm: group_norm,
        nn.LayerNorm: layer_norm,
    }
)


def rule_for(layer: nn.Module) -> LayerRule | None:
    """Rule of a layer's class; None if there is none or a subclass computes something else."""
    for kind, rule in LAYER_RULES.items():
        if isinstance(layer, kind) and type(layer).forward is kind.forward:
            return rule
    return None
