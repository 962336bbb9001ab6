"""Dispatch from layers to their rules, and the check that every layer of a network has one."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping
from dataclasses import dataclass
from types import MappingProxyType
from typing import Any

from torch import Tensor, nn

from posteriors.curvature.layers import convolution, embedding, linear, normalisation


@dataclass(frozen=True)
class LayerRule:
    """Squared per-sample gradients of one type of layer.

    Attributes:
        prepare: From the layer and its input, (samples, ...), to what `squares` needs of them; done
            once for all columns.
        squares: From that, and columns of gradients with respect to the layer's output, each
            (samples, ...), to the squared gradients of weight and bias, summed over samples and
            columns, in the order of the parameter's entries.
    """

    prepare: Callable[[Any, Tensor], Any]
    squares: Callable[[Any, Iterable[Tensor]], tuple[Tensor, Tensor]]


_CONVOLUTION = LayerRule(convolution.patches, convolution.squares)
_BATCH_NORM = LayerRule(normalisation.by_running_statistics, normalisation.squares)
LAYER_RULES: Mapping[type[nn.Module], LayerRule] = MappingProxyType(
    {
        nn.Linear: LayerRule(linear.inputs_of_one, linear.squares),
        nn.Conv1d: _CONVOLUTION,
        nn.Conv2d: _CONVOLUTION,
        nn.Conv3d: _CONVOLUTION,
        nn.Embedding: LayerRule(embedding.lookups, embedding.squares),
        nn.BatchNorm1d: _BATCH_NORM,
        nn.BatchNorm2d: _BATCH_NORM,
        nn.BatchNorm3d: _BATCH_NORM,
        nn.GroupNorm: LayerRule(normalisation.by_groups, normalisation.squares),
        nn.LayerNorm: LayerRule(normalisation.by_features, normalisation.squares_by_features),
    }
)

SUPPORTED = ", ".join(kind.__name__ for kind in LAYER_RULES)
WITHOUT_RULES = (
    "laplace-last-layer, laplace-full (at most 3,000 parameters), variational (slow) and nuts (at "
    "most 200 parameters)"
)
"""Local posteriors of networks with any layers, such as recurrent ones and attention."""


def rule_for(layer: nn.Module) -> LayerRule | None:
    """Rule of a layer's class; None if there is none, or subclass or layer compute otherwise."""
    if "forward" in vars(layer):
        return None
    for kind, rule in LAYER_RULES.items():
        if isinstance(layer, kind) and type(layer).forward is kind.forward:
            return rule
    return None


class UnsupportedLayerError(ValueError):
    """A module computes something that no layer rule covers exactly."""


def named(name: str, layer: nn.Module) -> str:
    """A layer in words.

    Args:
        name: Its name in the network; empty for the network itself.
        layer: The layer.
    """
    kind = type(layer).__name__
    return f"layer {name!r} ({kind})" if name else f"the network itself ({kind})"


def layers_with_parameters(module: nn.Module) -> dict[nn.Module, str]:
    """Layers that own parameters, mapped to their names.

    Raises:
        UnsupportedLayerError: If a layer has parameters but no rule, is reparameterised, shares a
            parameter with another, or normalises by the statistics of its batch; or if there are
            no parameters.
    """
    layers: dict[nn.Module, str] = {}
    owners: dict[int, str] = {}
    for name, layer in module.named_modules():
        _refuse_batch_statistics(name, layer)
        parameters = list(layer.parameters(recurse=False))
        if parameters and rule_for(layer) is None:
            raise UnsupportedLayerError(
                f"{named(name, layer)} has parameters but no curvature rule; "
                f"supported are {SUPPORTED}, and layers without parameters; local posteriors that "
                f"need no rule are {WITHOUT_RULES}"
            )
        _refuse_other_parameters(name, layer)
        _refuse_scaled_lookups(name, layer)
        for parameter in parameters:
            layers[layer] = name
            owner = owners.setdefault(id(parameter), name)
            if owner != name:
                raise UnsupportedLayerError(
                    f"layers {owner!r} and {name!r} share a parameter; each needs its own"
                )
    if not layers:
        raise UnsupportedLayerError(f"module has no parameters; supported layers are {SUPPORTED}")
    return layers


def _refuse_scaled_lookups(name: str, layer: nn.Module) -> None:
    """Refuse embeddings whose gradients depend on other samples, or are sparse."""
    if isinstance(layer, nn.Embedding) and (
        layer.max_norm is not None or layer.scale_grad_by_freq or layer.sparse
    ):
        raise UnsupportedLayerError(
            f"{named(name, layer)} must have neither max_norm, scale_grad_by_freq nor sparse"
        )


def _refuse_other_parameters(name: str, layer: nn.Module) -> None:
    """Refuse weights that are computed from other parameters, as by weight normalisation."""
    others = {own for own, _ in layer.named_parameters(recurse=False)} - {"weight", "bias"}
    if others:
        raise UnsupportedLayerError(
            f"{named(name, layer)} has parameters {', '.join(sorted(others))}: "
            "curvature rules are those of layers with a weight and a bias, not reparameterised"
        )


def _refuse_batch_statistics(name: str, layer: nn.Module) -> None:
    if isinstance(layer, nn.modules.batchnorm._BatchNorm) and layer.running_mean is None:
        raise UnsupportedLayerError(
            f"{named(name, layer)} has no running statistics, so that its "
            "outputs depend on the other samples"
        )
