"""A partition of a data set among clients."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from numbers import Real
from typing import TypedDict, overload

import numpy as np
from numpy.typing import NDArray

from bcfl import ClientData
from bcfl.data import num_steps
from bcfl.runtime import check_whole
from experiments.datasets.dataset import Dataset
from experiments.partitions.allocation import Counts, evenly

Indices = NDArray[np.int64]
FEW_CLASSES = 20
"""Number of classes up to which those without samples are shown, too."""


class SplitOptions(TypedDict, total=False):
    """Keyword arguments of all partitions; see `experiments.partitions.Split`."""

    test_fraction: float
    min_samples: int
    samples_per_client: int | None
    native_test: bool


@dataclass(frozen=True)
class Split:
    """Sizes of the clients and of their test views.

    Attributes:
        test_fraction: share of a client's samples in its test view, rounded down, at least one of
            two or more samples; 0 for no test views. A client with one sample has no test view.
        min_samples: minimum number of samples per client, training and test together.
        samples_per_client: maximum number of samples per client; the others are left out.
        native_test: whether test views come from the original test set, partitioned like the
            training set; `test_fraction` is ignored then.

    Raises:
        ValueError: a value is out of range.
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
        """Number of test samples of a client with a number of samples."""
        if samples < 2 or self.test_fraction == 0:
            return 0
        return min(max(int(samples * self.test_fraction), 1), samples - 1)


@dataclass(frozen=True, eq=False, repr=False, kw_only=True)
class Partition(Sequence[ClientData]):
    """A sequence of clients, in the order of their names, that partition a data set.

    Attributes:
        name: name of the partition.
        clients: data of the clients.
        indices: rows of the data set by client and view, int64.
        left_out: number of samples without a client, by reason.
        num_classes: number of classes, or of labels, of the data set.
        source: name of the data set.
        hold_out: rows of the hold-out set, which belongs to no client, int64.
        concepts: concept of each client at each time step of a stream; empty otherwise.
        group_names: what the groups, or concepts, hold, by number, such as the domains; empty where
            the classes tell, or there are no groups.
        class_names: names of the classes, or labels, of the data set by number; empty if unknown.
    """

    name: str
    clients: tuple[ClientData, ...]
    indices: Mapping[str, Mapping[str, Indices]]
    left_out: Mapping[str, int]
    num_classes: int
    source: str
    hold_out: Indices = field(default_factory=lambda: np.zeros(0, dtype=np.int64))
    concepts: Mapping[str, tuple[int, ...]] = field(default_factory=dict)
    group_names: tuple[str, ...] = ()
    class_names: tuple[str, ...] = ()

    @classmethod
    def of_clients(cls, name: str, clients: Iterable[ClientData], dataset: Dataset) -> Partition:
        """The partition of clients that were made in another way.

        Args:
            name: name of the partition.
            clients: with their samples; which rows of the data set these are is not known.
            dataset: whose classes the samples have.
        """
        ordered = tuple(sorted(clients, key=lambda data: data.client))
        rows = {
            data.client: {view: np.arange(len(samples)) for view, samples in data.views.items()}
            for data in ordered
        }
        return cls(
            name=name,
            clients=ordered,
            indices=rows,
            left_out={},
            num_classes=dataset.num_outputs,
            class_names=dataset.class_names or (),
            source=dataset.name,
        )

    def __len__(self) -> int:
        return len(self.clients)

    @overload
    def __getitem__(self, index: int) -> ClientData: ...
    @overload
    def __getitem__(self, index: slice) -> tuple[ClientData, ...]: ...
    def __getitem__(self, index: int | slice) -> ClientData | tuple[ClientData, ...]:
        return self.clients[index]

    def __repr__(self) -> str:
        groups = f"{self.num_groups} groups" if self.num_groups else "no groups"
        return (
            f"Partition({self.name} of {self.source}: {len(self)} clients, {groups}, "
            f"{self.num_samples} samples, {self.num_left_out} left out)"
        )

    @property
    def groups(self) -> dict[str, int] | None:
        """True group of each client, None for partitions without groups."""
        groups = {data.client: data.group for data in self.clients if data.group is not None}
        return groups or None

    def groups_at(self, step: int) -> dict[str, int] | None:
        """True group of each client at a time step; in a stream, its concept."""
        if not self.concepts:
            return self.groups
        return {client: concepts[step] for client, concepts in self.concepts.items()}

    @property
    def num_groups(self) -> int:
        """Number of true groups; in a stream, of the concepts of all time steps."""
        if self.concepts:
            return len({concept for steps in self.concepts.values() for concept in steps})
        return len(set((self.groups or {}).values()))

    @property
    def shares_group(self) -> bool:
        """Whether all clients, of several, share a true group at every time step."""
        known = [self.groups_at(step) or {} for step in range(self.num_steps)]
        return len(self) > 1 and any(known) and all(len(set(k.values())) < 2 for k in known)

    @property
    def num_steps(self) -> int:
        """Number of time steps; 1 where data do not change."""
        return num_steps(self.clients)

    @property
    def num_samples(self) -> int:
        """Total number of samples of the clients."""
        return sum(len(rows) for views in self.indices.values() for rows in views.values())

    @property
    def num_left_out(self) -> int:
        """Number of samples without a client."""
        return sum(self.left_out.values())

    def class_counts(self) -> Counts:
        """(clients, classes) int64 number of samples over all views, or with each label."""
        counts = np.zeros((len(self), self.num_classes), dtype=np.int64)
        for row, data in zip(counts, self.clients, strict=True):
            for view in self.indices[data.client]:
                row += occurrences(data.views[view].targets.numpy(), self.num_classes)
        return counts


