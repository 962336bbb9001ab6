"""Networks as users have them, as models: one forward pass says how many outputs there are."""

from __future__ import annotations

import re
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from reprlib import repr as shortened
from typing import Any, TypeAlias

import torch
from torch import Tensor, nn

from bcfl.architecture.building import built
from bcfl.architecture.model import Model
from bcfl.runtime.user_code import place_of
from posteriors.curvature.likelihood import Likelihood
from posteriors.networks.functional import own_copy
from posteriors.torch_state import seeded, standard_switches

Network: TypeAlias = Model | nn.Module | Callable[[], nn.Module]
"""A model, a module, or a class or function that builds modules without arguments."""


def as_model(
    network: Network, samples: Tensor, targets: Tensor, name: str = "", whose: str = ""
) -> Model:
    """The model of a network, tried on a sample.

    Args:
        network: a model, which is returned as it is; a module, which is copied wherever it is used;
            or what builds modules.
        samples: (samples, *shape) inputs of a client, at least one.
        targets: (samples, ...) of the same; floating-point numbers make a regression, rows of
            several whole numbers a classification with several labels.
        name: of the model; by default that of the class or function.
        whose: client and view that the samples are of, for messages.

    Raises:
        TypeError: the network is none of these.
        ValueError: it cannot be built without arguments, its code raises an error, a layer has no
            size before its first samples, or it does not take such samples.
    """
    if isinstance(network, Model):
        return network
    if isinstance(network, nn.Module):
        build: Callable[[], Any] = lambda: network  # noqa: E731 - copied by `Model.fresh`
        name = name or type(network).__name__
    elif callable(network):
        build, name = network, name or getattr(network, "__name__", "own")
    else:
        raise TypeError(
            "model must be a bcfl.Model, a torch.nn.Module, or a function that builds one, got "
            f"{shortened(network)} ({type(network).__name__})"
        )
    return Model(
        name=name,
        build=build,
        input_shape=tuple(samples.shape[1:]),
        num_outputs=_num_outputs(build, samples, name, whose),
        likelihood=likelihood_of(targets),
    )


def likelihood_of(targets: Tensor) -> Likelihood:
    """The likelihood that targets ask for, by their type and their number per sample.

    Args:
        targets: (samples, ...), at least one sample.
    """
    if targets.is_floating_point():
        return "gaussian"
    return "bernoulli" if targets[:1].numel() > 1 else "categorical"


def _num_outputs(build: Callable[[], Any], samples: Tensor, name: str, whose: str) -> int:
    with standard_switches(), seeded(0):
        module = built(build, name)
    if not any(parameter.requires_grad for parameter in module.parameters()):
        raise ValueError(f"model {name!r} must have parameters that can be trained, it has none")
    return outputs_of(module, samples, f"model {name!r}", whose).shape[1]


@contextmanager
def telling(
    what: str,
    module: nn.Module,
    inputs: Tensor,
    whose: str = "",
    passed: tuple[type[Exception], ...] = (),
) -> Iterator[None]:
    """Errors of a network that is tried say on whose samples, and what usually helps.

    Args:
        what: network and work that fail, such as `Model(...) fails in training, on samples`.
        module: the network.
        inputs: (samples, *shape) that it is given.
        whose: client and view that these are of; may be empty.
        passed: errors that are raised as they are.

    Raises:
        ValueError: the network raised an error of another kind, which is the cause of this one.
    """
    try:
        yield
    except passed:
        raise
    except Exception as error:
        place = place_of(error)
        raise ValueError(
            f"{_at(whose)}{what} of shape {tuple(inputs.shape[1:])}: "
            f"{type(error).__name__}: {error}{', at ' * bool(place)}{place}"
            f"{_hint(module, inputs, error)}"
        ) from error


def _at(whose: str) -> str:
    return f"{whose}: " if whose else ""


def _of(whose: str) -> str:
    return f" of {whose}" if whose else ""


def _hint(module: nn.Module, inputs: Tensor, error: Exception) -> str:
    """What to do about inputs that networks of indices or of images refuse; else empty."""
    return _channels_hint(module, inputs) or _indices_hint(module, inputs, error)


