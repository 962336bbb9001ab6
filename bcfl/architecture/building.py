"""Calls of what builds networks; their errors name the model."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

from torch import nn
from torch.nn.parameter import is_lazy


def built(build: Callable[[], Any], name: str) -> nn.Module:
    """The network that a function or class builds, under the random state of the caller.

    Args:
        build: called without arguments.
        name: of the model, for messages.

    Raises:
        ValueError: the call needs arguments or raises an error, which is the cause of this one; it
            gives no module; or a layer has no shape before its first samples.
    """
    try:
        module = build()
    except Exception as error:
        raise ValueError(f"model {name!r} {_why(error)}") from error
    if not isinstance(module, nn.Module):
        raise ValueError(
            f"model {name!r} must build a torch.nn.Module, got one of type {type(module).__name__}"
        )
    for layer in module.modules():
        tensors = (*layer.parameters(recurse=False), *layer.buffers(recurse=False))
        if any(map(is_lazy, tensors)):
            raise ValueError(
                f"model {name!r} must have layers of known sizes, but {type(layer).__name__} takes "
                "its size from the first samples; give the size, as in nn.Linear(3, 2), or call "
                "the network on one sample in the function that builds it"
            )
    return module


def _why(error: Exception) -> str:
    """What went wrong in a call: its arguments, or something inside of what was called."""
    called = error.__traceback__
    if isinstance(error, TypeError) and (called is None or called.tb_next is None):
        return f"must be built without arguments: {error}; `lambda: Network(3, 2)` gives them"
    return f"cannot be built: its code raised {type(error).__name__}: {error}"