def occurrences(targets: NDArray[np.int64], classes: int = 0) -> Counts:
    """(classes,) int64 number of samples of each class, or (labels,) with each label.

    Args:
        targets: (samples,) classes, or (samples, labels) of 0 and 1.
        classes: number of classes at least.
    """
    return targets.sum(axis=0) if targets.ndim > 1 else np.bincount(targets, minlength=classes)


def classes_with_samples(counts: Counts) -> Counts:
    """Classes to show: all of a few, and of many those that a client has samples of.

    Args:
        counts: (clients, classes) int64 samples.

    Returns:
        (shown,) int64 classes, ascending.
    """
    held = np.flatnonzero(counts.any(axis=0))
    many = counts.shape[1] > FEW_CLASSES and len(held) > 0
    return held if many else np.arange(counts.shape[1])


def check_clients(dataset: Dataset, clients: int, split: Split, groups: int = 1) -> None:
    """Check that a data set can be partitioned among a number of clients and groups.

    Args:
        dataset: the data set.
        clients: number of clients.
        split: sizes of the clients.
        groups: number of groups.

    Raises:
        ValueError: there is no client or group, there are more groups than clients, or there are
            too few samples.
    """
    check_whole("clients", clients, 1)
    check_whole("groups", groups, 1)
    if groups > clients:
        raise ValueError(f"groups must be at most clients={clients}, got {groups}")
    if clients * split.min_samples > len(dataset):
        raise ValueError(
            f"clients={clients} with min_samples={split.min_samples} require "
            f"{clients * split.min_samples} samples, dataset {dataset.name!r} has {len(dataset)}"
        )
    if split.native_test and not dataset.num_native_test:
        raise ValueError(f"native_test: dataset {dataset.name!r} has no original test set")


def members(clients: int, groups: int, sizes: Sequence[int] | None = None) -> Counts:
    """(groups,) int64 number of clients of each group.

    Args:
        clients: number of clients.
        groups: number of groups.
        sizes: number of clients of each group; even by default.

    Raises:
        ValueError: sizes are not whole numbers, or inconsistent with `clients` or `groups`.
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
