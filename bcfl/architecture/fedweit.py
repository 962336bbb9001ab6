"""FedWeIT: decomposed weights with attention to the adaptive weights of other clients.

Yoon, Jeong, Lee, Yang and Hwang, "Federated Continual Learning with Weighted Inter-client Transfer"
(2021).
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace
from functools import partial
from typing import Any

import torch
from torch import Tensor, nn
from torch.nn.utils.parametrize import (
    is_parametrized,
    register_parametrization,
    remove_parametrizations,
)

from bcfl.architecture.decomposition import (
    ADAPTIVE,
    LAYERS,
    OWN,
    SHARED,
    WEIGHT,
    Decomposition,
    check_undivided,
    layers,
    shared_of,
)
from bcfl.architecture.layout import Slot
from bcfl.architecture.model import BlockSpec, Model
from bcfl.runtime import check_whole

KNOWLEDGE = "knowledge"
PARTS = "parametrizations.weight.0."


class Transfer(nn.Module):
    """weight = shared x sigmoid(mask) + adaptive + gain x sum_j attention_j knowledge_j.

    Attributes:
        knowledge: (slots, *shape) adaptive parts of other clients' earlier time steps.
        gain: (1,) constant 1, so that the global block of the knowledge has a parameter.
    """

    knowledge: Tensor

    def __init__(self, shape: Sequence[int], slots: int, least: float) -> None:
        super().__init__()
        self.register_buffer("knowledge", torch.zeros(slots, *shape))
        self.gain = nn.Parameter(torch.ones(1))
        self._own = Decomposition(least)

    def forward(self, shared: Tensor, mask: Tensor, adaptive: Tensor, attention: Tensor) -> Tensor:
        """Compose the weight.

        Args:
            shared: (outputs, ...) shared weight.
            mask: (outputs, 1, ...) mask before the sigmoid.
            adaptive: (outputs, ...) adaptive weight.
            attention: (slots,) weight of each slot of the knowledge.

        Returns:
            (outputs, ...) weight.
        """
        own: Tensor = self._own(shared, mask, adaptive)
        others = (attention @ self.knowledge.flatten(1)).view(shared.shape)
        whole: Tensor = own + self.gain * others
        return whole

    def right_inverse(self, weight: Tensor) -> tuple[Tensor, ...]:
        """Initial parts as in `Decomposition`, with zero attention."""
        return (*self._own.right_inverse(weight), weight.new_zeros(len(self.knowledge)))


def transferring(model: Model, slots: int = 10, least: float = 0.0) -> Model:
    """Decompose trained weights of an architecture with attention to those of other clients.

    Shared parts form a global block and the knowledge a frozen global block; adaptive parts, and
    masks and attention with all other parameters, form two client blocks.

    Args:
        model: architecture with a single block.
        slots: number of adaptive parts in the knowledge, at least 1.
        least: adaptive entries up to this magnitude are left out when predicting.

    Raises:
        ValueError: the architecture already has several blocks or no weight that is trained, or
            `slots` is below 1.
    """
    check_whole("slots", slots)
    check_undivided(model)
    build = partial(_build, model, slots, least)
    layout = replace(model, build=build).layout
    names = [slot.name for slot in (*layout.parameters, *layout.buffers)]
    known = tuple(name for name in names if name.endswith((f"{PARTS}knowledge", f"{PARTS}gain")))
    shared = shared_of(names)
    adaptive = tuple(name for name in names if name.endswith(f"{WEIGHT}2"))
    own = tuple(name for name in names if name not in {*known, *shared, *adaptive})
    parts = (
        BlockSpec(SHARED, "global", shared),
        BlockSpec(ADAPTIVE, "client", adaptive),
        BlockSpec(OWN, "client", own),
        BlockSpec(KNOWLEDGE, "global", known, frozen=True),
    )
    return replace(model, name=f"transferring-{model.name}", build=build, blocks=parts)


def _build(model: Model, slots: int, least: float) -> nn.Module:
    module = model.fresh()
    for layer in list(module.modules()):
        if isinstance(layer, LAYERS) and layer.weight.requires_grad:
            transfer = Transfer(layer.weight.shape, slots, least)
            register_parametrization(layer, "weight", transfer, unsafe=True)
    return module


def compose(network: nn.Module) -> None:
    """Replace the decomposed weights of a network by those that they compose to, in place.

    Args:
        network: in the mode in which it is used; one without decomposed weights stays as it is.
    """
    for layer in list(network.modules()):
        if isinstance(layer, LAYERS) and is_parametrized(layer, "weight"):
            parts: Any = layer.parametrizations
            if isinstance(parts["weight"][0], Decomposition | Transfer):
                remove_parametrizations(layer, "weight")


def knowledge_of(model: Model, adaptive: Sequence[Tensor], buffers: Tensor, least: float) -> Tensor:
    """Write adaptive parts of other models into the knowledge buffers.

    Args:
        model: an architecture from `transferring`.
        adaptive: (parameters,) flat parameter vectors, at most one per slot.
        buffers: (buffers,) flat buffer vector; its other entries are kept.
        least: entries up to this magnitude are set to zero.

    Returns:
        (buffers,) new flat buffer vector.
    """
    filled, slots = buffers.clone(), {slot.name: slot for slot in model.layout.buffers}
    for layer in layers(model):
        place = slots[f"{layer.prefix}{PARTS}knowledge"]
        table = torch.zeros(place.shape).to(buffers)
        for row, parameters in enumerate(adaptive):
            part = _part(parameters, layer.adaptive)
            table[row] = torch.where(part.abs() > least, part, 0.0).to(table)
        filled[place.start : place.stop] = table.reshape(-1)
    return filled


def without_attention(model: Model, parameters: Tensor) -> Tensor:
    """Set all attention to zero.

    Args:
        model: an architecture from `transferring`.
        parameters: (parameters,) flat parameter vector.

    Returns:
        (parameters,) new flat parameter vector.
    """
    cleared = parameters.clone()
    for slot in model.layout.parameters:
        if slot.name.endswith(f"{WEIGHT}3"):
            cleared[slot.start : slot.stop] = 0.0
    return cleared


def num_slots(model: Model) -> int:
    """Number of slots of the knowledge of an architecture from `transferring`."""
    return min(s.shape[0] for s in model.layout.buffers if s.name.endswith(f"{PARTS}knowledge"))


@dataclass(frozen=True)
class MaskedUpload:
    """Sparse upload: shared weights of outputs with a large mask, and large adaptive weights.

    An output is sent if the magnitude of its mask, before the sigmoid, exceeds the `sparsity`
    quantile of its layer.

    Attributes:
        sparsity: share of the outputs, rounded down, that is not sent; one more is not sent, as in
            the released code. 0 sends all.
        least: adaptive weights up to this magnitude are not sent.

    Raises:
        ValueError: a value is out of range.
    """

    sparsity: float = 0.3
    least: float = 1e-3

    def __post_init__(self) -> None:
        if not 0 <= self.sparsity < 1:
            raise ValueError(f"sparsity must lie in [0, 1), got {self.sparsity}")
        if not 0 <= self.least < float("inf"):
            raise ValueError(f"least must be finite and at least 0, got {self.least}")

    def sent(self, model: Model, parameters: Tensor) -> Tensor:
        """Select the parameters that are sent.

        Args:
            model: an architecture from `transferring`.
            parameters: (parameters,) flat parameter vector.

        Returns:
            (parameters,) bool.
        """
        chosen = torch.zeros_like(parameters, dtype=torch.bool)
        for layer in layers(model):
            size = _part(parameters, layer.mask).abs()
            strong = torch.ones_like(size, dtype=torch.bool)
            if self.sparsity > 0:
                place = int(len(size) * self.sparsity)
                strong = size > size.reshape(-1).sort().values[place]
            rows = strong.expand(layer.shared.shape).reshape(-1)
            chosen[layer.shared.start : layer.shared.stop] = rows
            adaptive = parameters[layer.adaptive.start : layer.adaptive.stop]
            chosen[layer.adaptive.start : layer.adaptive.stop] = adaptive.abs() > self.least
        return chosen

    def overhead(self, model: Model) -> int:
        """Size of the transmitted mask, one bit per output, bytes."""
        return -(-sum(layer.mask.shape[0] for layer in layers(model)) // 8)


def _part(parameters: Tensor, slot: Slot) -> Tensor:
    return parameters[slot.start : slot.stop].view(slot.shape)
