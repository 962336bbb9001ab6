"""Weights that are shared ones, masked, plus sparse ones of one's own and of others: FedWeIT.

Yoon, Jeong, Lee, Yang and Hwang, "Federated Continual Learning with Weighted Inter-client Transfer"
(2021).
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace
from functools import partial

import torch
from torch import Tensor, nn
from torch.nn.utils.parametrize import register_parametrization

from bcfl.architecture.decomposition import (
    ADAPTIVE,
    LAYERS,
    OWN,
    SHARED,
    WEIGHT,
    Decomposition,
    check_undivided,
    layers,
)
from bcfl.architecture.layout import Layout, Slot
from bcfl.architecture.model import BlockSpec, Model

KNOWLEDGE = "knowledge"
PARTS = ".parametrizations.weight.0."


class Transfer(nn.Module):
    """weight = shared x sigmoid(mask) + adaptive + gain x sum_j attention_j knowledge_j.

    Attributes:
        knowledge: (slots, *shape) adaptive parts of other clients' earlier time steps.
        gain: one number that stays 1; what is sent to clients has at least one parameter.
    """

    knowledge: Tensor

    def __init__(self, shape: Sequence[int], slots: int) -> None:
        super().__init__()
        self.register_buffer("knowledge", torch.zeros(slots, *shape))
        self.gain = nn.Parameter(torch.ones(1))
        self._own = Decomposition()

    def forward(self, shared: Tensor, mask: Tensor, adaptive: Tensor, attention: Tensor) -> Tensor:
        """The weight, of the shape of `shared`."""
        own: Tensor = self._own(shared, mask, adaptive)
        others = (attention @ self.knowledge.flatten(1)).view(shared.shape)
        whole: Tensor = own + self.gain * others
        return whole

    def right_inverse(self, weight: Tensor) -> tuple[Tensor, ...]:
        """Parts to start from, as those of `Decomposition`; no attention."""
        return (*self._own.right_inverse(weight), weight.new_zeros(len(self.knowledge)))


def transferring(model: Model, slots: int = 10) -> Model:
    """The architecture with decomposed weights that can draw on those of other clients.

    The shared parts are a global block, and so is the knowledge; adaptive parts, and masks,
    attention and all else, are blocks that stay with their client.

    Args:
        model: the architecture.
        slots: adaptive parts that the knowledge holds.

    Raises:
        ValueError: the architecture is already divided into blocks, or there are no slots.
    """
    if slots < 1:
        raise ValueError(f"slots must be at least 1, got {slots}")
    check_undivided(model)
    build = partial(_build, model, slots)
    layout = Layout.of(build())
    names = [slot.name for slot in (*layout.parameters, *layout.buffers)]
    known = tuple(name for name in names if name.endswith((f"{PARTS}knowledge", f"{PARTS}gain")))
    shared = tuple(name for name in names if name.endswith(f"{WEIGHT}0"))
    adaptive = tuple(name for name in names if name.endswith(f"{WEIGHT}2"))
    own = tuple(name for name in names if name not in {*known, *shared, *adaptive})
    parts = (
        BlockSpec(SHARED, "global", shared),
        BlockSpec(ADAPTIVE, "client", adaptive),
        BlockSpec(OWN, "client", own),
        BlockSpec(KNOWLEDGE, "global", known, frozen=True),
    )
    return replace(model, name=f"transferring-{model.name}", build=build, blocks=parts)


def _build(model: Model, slots: int) -> nn.Module:
    module = model.build()
    for layer in list(module.modules()):
        if isinstance(layer, LAYERS):
            transfer = Transfer(layer.weight.shape, slots)
            register_parametrization(layer, "weight", transfer, unsafe=True)
    return module


def knowledge_of(model: Model, adaptive: Sequence[Tensor], buffers: Tensor, least: float) -> Tensor:
    """(buffers,) with the adaptive parts of some models as knowledge.

    Args:
        model: a transferring architecture.
        adaptive: (parameters,) flat, of at most as many models as there are slots.
        buffers: (buffers,) flat, whose other statistics stay.
        least: entries up to this size are left out.
    """
    found, slots = buffers.clone(), {slot.name: slot for slot in model.layout.buffers}
    for layer in layers(model):
        place = slots[f"{layer.name}{PARTS}knowledge"]
        table = torch.zeros(place.shape).to(buffers)
        for row, parameters in enumerate(adaptive):
            part = _part(parameters, layer.adaptive)
            table[row] = torch.where(part.abs() > least, part, 0.0).to(table)
        found[place.start : place.stop] = table.reshape(-1)
    return found


def without_attention(model: Model, parameters: Tensor) -> Tensor:
    """(parameters,) flat, drawing on nobody else."""
    found = parameters.clone()
    for slot in model.layout.parameters:
        if slot.name.endswith(f"{WEIGHT}3"):
            found[slot.start : slot.stop] = 0.0
    return found


def num_slots(model: Model) -> int:
    """Adaptive parts that the knowledge of a transferring architecture holds."""
    return min(s.shape[0] for s in model.layout.buffers if s.name.endswith(f"{PARTS}knowledge"))


@dataclass(frozen=True)
class MaskedUpload:
    """Shared weights of the outputs whose mask is strong, and adaptive weights that are not small.

    An output is sent if the size of its mask, before the sigmoid, exceeds that of the weakest
    `sparsity` of the layer.

    Attributes:
        sparsity: share of the outputs, rounded down, that is not sent; besides the next weakest,
            as in the released code. 0 sends all.
        least: adaptive weights up to this size are not sent.
    """

    sparsity: float = 0.3
    least: float = 1e-3

    def __post_init__(self) -> None:
        if not 0 <= self.sparsity < 1:
            raise ValueError(f"sparsity must lie in [0, 1), got {self.sparsity}")
        if not 0 <= self.least < float("inf"):
            raise ValueError(f"least must be finite and at least 0, got {self.least}")

    def sent(self, model: Model, parameters: Tensor) -> Tensor:
        """(parameters,) bool, which ones are sent."""
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
        """Bytes of one bit for each output."""
        return -(-sum(layer.mask.shape[0] for layer in layers(model)) // 8)


def _part(parameters: Tensor, slot: Slot) -> Tensor:
    return parameters[slot.start : slot.stop].view(slot.shape)
