"""What of a model tells clusters apart."""

from __future__ import annotations

from functools import lru_cache

import torch
from torch import Tensor

from bcfl.architecture.model import Model


@lru_cache(maxsize=8)
def differing(model: Model) -> Tensor:
    """(parameters,) bool: those in blocks of cluster scope.

    A network that all clusters share says how clients' samples differ, not which cluster they need.
    """
    mask = torch.zeros(model.layout.num_parameters, dtype=torch.bool)
    for spec in model.blocks:
        for slot in model.block_slots[spec.name][0]:
            mask[slot.start : slot.stop] = spec.scope == "cluster"
    return mask
