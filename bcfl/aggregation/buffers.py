"""Running statistics of BatchNorm, which have no posterior."""

from __future__ import annotations

from collections.abc import Sequence

import torch
from torch import Tensor

from bcfl.architecture.layout import Slot
from bcfl.architecture.model import Model
from posteriors import pool_running_statistics


def pool_buffers(
    model: Model, block: str, buffers: Sequence[Tensor], counts: Sequence[float]
) -> Tensor:
    """Running statistics of the pooled samples; other buffers by their weighted mean.

    Args:
        model: the architecture.
        block: name of the block that the buffers belong to.
        buffers: (buffers,) of each party.
        counts: weight of each party, such as its number of samples.
    """
    if buffers[0].numel() == 0:
        return buffers[0]
    stacked = torch.stack(list(buffers))
    weights = torch.tensor(counts, dtype=torch.float64, device=stacked.device)
    pooled = ((weights / weights.sum())[:, None] * stacked.double()).sum(0).to(stacked.dtype)
    places = _places(model.block_slots[block][1])
    for name, place in places.items():
        if name.endswith("running_mean"):
            spread = places[name.removesuffix("mean") + "var"]
            pooled[place], pooled[spread] = pool_running_statistics(
                stacked[:, place], stacked[:, spread], weights
            )
    return pooled


def _places(slots: Sequence[Slot]) -> dict[str, slice]:
    """Where each tensor lies in the block's own flat vector."""
    places: dict[str, slice] = {}
    position = 0
    for slot in slots:
        places[slot.name] = slice(position, position + slot.stop - slot.start)
        position = places[slot.name].stop
    return places
