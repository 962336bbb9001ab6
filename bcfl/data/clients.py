"""Samples of one client by view: train, validation, test."""

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
"""Name of the pseudo-client that holds all training samples in centralised methods."""


@dataclass(frozen=True, eq=False)
class View:
    """Samples of one client in one role, such as training.

    Attributes:
        inputs: (samples, *input_shape) floats.
        targets: (samples,) int64 class labels, or (samples, outputs) floats.

    Raises:
        TypeError: inputs are not floating point.
        ValueError: inputs and targets differ in length, or inputs are not finite.
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
        """The samples at (n,) int64 `indices`, in that order."""
        return View(self.inputs[indices], self.targets[indices])


@dataclass(frozen=True, eq=False)
class ClientData:
    """Samples of one client by view.

    Attributes:
        client: stable name of the client.
        views: samples by view; `train` is required and holds at least one sample.
        group: true group, where known from a simulation; used for analysis only.

    Raises:
        ValueError: there are no training samples.
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
        """Number of samples by view."""
        return {name: len(view) for name, view in self.views.items()}

    def joined(self, names: Sequence[str]) -> View | None:
        """The samples of several views together; None if the client has none in any of them.

        Args:
            names: of the views; those that the client lacks are left out.
        """
        views = [self.views[name] for name in names if len(self.views.get(name, ()))]
        if len(views) < 2:
            return views[0] if views else None
        inputs = torch.cat([view.inputs for view in views])
        return View(inputs, torch.cat([view.targets for view in views]))

    @classmethod
    def from_arrays(
        cls,
        client: str,
        train: tuple[ArrayLike, ArrayLike],
        test: tuple[ArrayLike, ArrayLike] | None = None,
        group: int | None = None,
    ) -> ClientData:
        """Build a client from pairs of inputs and targets.

        Floating-point inputs keep their dtype; others are converted to float32.

        Args:
            client: name of the client.
            train: training inputs (samples, ...) and targets (samples,).
            test: test inputs and targets, if any.
            group: true group, used for analysis only.

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
    """Sort clients by name.

    Raises:
        ValueError: there is no client, or two clients have the same name.
    """
    ordered = tuple(sorted(clients, key=lambda data: data.client))
    if not ordered:
        raise ValueError("clients must hold at least one client, got none")
    names = [data.client for data in ordered]
    repeated = sorted({name for name in names if names.count(name) > 1}) if _repeats(names) else []
    if repeated:
        raise ValueError(f"client names must be distinct, got more than one of {repeated[:5]}")
    return ordered


def _repeats(names: list[str]) -> bool:
    return len(set(names)) < len(names)


def pooled(clients: Sequence[ClientData]) -> ClientData:
    """Pool all training samples under the name `POOL`.

    Args:
        clients: clients in the order of concatenation.
    """
    views = [data.views[TRAIN] for data in clients]
    inputs = torch.cat([view.inputs for view in views])
    return ClientData(POOL, {TRAIN: View(inputs, torch.cat([view.targets for view in views]))})


def with_validation(data: ClientData, share: float, seed: int) -> ClientData:
    """Hold out a random share of a client's training samples for validation, at each time step.

    The split depends on the seed, the client's name and the step alone. Clients with validation
    samples are returned unchanged.

    Args:
        data: the client.
        share: share of the training samples, rounded down; at least one of four or more samples.
        seed: seed of the split.
    """
    views = dict(data.views)
    if share > 0 and VALIDATION not in views:
        for name, train in data.views.items():
            kind, colon, step = name.partition(":")
            count = max(int(share * len(train)), 1 if len(train) >= 4 else 0)
            if kind == TRAIN and count:
                parts: list[int | str] = [seed, data.client, "validation"]
                parts += [step] if step else []
                order = torch.from_numpy(generator(*parts).permutation(len(train)))
                views[name] = train.take(order[count:].sort().values)
                views[VALIDATION + colon + step] = train.take(order[:count].sort().values)
    return ClientData(data.client, views, data.group)
