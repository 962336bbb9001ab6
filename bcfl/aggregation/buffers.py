"""Pooling of BatchNorm running statistics, which have no posterior."""

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
    """Running statistics of the pooled samples; other buffers are averaged.

    Args:
        model: the architecture.
        block: name of the block that the buffers belong to.
        buffers: (buffers,) running statistics of each party.
        counts: weight of each party, such as its number of samples.

    Returns:
        (buffers,) running statistics.
    """
    if buffers[0].numel() == 0:
        return buffers[0]
    stacked = torch.stack(list(buffers))
    weights = torch.tensor(counts, dtype=torch.float64, device=stacked.device)
    pooled = ((weights / weights.sum())[:, None] * stacked.double()).sum(0).to(stacked.dtype)
    slices = _slices(model.block_slots[block][1])
    for name, mean in slices.items():
        if name.endswith("running_mean"):
            variance = slices[name.removesuffix("mean") + "var"]
            pooled[mean], pooled[variance] = pool_running_statistics(
                stacked[:, mean], stacked[:, variance], weights
            )
    return pooled


def _slices(slots: Sequence[Slot]) -> dict[str, slice]:
    """Slice of each tensor in the block's flat vector."""
    slices: dict[str, slice] = {}
    position = 0
    for slot in slots:
        slices[slot.name] = slice(position, position + slot.stop - slot.start)
        position = slices[slot.name].stop
    return slices
