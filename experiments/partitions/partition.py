"""A data set divided among clients."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from numbers import Real
from typing import TypedDict, overload

import numpy as np
from numpy.typing import NDArray

from bcfl.clients import TEST, TRAIN, ClientData
from bcfl.seeds import generator
from experiments.datasets.dataset import Dataset
from experiments.options import check_whole
from experiments.partitions.allocation import Counts

Indices = NDArray[np.int64]
OVER_CAP = "over samples_per_client"
CLASS_UNUSED = "of a class that no client drew"


class SplitOptions(TypedDict, total=False):
    """Keyword arguments that every partition takes; see `Split`."""

    test_fraction: float
    min_samples: int
    samples_per_client: int | None


@dataclass(frozen=True)
class Split:
    """Sizes that every partition keeps to.

    Attributes:
        test_fraction: share of a client's samples that become its test view, rounded down but at
            least one of two or more samples; 0 for no test views. A client with one sample trains
            on it and has no test view.
        min_samples: samples that every client gets at least, training and test together.
        samples_per_client: samples that a client keeps at most; the others are left out.
    """

    test_fraction: float = 0.25
    min_samples: int = 8
    samples_per_client: int | None = None

    def __post_init__(self) -> None:
        if not isinstance(self.test_fraction, Real) or not 0 <= self.test_fraction < 1:
            raise ValueError(
                f"test_fraction must be at least 0 and below 1, got {self.test_fraction!r}"
            )
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
    """

    name: str
    clients: tuple[ClientData, ...]
    indices: Mapping[str, Mapping[str, Indices]]
    left_out: Mapping[str, int]
    num_classes: int
    source: str

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

    @property
    def num_samples(self) -> int:
        """Samples that the clients hold together."""
        return sum(sum(data.num_samples.values()) for data in self.clients)

    @property
    def num_left_out(self) -> int:
        """Samples that no client holds."""
        return sum(self.left_out.values())

    def class_counts(self) -> Counts:
        """Samples of each client by class, all views together: (clients, classes) int64."""
        counts = np.zeros((len(self), self.num_classes), dtype=np.int64)
        for row, data in zip(counts, self.clients, strict=True):
            for view in data.views.values():
                row += np.bincount(view.targets.numpy(), minlength=self.num_classes)
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


def deal(dataset: Dataset, counts: Counts, seed: int) -> list[Indices]:
    """Rows of the data set for each client, drawn without replacement class by class.

    Args:
        dataset: where the samples come from.
        counts: (clients, classes) samples that each client gets of each class.
        seed: fixes the order within each class.
    """
    shares: list[list[Indices]] = [[] for _ in counts]
    for label in range(dataset.num_classes):
        rows = np.flatnonzero(dataset.targets == label)
        rows = generator(seed, "partition", "class", str(label)).permutation(rows)
        pieces = np.split(rows, np.cumsum(counts[:, label]))
        for share, piece in zip(shares, pieces[:-1], strict=True):
            share.append(piece)
    return [np.concatenate(share) for share in shares]


@dataclass(frozen=True)
class Assembly:
    """Turns rows for each client into a partition.

    Attributes:
        name: how the data were divided.
        seed: fixes which samples of a client are tested on and which are kept under a cap.
        split: sizes to keep to.
        transform: what group g sees of inputs (samples, ...), from (inputs, g).
    """

    name: str
    seed: int
    split: Split
    transform: Callable[[NDArray[np.float32], int], NDArray[np.float32]] | None = None

    def __post_init__(self) -> None:
        check_whole("seed", self.seed, 0)

    def build(
        self, dataset: Dataset, shares: Sequence[Indices], groups: Sequence[int] | None = None
    ) -> Partition:
        """The partition in which client j holds the rows `shares[j]`, less those over the cap.

        Args:
            dataset: where the samples come from.
            shares: rows of each client.
            groups: true group of each client, none where there are none.
        """
        width = max(2, len(str(len(shares) - 1)))
        names = [f"client-{number:0{width}d}" for number in range(len(shares))]
        indices = {n: self._views(n, rows) for n, rows in zip(names, shares, strict=True)}
        dealt = sum(len(rows) for rows in shares)
        kept = sum(len(rows) for views in indices.values() for rows in views.values())
        left_out = {OVER_CAP: dealt - kept, CLASS_UNUSED: len(dataset) - dealt}
        of_client = dict(zip(names, groups, strict=True)) if groups is not None else {}
        return Partition(
            name=self.name,
            clients=tuple(self._client(dataset, n, indices[n], of_client.get(n)) for n in names),
            indices=indices,
            left_out={reason: count for reason, count in left_out.items() if count},
            num_classes=dataset.num_classes,
            source=dataset.name,
        )

    def _views(self, client: str, rows: Indices) -> dict[str, Indices]:
        mixed = generator(self.seed, "partition", "split", client).permutation(np.sort(rows))
        mixed = mixed[: self.split.samples_per_client]
        num_test = self.split.num_test(len(mixed))
        views = {TRAIN: mixed[num_test:]}
        if num_test:
            views[TEST] = mixed[:num_test]
        return views

    def _client(
        self, dataset: Dataset, client: str, views: Mapping[str, Indices], group: int | None
    ) -> ClientData:
        arrays = {
            view: (self._seen(dataset.inputs[rows], group), dataset.targets[rows])
            for view, rows in views.items()
        }
        return ClientData.from_arrays(client, arrays[TRAIN], arrays.get(TEST), group)

    def _seen(self, inputs: NDArray[np.float32], group: int | None) -> NDArray[np.float32]:
        if self.transform is None or group is None:
            return inputs
        return self.transform(inputs, group)
