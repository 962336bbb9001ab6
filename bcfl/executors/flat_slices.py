"""Chosen entries of flat parameter vectors."""

from __future__ import annotations

from dataclasses import dataclass

import torch
from torch import Tensor


@dataclass(frozen=True)
class FlatSlices:
    """Entries of a flat vector by start and stop, much faster to index than by a mask.

    Attributes:
        slices: of consecutive entries, in order.
    """

    slices: tuple[slice, ...]

    @classmethod
    def of(cls, chosen: Tensor) -> FlatSlices:
        """The runs of True in a mask.

        Args:
            chosen: (entries,) bool.
        """
        padded = torch.nn.functional.pad(chosen.to(torch.int8), (1, 1))
        edges = padded.diff().nonzero().reshape(-1).tolist()
        return cls(tuple(map(slice, edges[::2], edges[1::2])))

    def take(self, vector: Tensor) -> Tensor:
        """(..., chosen) the entries: a view where they are consecutive, else a copy.

        Args:
            vector: (..., length) tensor.
        """
        if len(self.slices) == 1:
            return vector[..., self.slices[0]]
        return torch.cat([vector[..., part] for part in self.slices] or [vector[..., :0]], dim=-1)

    def add(self, vector: Tensor, values: Tensor, factor: float = 1.0) -> None:
        """Add multiples of values to the entries, in place.

        Args:
            vector: (..., length) tensor, changed in place.
            values: (..., chosen) addends.
            factor: of the values.
        """
        first = 0
        for part in self.slices:
            end = first + part.stop - part.start
            vector[..., part].add_(values[..., first:end], alpha=factor)
            first = end

    def fill(self, vector: Tensor, value: float) -> None:
        """Set the entries to a value, in place.

        Args:
            vector: (..., length) tensor, changed in place.
            value: new value of the entries.
        """
        for part in self.slices:
            vector[..., part] = value
