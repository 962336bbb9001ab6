"""Which layers of a network have parameters, and whether each has a rule."""

from __future__ import annotations

from torch import nn

from posteriors.curvature.layers import LAYER_RULES, rule_for

SUPPORTED = ", ".join(kind.__name__ for kind in LAYER_RULES)


class UnsupportedLayerError(ValueError):
    """A module computes something that no layer rule covers exactly."""


def layers_with_parameters(module: nn.Module) -> dict[nn.Module, str]:
    """Layers that own parameters, mapped to their names.

    Raises:
        UnsupportedLayerError: If a layer has parameters but no rule, shares a parameter with
            another, or normalises by the statistics of its batch; or if there are no parameters.
    """
    layers: dict[nn.Module, str] = {}
    owned: list[int] = []
    for name, layer in module.named_modules():
        _refuse_batch_statistics(name, layer)
        parameters = list(layer.parameters(recurse=False))
        if parameters and rule_for(layer) is None:
            raise UnsupportedLayerError(
                f"layer {name!r} ({type(layer).__name__}) has parameters but no curvature rule; "
                f"supported are {SUPPORTED}, and layers without parameters"
            )
        if parameters:
            layers[layer] = name
            owned += [id(parameter) for parameter in parameters]
    if len(set(owned)) != len(owned):
        raise UnsupportedLayerError("two layers share a parameter; each needs its own")
    if not layers:
        raise UnsupportedLayerError(f"module has no parameters; supported layers are {SUPPORTED}")
    return layers


def _refuse_batch_statistics(name: str, layer: nn.Module) -> None:
    if isinstance(layer, nn.modules.batchnorm._BatchNorm) and layer.running_mean is None:
        raise UnsupportedLayerError(
            f"layer {name!r} ({type(layer).__name__}) has no running statistics, so that its "
            "outputs depend on the other samples"
        )
