"""All clients' samples of one view in one tensor, and rows of it for many problems."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from itertools import accumulate

import torch
from torch import Tensor

from bcfl.data.clients import ClientData, View


@dataclass(frozen=True, eq=False)
class Samples:
    """Samples of all clients under one name, client after client.

    Attributes:
        inputs: (samples, *shape).
        targets: (samples,) or (samples, outputs).
        first: row of each client's first sample.
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
        """Lay out a view of all clients that have samples in it; None where no client has.

        Args:
            clients: the clients.
            name: of the view.
            device: where they lie.
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
        """One client's samples; they share memory with all."""
        rows = slice(self.first[client], self.first[client] + self.count[client])
        return View(self.inputs[rows], self.targets[rows])


def padded_length(count: int) -> int:
    """A length from a short list that is at least `count` and, from 32 on, at most 5/4 of it.

    Problems of one length are done side by side, so few lengths are wanted. It depends on `count`
    alone: what a problem is padded to never depends on the problems beside it.
    """
    grain = max(8, 1 << max(0, count.bit_length() - 3))
    return -(-count // grain) * grain


def padded(rows: Tensor, length: int) -> Tensor:
    """Row numbers (..., count) filled up to (..., length) by repeating the first."""
    missing = length - rows.shape[-1]
    if missing == 0:
        return rows
    return torch.cat([rows, rows[..., :1].expand(*rows.shape[:-1], missing)], dim=-1)
