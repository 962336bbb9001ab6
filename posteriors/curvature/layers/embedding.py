"""Squared per-sample gradients of embeddings."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass

import torch
from torch import Tensor, nn


@dataclass(frozen=True, eq=False)
class Lookups:
    """Which rows of a table each sample reads.

    Attributes:
        rows: (samples, positions) int64.
        num_rows: Rows of the table.
        padding: Row that gets no gradient; None if there is none.
    """

    rows: Tensor
    num_rows: int
    padding: int | None

    def abs(self) -> Lookups:
        """The same, since every read counts 1."""
        return self


def lookups(layer: nn.Embedding, inputs: Tensor) -> Lookups:
    """What `squares` needs of the input.

    Args:
        layer: Table of `num_embeddings` rows.
        inputs: Rows that each sample reads, (samples, ...).
    """
    return Lookups(inputs.long().flatten(1), layer.num_embeddings, layer.padding_idx)


def squares(read: Lookups, columns: Iterable[Tensor]) -> tuple[Tensor, Tensor]:
    """Sum of squared per-sample gradients of the table; there is no bias.

    Gradients of a row that a sample reads several times are summed before they are squared.

    Args:
        read: What the samples read.
        columns: Gradients with respect to the output, each (samples, ..., features).

    Returns:
        Those of the table, (rows, features), and an empty tensor.
    """
    sample = torch.arange(len(read.rows), device=read.rows.device).unsqueeze(1)
    pairs, place = torch.unique((sample * read.num_rows + read.rows).flatten(), return_inverse=True)
    rows = pairs % read.num_rows
    total = torch.zeros(())
    for column in columns:
        gradient = column.reshape(len(place), -1)
        summed = gradient.new_zeros(len(pairs), gradient.shape[1]).index_add_(0, place, gradient)
        squared = gradient.new_zeros(read.num_rows, gradient.shape[1])
        total = total.to(squared) + squared.index_add_(0, rows, summed.square_())
    if read.padding is not None:
        total[read.padding] = 0
    return total, total.new_zeros(0)
