"""All clients' samples of one view in one tensor, and padded batches of their indices."""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Callable, Hashable, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from itertools import accumulate
from typing import Generic, TypeVar

import torch
from torch import Tensor

from bcfl.data.clients import ClientData
from bcfl.data.view import View
from bcfl.executors.batches import slices
from bcfl.executors.memory import chunks

Item = TypeVar("Item")


@dataclass(frozen=True, eq=False)
class Samples:
    """Samples of all clients under one name, concatenated.

    Attributes:
        inputs: (samples, *shape).
        targets: (samples,) or (samples, outputs).
        first: index of each client's first sample.
        count: samples of each client, at least 1.
    """

    inputs: Tensor
    targets: Tensor
    first: Mapping[str, int]
    count: Mapping[str, int]

    @classmethod
    def of(
        cls,
        clients: Sequence[ClientData],
        name: str,
        device: torch.device,
        dtype: torch.dtype,
    ) -> Samples | None:
        """Concatenate a view of all clients that have samples in it; None where no client has.

        Args:
            clients: the clients.
            name: of the view.
            device: of the tensors.
            dtype: floating-point type of the inputs.
        """
        views = {data.client: data.views[name] for data in clients if len(data.views.get(name, ()))}
        if not views:
            return None
        inputs = [view.inputs.to(dtype) for view in views.values()]
        if len({part.shape[1:] for part in inputs}) > 1:
            inputs = [part.flatten(1) for part in inputs]
        targets = [view.targets for view in views.values()]
        if targets[0].is_floating_point():
            targets = [part.to(dtype).reshape(len(part), -1) for part in targets]
        counts = [len(view) for view in views.values()]
        starts = accumulate(counts[:-1], initial=0)
        return cls(
            torch.cat(inputs).to(device),
            torch.cat(targets).to(device),
            dict(zip(views, starts, strict=True)),
            dict(zip(views, counts, strict=True)),
        )

    def view(self, client: str) -> View:
        """One client's samples, as views of the tensors."""
        rows = slice(self.first[client], self.first[client] + self.count[client])
        return View(self.inputs[rows], self.targets[rows])


def padded_length(count: int) -> int:
    """A length from a short list that is at least `count` and, from 32 on, at most 5/4 of it.

    Items of one length are batched, so the number of lengths is small. The length depends on
    `count` alone, so that results do not depend on the rest of the batch.
    """
    grain = max(8, 1 << max(0, count.bit_length() - 3))
    return -(-count // grain) * grain


def padded(rows: Tensor, length: int) -> Tensor:
    """Sample indices padded to (..., length) by repeating the first.

    Args:
        rows: (..., count) sample indices, int64.
        length: number of indices after padding.
    """
    missing = length - rows.shape[-1]
    if missing == 0:
        return rows
    return torch.cat([rows, rows[..., :1].expand(*rows.shape[:-1], missing)], dim=-1)


@dataclass(frozen=True, eq=False)
class PaddedBatch(Generic[Item]):
    """Items whose sample indices are padded to one length.

    Attributes:
        items: items of the batch.
        rows: (items, ..., length) sample indices of each.
        mask: (items, length) bool, False for padding.
    """

    items: Sequence[Item]
    rows: Tensor
    mask: Tensor

    @property
    def length(self) -> int:
        """Samples of each item, with padding."""
        return self.mask.shape[1]

    def slices(self, size: int, device: torch.device) -> Iterator[tuple[Tensor, Tensor]]:
        """Sample indices and mask in slices along the samples.

        Args:
            size: largest number of samples per item.
            device: where the slices are put.
        """
        rows, mask = self.rows.to(device), self.mask.to(device)
        for part in slices(self.length, size):
            yield rows[..., part], mask[:, part]


def padded_batches(
    items: Iterable[Item],
    rows_of: Callable[[Item], Tensor],
    bytes_of: Callable[[int], int],
    memory: int,
    *,
    key: Callable[[Item], Hashable] = lambda _: None,
    length_of: Callable[[int], int] = padded_length,
) -> Iterator[PaddedBatch[Item]]:
    """Batch items of one key and padded length, in parts that fit in memory.

    Args:
        items: in any order; batches come in the order of the first of their items.
        rows_of: sample indices of an item, (..., count).
        bytes_of: memory that one item of a padded length takes, in bytes.
        memory: bytes that a batch may take; it holds one item at least.
        key: common to the items of a batch.
        length_of: padded length of a count.
    """
    groups: dict[tuple[Hashable, int], list[tuple[Item, Tensor]]] = defaultdict(list)
    for item in items:
        rows = rows_of(item)
        groups[key(item), length_of(rows.shape[-1])].append((item, rows))
    for (_, length), group in groups.items():
        for part in chunks(group, bytes_of(length), memory):
            counts = torch.tensor([rows.shape[-1] for _, rows in part])
            yield PaddedBatch(
                [item for item, _ in part],
                torch.stack([padded(rows, length) for _, rows in part]),
                torch.arange(length) < counts.unsqueeze(1),
            )
