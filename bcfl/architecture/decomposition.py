"""Additive parameter decomposition (APD): masked shared weights plus sparse adaptive weights.

Yoon, Kim, Yang and Hwang, "Scalable and Order-robust Continual Learning with Additive Parameter
Decomposition" (2020), without its hierarchy.
"""

from __future__ import annotations

import math
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, replace
from functools import partial

import torch
from torch import Tensor, nn
from torch.nn.functional import softshrink
from torch.nn.utils.parametrize import register_parametrization

from bcfl.architecture.layout import Part, Slot
from bcfl.architecture.model import BlockSpec, Model

SHARED, ADAPTIVE, OWN = "shared", "adaptive", "own"
WEIGHT = "parametrizations.weight.original"
LAYERS = (nn.Linear, nn.Conv2d)
ADAPTIVE_PART = Part(ADAPTIVE)
SHARED_PART = Part(SHARED)


class Decomposition(nn.Module):
    """weight = shared x sigmoid(mask) + adaptive, with one mask entry per output.

    Attributes:
        least: adaptive entries up to this magnitude are left out when predicting.
    """

    def __init__(self, least: float = 0.0) -> None:
        super().__init__()
        self.least = least

    def forward(self, shared: Tensor, mask: Tensor, adaptive: Tensor) -> Tensor:
        """Compose the weight.

        Args:
            shared: (outputs, ...) shared weight.
            mask: (outputs, 1, ...) mask before the sigmoid.
            adaptive: (outputs, ...) adaptive weight.

        Returns:
            (outputs, ...) weight.
        """
        if not self.training and self.least:
            adaptive = adaptive * (adaptive.abs() > self.least)
        return shared * torch.sigmoid(mask) + adaptive

    def right_inverse(self, weight: Tensor) -> tuple[Tensor, Tensor, Tensor]:
        """Initial shared, mask and adaptive parts; they do not compose to `weight`."""
        return weight, _drawn_mask(weight.shape, None).to(weight), weight / 3


def decomposed(model: Model, least: float = 0.0) -> Model:
    """Decompose the trained weights of linear and convolutional layers of an architecture.

    Shared parts form a global block; adaptive parts, and masks with all other parameters, form two
    client blocks.

    Args:
        model: architecture with a single block.
        least: adaptive entries up to this magnitude are left out when predicting.

    Raises:
        ValueError: the architecture already has several blocks, or no weight that is trained.
    """
    check_undivided(model)
    build = partial(_build, model, least)
    layout = replace(model, build=build).layout
    names = [slot.name for slot in (*layout.parameters, *layout.buffers)]
    shared = shared_of(names)
    adaptive = tuple(name for name in names if name.endswith(f"{WEIGHT}2"))
    own = tuple(name for name in names if name not in {*shared, *adaptive})
    parts = (
        BlockSpec(SHARED, "global", shared),
        BlockSpec(ADAPTIVE, "client", adaptive),
        BlockSpec(OWN, "client", own),
    )
    return replace(model, name=f"decomposed-{model.name}", build=build, blocks=parts)


def check_undivided(model: Model) -> None:
    """Check that a model has a single block, so that it can be decomposed.

    Raises:
        ValueError: it has several blocks.
    """
    if len(model.blocks) > 1:
        blocks = ", ".join(block.name for block in model.blocks)
        raise ValueError(f"model must have a single block to be decomposed, got blocks {blocks}")


def shared_of(names: Sequence[str]) -> tuple[str, ...]:
    """Names of the shared parts among those of all tensors.

    Raises:
        ValueError: there are none.
    """
    shared = tuple(name for name in names if name.endswith(f"{WEIGHT}0"))
    if not shared:
        raise ValueError("model must have a linear or convolutional layer with trained weights")
    return shared


def _build(model: Model, least: float) -> nn.Module:
    module = model.fresh()
    for layer in list(module.modules()):
        if isinstance(layer, LAYERS) and layer.weight.requires_grad:
            register_parametrization(layer, "weight", Decomposition(least), unsafe=True)
    return module


def _drawn_mask(shape: Sequence[int], random: torch.Generator | None) -> Tensor:
    """(outputs, 1, ...) normal numbers of variance 1 / outputs."""
    mask = torch.randn(shape[0], *(1 for _ in shape[1:]), generator=random)
    return mask / math.sqrt(shape[0])


