"""Rows of a data set for each client, and the clients made of them."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from typing import TypeAlias

import numpy as np
from numpy.typing import NDArray

from bcfl import ClientData
from bcfl.data import TEST, TRAIN
from bcfl.runtime import generator
from experiments.config.options import check_whole
from experiments.datasets.dataset import Dataset
from experiments.partitions.allocation import Counts, largest_remainder
from experiments.partitions.partition import Indices, Partition, Split

OVER_CAP = "over samples_per_client"
UNUSED = "that no client drew"
HELD_OUT = "held out to test on"

Samples: TypeAlias = tuple[NDArray[np.float32], NDArray[np.int64]]


@dataclass(frozen=True)
class Place:
    """Where samples lie.

    Attributes:
        client: name of the client.
        group: its true group.
        view: name of the view.
    """

    client: str
    group: int
    view: str


Alter: TypeAlias = Callable[[Samples, Place], Samples]
"""What a client of a group sees of its samples, inputs (samples, ...) and targets (samples,)."""


def deal(dataset: Dataset, counts: Counts, seed: int, native_test: bool = False) -> list[Indices]:
    """Rows of the data set for each client, drawn without replacement class by class.

    Args:
        dataset: where the samples come from.
        counts: (clients, classes) samples that each client gets of each class.
        seed: fixes the order within each class.
        native_test: the source's own test samples of a class are dealt in proportion to `counts`;
            otherwise they are not told from the others.
    """
    first_test = len(dataset) - dataset.num_native_test if native_test else len(dataset)
    shares: list[list[Indices]] = [[] for _ in counts]
    for label in range(dataset.num_classes):
        rows = np.flatnonzero(dataset.targets == label)
        rows = generator(seed, "partition", "class", str(label)).permutation(rows)
        wanted = counts[:, label]
        is_test = rows >= first_test
        tested = _in_proportion(int(is_test.sum()), wanted, len(rows))
        for part, each in ((rows[~is_test], wanted - tested), (rows[is_test], tested)):
            pieces = np.split(part, np.cumsum(each))
            for share, piece in zip(shares, pieces[:-1], strict=True):
                share.append(piece)
    return [np.concatenate(share) for share in shares]


def _in_proportion(tests: int, wanted: Counts, samples: int) -> Counts:
    """How many of each client's samples are test samples, where `tests` of `samples` are."""
    if not tests or not wanted.sum():
        return np.zeros_like(wanted)
    return largest_remainder(-(-tests * int(wanted.sum()) // samples), wanted.astype(np.float64))


@dataclass(frozen=True)
class Assembly:
    """Turns rows for each client into a partition.

    Attributes:
        name: how the data were divided.
        seed: fixes which samples of a client are tested on and which are kept under a cap.
        split: sizes to keep to.
        alter: what clients see of their samples; nothing is changed without.
        hold_out: rows that no client gets, see `Partition`.
    """

    name: str
    seed: int
    split: Split
    alter: Alter | None = None
    hold_out: Indices | None = None

    def __post_init__(self) -> None:
        check_whole("seed", self.seed, 0)

    def build(
        self, dataset: Dataset, shares: Sequence[Indices], groups: Sequence[int] | None = None
    ) -> Partition:
        """The partition in which client j holds the rows `shares[j]`, less those over the cap.

        With `Split.native_test` its test samples are those of the source's own test set.

        Args:
            dataset: where the samples come from.
            shares: rows of each client.
            groups: true group of each client, none where there are none.
        """
        names = client_names(len(shares))
        first_test = len(dataset) - dataset.num_native_test if self.split.native_test else None
        indices = {
            n: self._views(n, rows, first_test) for n, rows in zip(names, shares, strict=True)
        }
        dealt = _distinct(shares)
        kept = _distinct([rows for views in indices.values() for rows in views.values()])
        held_out = np.zeros(0, dtype=np.int64) if self.hold_out is None else self.hold_out
        left_out = {
            OVER_CAP: dealt - kept,
            UNUSED: len(dataset) - dealt - len(held_out),
            HELD_OUT: len(held_out),
        }
        of_client = dict(zip(names, groups, strict=True)) if groups is not None else {}
        return Partition(
            name=self.name,
            clients=tuple(self._client(dataset, n, indices[n], of_client.get(n)) for n in names),
            indices=indices,
            left_out={reason: count for reason, count in left_out.items() if count},
            num_classes=dataset.num_classes,
            source=dataset.name,
            hold_out=held_out,
        )

    def _views(self, client: str, rows: Indices, first_test: int | None) -> dict[str, Indices]:
        mixed = generator(self.seed, "partition", "split", client).permutation(np.sort(rows))
        mixed = mixed[: self.split.samples_per_client]
        if first_test is not None:
            is_test = mixed >= first_test
            return {TRAIN: mixed[~is_test]} | ({TEST: mixed[is_test]} if is_test.any() else {})
        num_test = self.split.num_test(len(mixed))
        views = {TRAIN: mixed[num_test:]}
        if num_test:
            views[TEST] = mixed[:num_test]
        return views

    def _client(
        self, dataset: Dataset, client: str, views: Mapping[str, Indices], group: int | None
    ) -> ClientData:
        arrays = {
            view: self._seen((dataset.inputs[rows], dataset.targets[rows]), client, group, view)
            for view, rows in views.items()
        }
        return ClientData.from_arrays(client, arrays[TRAIN], arrays.get(TEST), group)

    def _seen(self, samples: Samples, client: str, group: int | None, view: str) -> Samples:
        if self.alter is None or group is None:
            return samples
        return self.alter(samples, Place(client, group, view))


def _distinct(parts: Sequence[Indices]) -> int:
    return len(np.unique(np.concatenate(parts)))


def client_names(count: int) -> list[str]:
    """Names that sort as numbers do."""
    width = max(2, len(str(count - 1)))
    return [f"client-{number:0{width}d}" for number in range(count)]
