"""Layers whose instance computes something else than their class."""

from __future__ import annotations

from torch import nn

HOOKS = ("_forward_pre_hooks", "_forward_hooks", "_backward_pre_hooks", "_backward_hooks")
GRADIENT_HOOKS = ("_backward_hooks", "_post_accumulate_grad_hooks")


def is_altered(layer: nn.Module) -> bool:
    """Whether a layer has hooks, on itself or on its parameters, or methods of its own.

    Args:
        layer: any module; those inside it are not looked at.
    """
    own = any(name in vars(layer) for name in ("forward", "train"))
    hooked = any(getattr(layer, name, None) for name in HOOKS)
    return (
        own
        or hooked
        or any(
            getattr(parameter, name, None)
            for parameter in layer.parameters(recurse=False)
            for name in GRADIENT_HOOKS
        )
    )
