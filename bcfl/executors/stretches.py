"""Some entries of a flat vector, as the few stretches that they are."""

from __future__ import annotations

from dataclasses import dataclass

import torch
from torch import Tensor


@dataclass(frozen=True)
class Stretches:
    """Entries by where they begin and end; much faster to reach than by a mask.

    Attributes:
        slices: of consecutive entries, in order.
    """

    slices: tuple[slice, ...]

    @classmethod
    def of(cls, chosen: Tensor) -> Stretches:
        """The stretches of a mask.

        Args:
            chosen: (entries,) bool.
        """
        padded = torch.nn.functional.pad(chosen.to(torch.int8), (1, 1))
        edges = padded.diff().nonzero().reshape(-1).tolist()
        return cls(tuple(map(slice, edges[::2], edges[1::2])))

    def take(self, vector: Tensor) -> Tensor:
        """(chosen,) the entries, as a copy."""
        return torch.cat([vector[part] for part in self.slices] or [vector[:0]])

    def add(self, vector: Tensor, values: Tensor) -> None:
        """Add (chosen,) values to the entries, in place."""
        first = 0
        for part in self.slices:
            end = first + part.stop - part.start
            vector[part] += values[first:end]
            first = end

    def fill(self, vector: Tensor, value: float) -> None:
        """Set the entries to a value, in place."""
        for part in self.slices:
            vector[part] = value