@dataclass(frozen=True)
class Layer:
    """Slots of the parts of one decomposed weight in the flat parameter vector.

    Attributes:
        prefix: of the names of its tensors, with a dot at the end; empty if it is the network.
        shared: slot of the shared weight.
        mask: slot of the mask.
        adaptive: slot of the adaptive weight.
    """

    prefix: str
    shared: Slot
    mask: Slot
    adaptive: Slot


def layers(model: Model) -> Iterator[Layer]:
    """Decomposed weights of an architecture, in the order of its parameters."""
    slots = {slot.name: slot for slot in model.layout.parameters}
    for name in slots:
        if name.endswith(f"{WEIGHT}0"):
            yield Layer(name.removesuffix(f"{WEIGHT}0"), *(slots[name[:-1] + k] for k in "012"))


def masks(model: Model, parameters: Tensor) -> Tensor:
    """Mask after the sigmoid of each shared parameter, 0 elsewhere.

    Args:
        model: a decomposed architecture.
        parameters: (parameters,) flat parameter vector.

    Returns:
        (parameters,) masks.
    """
    found = torch.zeros_like(parameters)
    for layer in layers(model):
        mask = torch.sigmoid(parameters[layer.mask.start : layer.mask.stop].view(layer.mask.shape))
        found[layer.shared.start : layer.shared.stop] = mask.expand(layer.shared.shape).reshape(-1)
    return found


def composed(model: Model, parameters: Tensor) -> Tensor:
    """Weights in the places of the shared parameters, 0 elsewhere.

    Args:
        model: a decomposed architecture.
        parameters: (parameters,) flat parameter vector.

    Returns:
        (parameters,) weights: shared x mask + adaptive.
    """
    weights = parameters * masks(model, parameters)
    for layer in layers(model):
        place = slice(layer.shared.start, layer.shared.stop)
        weights[place] += parameters[layer.adaptive.start : layer.adaptive.stop]
    return weights


def refitted(
    model: Model, parameters: Tensor, kept: Tensor, threshold: float, step_size: float
) -> Tensor:
    """Train the mask and the adaptive part of an earlier time step on today's shared parameters.

    The mask takes a gradient step on the Huber loss of kept - shared x mask; the adaptive part is
    the soft threshold of what then remains, its optimum (see `Retention`).

    Args:
        model: a decomposed architecture.
        parameters: (parameters,) today's shared parameters with the parts of the earlier step.
        kept: (parameters,) weights of the earlier step, as by `composed`.
        threshold: largest residual that the adaptive part leaves.
        step_size: of the mask, times the weight of the loss.

    Returns:
        (parameters,) new flat parameter vector.
    """
    fitted = parameters.clone()
    for layer in layers(model):
        shared, mask = (
            parameters[slot.start : slot.stop].view(slot.shape)
            for slot in (layer.shared, layer.mask)
        )
        weight = kept[layer.shared.start : layer.shared.stop].view(layer.shared.shape)
        gate = torch.sigmoid(mask)
        slope = -(weight - shared * gate).clamp(-threshold, threshold) * shared * gate * (1 - gate)
        inputs = tuple(range(1, shared.ndim))
        mask = mask - step_size * slope.sum(dim=inputs, keepdim=True)
        adaptive = softshrink(weight - shared * torch.sigmoid(mask), threshold)
        fitted[layer.mask.start : layer.mask.stop] = mask.reshape(-1)
        fitted[layer.adaptive.start : layer.adaptive.stop] = adaptive.reshape(-1)
    return fitted


def restarted(model: Model, parameters: Tensor, seed: int) -> Tensor:
    """Reinitialise masks, set adaptive parts to a third of the shared ones and biases to zero.

    Parameters that are not trained stay.

    Args:
        model: a decomposed architecture.
        parameters: (parameters,) flat parameter vector.
        seed: seed of the masks.

    Returns:
        (parameters,) new flat parameter vector.
    """
    random = torch.Generator().manual_seed(seed)
    fresh, slots = parameters.clone(), {slot.name: slot for slot in model.layout.parameters}
    for layer in layers(model):
        mask = _drawn_mask(layer.shared.shape, random)
        fresh[layer.mask.start : layer.mask.stop] = mask.reshape(-1).to(fresh)
        shared = fresh[layer.shared.start : layer.shared.stop]
        fresh[layer.adaptive.start : layer.adaptive.stop] = shared / 3
        bias = slots.get(f"{layer.prefix}bias")
        if bias is not None:
            fresh[bias.start : bias.stop] = 0.0
    return torch.where(model.trained.to(fresh.device), fresh, parameters)
