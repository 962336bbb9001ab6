"""A data set divided among clients."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from numbers import Real
from typing import TypedDict, overload

import numpy as np
from numpy.typing import NDArray

from bcfl import ClientData
from experiments.config.options import check_whole
from experiments.datasets.dataset import Dataset
from experiments.partitions.allocation import Counts, evenly

Indices = NDArray[np.int64]


class SplitOptions(TypedDict, total=False):
    """Keyword arguments that every partition takes; see `Split`."""

    test_fraction: float
    min_samples: int
    samples_per_client: int | None
    native_test: bool


@dataclass(frozen=True)
class Split:
    """Sizes that every partition keeps to.

    Attributes:
        test_fraction: share of a client's samples that become its test view, rounded down but at
            least one of two or more samples; 0 for no test views. A client with one sample trains
            on it and has no test view.
        min_samples: samples that every client gets at least, training and test together.
        samples_per_client: samples that a client keeps at most; the others are left out.
        native_test: test views come from the source's own test set instead, dealt like the rest;
            `test_fraction` counts for nothing then.
    """

    test_fraction: float = 0.25
    min_samples: int = 8
    samples_per_client: int | None = None
    native_test: bool = False

    def __post_init__(self) -> None:
        if not isinstance(self.test_fraction, Real) or not 0 <= self.test_fraction < 1:
            raise ValueError(
                f"test_fraction must be at least 0 and below 1, got {self.test_fraction!r}"
            )
        if not isinstance(self.native_test, bool):
            raise ValueError(f"native_test must be true or false, got {self.native_test!r}")
        check_whole("min_samples", self.min_samples, 1)
        if self.samples_per_client is not None:
            check_whole("samples_per_client", self.samples_per_client, 1)
            if self.samples_per_client < self.min_samples:
                raise ValueError(
                    f"samples_per_client must be at least min_samples={self.min_samples}, got "
                    f"{self.samples_per_client}"
                )

    def num_test(self, samples: int) -> int:
        """Test samples of a client with so many samples."""
        if samples < 2 or self.test_fraction == 0:
            return 0
        return min(max(int(samples * self.test_fraction), 1), samples - 1)


@dataclass(frozen=True, eq=False, repr=False)
class Partition(Sequence[ClientData]):
    """Clients that together hold a data set, in the order of their names.

    Attributes:
        name: how the data were divided.
        clients: the clients' data.
        indices: for each client, the rows of the data set behind each of its views.
        left_out: samples that no client holds, by reason.
        num_classes: number of classes of the data set.
        source: name of the data set.
        hold_out: rows of the data set that no client holds, to test on samples of no client.
        concepts: for each client of a stream, what it sees in each time step; empty without one.
    """

    name: str
    clients: tuple[ClientData, ...]
    indices: Mapping[str, Mapping[str, Indices]]
    left_out: Mapping[str, int]
    num_classes: int
    source: str
    hold_out: Indices = field(default_factory=lambda: np.zeros(0, dtype=np.int64))
    concepts: Mapping[str, tuple[int, ...]] = field(default_factory=dict)

    def __len__(self) -> int:
        return len(self.clients)

    @overload
    def __getitem__(self, index: int) -> ClientData: ...
    @overload
    def __getitem__(self, index: slice) -> tuple[ClientData, ...]: ...
    def __getitem__(self, index: int | slice) -> ClientData | tuple[ClientData, ...]:
        return self.clients[index]

    def __repr__(self) -> str:
        groups = "no groups" if self.groups is None else f"{len(set(self.groups.values()))} groups"
        return (
            f"Partition({self.name} of {self.source}: {len(self)} clients, {groups}, "
            f"{self.num_samples} samples, {self.num_left_out} left out)"
        )

    @property
    def groups(self) -> dict[str, int] | None:
        """True group of each client, none where the partition knows no groups."""
        groups = {data.client: data.group for data in self.clients if data.group is not None}
        return groups or None

    def groups_at(self, step: int) -> dict[str, int] | None:
        """True group of each client in a time step: its concept there, where data are a stream."""
        if not self.concepts:
            return self.groups
        return {client: concepts[step] for client, concepts in self.concepts.items()}

    @property
    def num_samples(self) -> int:
        """Samples that the clients hold together."""
        return sum(len(rows) for views in self.indices.values() for rows in views.values())

    @property
    def num_left_out(self) -> int:
        """Samples that no client holds."""
        return sum(self.left_out.values())

    def class_counts(self) -> Counts:
        """Samples of each client by class, all views together: (clients, classes) int64."""
        counts = np.zeros((len(self), self.num_classes), dtype=np.int64)
        for row, data in zip(counts, self.clients, strict=True):
            for view in self.indices[data.client]:
                row += np.bincount(data.views[view].targets.numpy(), minlength=self.num_classes)
        return counts


def check_clients(dataset: Dataset, clients: int, split: Split, groups: int = 1) -> None:
    """Refuse numbers that no partition can meet.

    Raises:
        ValueError: no client or group, more groups than clients, or too few samples.
    """
    check_whole("clients", clients, 1)
    check_whole("groups", groups, 1)
    if groups > clients:
        raise ValueError(f"groups must be at most clients={clients}, got {groups}")
    if clients * split.min_samples > len(dataset):
        raise ValueError(
            f"clients={clients} with min_samples={split.min_samples} take "
            f"{clients * split.min_samples} samples, dataset {dataset.name!r} has {len(dataset)}"
        )
    if split.native_test and not dataset.num_native_test:
        raise ValueError(f"native_test: dataset {dataset.name!r} has no test set of its own")


def members(clients: int, groups: int, sizes: Sequence[int] | None = None) -> Counts:
    """(groups,) clients of each group: the same number, or one more, or as given.

    Raises:
        ValueError: the given sizes are no whole numbers, or fit neither `clients` nor `groups`.
    """
    if sizes is None:
        return evenly(clients, groups)
    for size in sizes:
        check_whole("group_sizes", size, 1)
    if (len(sizes), sum(sizes)) != (groups, clients):
        raise ValueError(
            f"group_sizes must be groups={groups} numbers that sum to clients={clients}, got "
            f"{len(sizes)} that sum to {sum(sizes)}"
        )
    return np.array(sizes, dtype=np.int64)
