"""The data of one client, as the client itself sees them."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass

import numpy as np
import torch
from numpy.typing import ArrayLike
from torch import Tensor

from bcfl.runtime.seeds import generator

TRAIN, VALIDATION, TEST = "train", "validation", "test"
POOL = "(all samples)"
"""Name of the place where a centralised method pools all training samples."""


@dataclass(frozen=True, eq=False)
class View:
    """Samples of one client under one name, such as its training share.

    Attributes:
        inputs: (samples, *input_shape), floating point.
        targets: (samples,) int64 class labels, or (samples, outputs) floating point.
    """

    inputs: Tensor
    targets: Tensor

    def __post_init__(self) -> None:
        if len(self.inputs) != len(self.targets):
            raise ValueError(
                f"inputs and targets must have one row per sample each, got {len(self.inputs)} "
                f"inputs and {len(self.targets)} targets"
            )
        if not self.inputs.is_floating_point():
            raise TypeError(f"inputs must be floating point, got {self.inputs.dtype}")
        if not bool(torch.isfinite(self.inputs).all()):
            raise ValueError("inputs must be finite, got NaN or inf")

    def __len__(self) -> int:
        return len(self.targets)

    def take(self, indices: Tensor) -> View:
        """The samples at `indices`, in that order."""
        return View(self.inputs[indices], self.targets[indices])


@dataclass(frozen=True, eq=False)
class ClientData:
    """One client: a stable name, its samples by view, and (for analysis only) its true group.

    Attributes:
        client: name of the client; results never depend on the order in which clients are given.
        views: samples by name; `train` must be there and hold at least one sample.
        group: true group of the client where a simulation knows it; no method ever sees it.
    """

    client: str
    views: Mapping[str, View]
    group: int | None = None

    def __post_init__(self) -> None:
        if TRAIN not in self.views or len(self.views[TRAIN]) == 0:
            raise ValueError(f"client {self.client!r} has no training samples")

    def __repr__(self) -> str:
        sizes = ", ".join(f"{name} {len(view)}" for name, view in self.views.items())
        group = "" if self.group is None else f", group {self.group}"
        return f"ClientData({self.client}: {sizes}{group})"

    @property
    def num_samples(self) -> dict[str, int]:
        """Samples per view."""
        return {name: len(view) for name, view in self.views.items()}

    @classmethod
    def from_arrays(
        cls,
        client: str,
        train: tuple[ArrayLike, ArrayLike],
        test: tuple[ArrayLike, ArrayLike] | None = None,
        group: int | None = None,
    ) -> ClientData:
        """Build a client from (inputs, targets) pairs of arrays.

        Floating-point inputs keep their precision; others become float32.

        Args:
            client: name of the client.
            train: training inputs (samples, ...) and targets (samples,).
            test: test inputs and targets; none leaves the client without test data.
            group: true group, for analysis only.

        Raises:
            ValueError: the client has no training samples, or inputs and targets differ in length.
        """
        views = {TRAIN: _view(*train)}
        if test is not None:
            views[TEST] = _view(*test)
        return cls(client, views, group)


def _view(inputs: ArrayLike, targets: ArrayLike) -> View:
    x, y = torch.as_tensor(np.asarray(inputs)), torch.as_tensor(np.asarray(targets))
    if not x.is_floating_point():
        x = x.float()
    if not y.is_floating_point():
        y = y.long()
    return View(x, y)


def sorted_clients(clients: Iterable[ClientData]) -> tuple[ClientData, ...]:
    """Clients sorted by name.

    Raises:
        ValueError: no client at all, or two clients of the same name.
    """
    ordered = tuple(sorted(clients, key=lambda data: data.client))
    if not ordered:
        raise ValueError("clients must hold at least one client, got none")
    names = [data.client for data in ordered]
    twice = sorted({name for name in names if names.count(name) > 1}) if _repeats(names) else []
    if twice:
        raise ValueError(f"client names must be distinct, got more than one of {twice[:5]}")
    return ordered


def _repeats(names: list[str]) -> bool:
    return len(set(names)) < len(names)


def pooled(clients: Sequence[ClientData]) -> ClientData:
    """All training samples in one place, under the name `POOL`.

    Args:
        clients: in the order in which their samples are put together.
    """
    views = [data.views[TRAIN] for data in clients]
    inputs = torch.cat([view.inputs for view in views])
    return ClientData(POOL, {TRAIN: View(inputs, torch.cat([view.targets for view in views]))})


def with_validation(data: ClientData, share: float, seed: int) -> ClientData:
    """Set some of a client's training samples aside for validation, at every time step.

    Args:
        data: the client.
        share: of its training samples, rounded down, but at least one of four or more.
        seed: which samples; depends on the client's name and the step too, and on nothing else.
    """
    views = dict(data.views)
    if share > 0 and VALIDATION not in views:
        for name, train in data.views.items():
            kind, colon, step = name.partition(":")
            count = max(int(share * len(train)), 1 if len(train) >= 4 else 0)
            if kind == TRAIN and count:
                when = [step] if step else []
                parts: list[int | str] = [seed, data.client, "validation", *when]
                order = torch.from_numpy(generator(*parts).permutation(len(train)))
                views[name] = train.take(order[count:].sort().values)
                views[VALIDATION + colon + step] = train.take(order[:count].sort().values)
    return ClientData(data.client, views, data.group)
