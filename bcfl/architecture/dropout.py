"""Insertion of dropout layers into an architecture."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import replace
from functools import partial

from torch import nn

from bcfl.architecture.model import Model

ACTIVATIONS = (nn.ReLU, nn.Tanh, nn.Sigmoid, nn.GELU, nn.SiLU, nn.ELU, nn.LeakyReLU, nn.Softplus)


def with_dropout(model: Model, rate: float) -> Model:
    """Insert dropout after each activation; parameter names are unchanged.

    Args:
        model: the architecture.
        rate: dropout probability, in [0, 1).

    Raises:
        ValueError: the rate is out of range.
    """
    if not 0 <= rate < 1:
        raise ValueError(f"rate must lie in [0, 1), got {rate}")
    build = partial(_build, model.fresh, rate)
    return replace(model, name=f"{model.name}-dropout", build=build)


def _build(build: Callable[[], nn.Module], rate: float) -> nn.Module:
    module = build()
    _insert(module, rate)
    return module


def _insert(module: nn.Module, rate: float) -> None:
    for name, child in list(module.named_children()):
        if isinstance(child, ACTIVATIONS):
            setattr(module, name, nn.Sequential(child, nn.Dropout(rate)))
        else:
            _insert(child, rate)