def _channels_hint(module: nn.Module, inputs: Tensor) -> str:
    """What to do about images or sequences whose axis of channels is missing or the last one."""
    for kind, axes in ((nn.Conv1d, 3), (nn.Conv2d, 4), (nn.Conv3d, 5)):
        channels = {part.in_channels for part in module.modules() if isinstance(part, kind)}
        if channels and kind is nn.Conv2d and inputs.ndim == 3:
            shape = (1, *inputs.shape[1:])
            return (
                f"; images need an axis of channels: where there is one channel, of shape {shape}"
            )
        if inputs.ndim == axes and inputs.shape[1] not in channels and inputs.shape[-1] in channels:
            shape = (inputs.shape[-1], *inputs.shape[1:-1])
            return (
                f"; in torch the axis of channels is the first one of a sample, {shape}: "
                "`numpy.moveaxis(inputs, -1, 1)`"
            )
    return ""


def _indices_hint(module: nn.Module, inputs: Tensor, error: Exception) -> str:
    """What to do about indices that an embedding cannot look up."""
    parts = [part for part in module.modules() if isinstance(part, nn.Embedding | nn.EmbeddingBag)]
    if parts and isinstance(error, IndexError) and "out of range" in str(error):
        sizes = " or ".join(str(size) for size in sorted({part.num_embeddings for part in parts}))
        return (
            f"; indices must be at least 0 and below `num_embeddings` of nn.Embedding, {sizes}; "
            f"these inputs go from {inputs.min():g} to {inputs.max():g}"
        )
    speaks_of_it = re.search(r"Long|[Ii]nd(ex|ices)", str(error))
    if not inputs.is_floating_point() or not (parts or speaks_of_it):
        return ""
    return (
        "; inputs reach networks as floating-point numbers: where they are indices, as of "
        "nn.Embedding, `forward` should call `.long()` on them"
    )


@standard_switches()
def outputs_of(module: nn.Module, samples: Tensor, name: str, whose: str = "") -> Tensor:
    """(1, outputs) outputs for the first sample, in evaluation mode.

    Args:
        module: the network; its mode is left as it is.
        samples: (samples, *shape) inputs, at least one.
        name: of the network, for messages.
        whose: client and view that the samples are of, for messages.

    Raises:
        ValueError: the network fails, or gives no row of outputs.
    """
    was_training = module.training
    inputs = own_copy(samples[:1], next(module.parameters(), None))
    try:
        with telling(f"{name} does not take samples", module, inputs, whose), torch.no_grad():
            outputs = module.eval()(inputs)
    finally:
        module.train(was_training)
    if not isinstance(outputs, Tensor) or outputs.ndim != 2 or len(outputs) != 1:
        got = tuple(outputs.shape) if isinstance(outputs, Tensor) else type(outputs).__name__
        raise ValueError(
            f"{name} must give (samples, outputs) numbers, got {got} for one sample{_of(whose)}"
        )
    return outputs


@standard_switches()
def check_training(
    module: nn.Module, samples: Tensor, num_outputs: int, name: str, whose: str = ""
) -> None:
    """Check that a network can be trained on some samples: forward and backward, in training mode.

    Nothing is checked on a single sample, on which batch normalisation has no variance.

    Args:
        module: the network, whose mode, gradients and buffers are changed.
        samples: (samples, *shape) inputs.
        num_outputs: outputs per sample.
        name: of the network, for messages.
        whose: client and view that the samples are of, for messages.

    Raises:
        ValueError: the network fails, gives other outputs than in evaluation mode, outputs without
            a gradient, or nothing but NaN.
    """
    if len(samples) < 2:
        return
    inputs = own_copy(samples, next(module.parameters(), None))
    what = f"{name} fails in training, on {len(samples)} samples"
    with telling(what, module, inputs, whose):
        with seeded(0):
            outputs = module.train()(inputs)
        if isinstance(outputs, Tensor) and outputs.requires_grad:
            outputs.sum().backward()  # type: ignore[no-untyped-call]
    got = tuple(outputs.shape) if isinstance(outputs, Tensor) else type(outputs).__name__
    if got != (len(samples), num_outputs):
        raise ValueError(
            f"{name} must give ({len(samples)}, {num_outputs}) numbers for {len(samples)} samples"
            f"{_of(whose)} in training mode as in evaluation mode, got {got}"
        )
    who = f"{_at(whose)}{name}"
    if not outputs.requires_grad and any(each.requires_grad for each in module.parameters()):
        raise ValueError(
            f"{who} gives outputs without a gradient in training mode; leave out `.detach()`, "
            "`torch.no_grad()` and what takes numbers out of tensors, such as `.numpy()`, in "
            "forward"
        )
    if bool(outputs.isnan().all()):
        raise ValueError(
            f"{who} gives NaN for all of {len(samples)} samples, before any training, so that "
            "nothing can be learnt; roots and logarithms of what is negative give NaN, and so do "
            "infinite numbers"
        )
