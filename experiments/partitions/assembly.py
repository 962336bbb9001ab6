"""Assembly of clients from rows of a data set."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, replace
from typing import TypeAlias

import numpy as np
from numpy.typing import NDArray

from bcfl import ClientData
from bcfl.data import TEST, TRAIN
from bcfl.runtime import check_whole, generator
from experiments.datasets.dataset import Dataset
from experiments.partitions.allocation import Counts, largest_remainder
from experiments.partitions.partition import Indices, Partition, Split

OVER_CAP = "above samples_per_client"
UNUSED = "of classes without clients"
SPARE = "beyond the largest size that all clients can have"
HELD_OUT = "in the hold-out set"

Samples: TypeAlias = tuple[NDArray[np.float32], NDArray[np.int64]]


@dataclass(frozen=True)
class Place:
    """Client, group and view that samples belong to.

    Attributes:
        client: name of the client.
        group: true group of the client.
        view: name of the view.
    """

    client: str
    group: int
    view: str


Alter: TypeAlias = Callable[[Samples, Place], Samples]
"""Transform of the inputs (samples, ...) and targets (samples,) of a client."""


def deal(dataset: Dataset, counts: Counts, seed: int, native_test: bool = False) -> list[Indices]:
    """Draw rows for each client without replacement, class by class.

    Args:
        dataset: data set to draw from.
        counts: (clients, classes) int64 number of samples by client and class.
        seed: seed of the order within each class.
        native_test: whether samples of the original test set are allocated in proportion to
            `counts`; otherwise they are treated like all others.

    Returns:
        Rows of each client, int64.
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
    """Number of test samples of each client, where `tests` of `samples` are test samples."""
    if not tests or not wanted.sum():
        return np.zeros_like(wanted)
    return largest_remainder(-(-tests * int(wanted.sum()) // samples), wanted.astype(np.float64))


@dataclass(frozen=True, kw_only=True)
class Assembly:
    """Builds a partition from the rows of each client.

    Attributes:
        name: name of the partition.
        seed: seed of the train-test split and of subsampling under a cap.
        split: sizes of the clients' views.
        alter: transform of the clients' samples; none by default.
        relabels: whether it changes the classes of samples, so that names of classes would be wrong
            and clients get none.
        hold_out: rows of the hold-out set; see `Partition`.
        test_rows: rows that only test views hold, so that clients may share training samples; by
            default each client's samples are split at random.
        unallocated: why rows belong to no client; by default because no client has samples of
            their class, or else because all clients have one size.
        group_names: what the groups hold, by number; empty where the classes tell.

    Raises:
        ValueError: the seed is not a whole number of at least 0.
    """

    name: str
    seed: int
    split: Split
    alter: Alter | None = None
    relabels: bool = False
    hold_out: Indices | None = None
    test_rows: Indices | None = None
    unallocated: str | None = None
    group_names: tuple[str, ...] = ()

    def __post_init__(self) -> None:
        check_whole("seed", self.seed, 0)

    def build(
        self,
        dataset: Dataset,
        shares: Sequence[Indices],
        groups: Sequence[int] | None = None,
        names: Sequence[str] = (),
    ) -> Partition:
        """Build the partition in which client j holds the rows `shares[j]`, up to the cap.

        With `Split.native_test` its test samples are those of the original test set.

        Args:
            dataset: data set of the rows.
            shares: rows of each client, int64.
            groups: true group of each client, None without groups.
            names: names of the clients, ascending; `client-00` and so on by default.
        """
        names = names or client_names(len(shares))
        test_rows = self.test_rows
        if self.split.native_test:
            test_rows = np.arange(len(dataset) - dataset.num_native_test, len(dataset))
        indices = {
            n: self._views(n, rows, test_rows) for n, rows in zip(names, shares, strict=True)
        }
        allocated = np.unique(np.concatenate(shares))
        kept = np.unique(np.concatenate([r for views in indices.values() for r in views.values()]))
        held_out = np.zeros(0, dtype=np.int64) if self.hold_out is None else self.hold_out
        left_out = {
            OVER_CAP: len(allocated) - len(kept),
            **self._without_client(dataset, allocated, held_out),
            HELD_OUT: len(held_out),
        }
        of_client = dict(zip(names, groups, strict=True)) if groups is not None else {}
        return Partition(
            name=self.name,
            clients=tuple(self._client(dataset, n, indices[n], of_client.get(n)) for n in names),
            indices=indices,
            left_out={reason: count for reason, count in left_out.items() if count},
            num_classes=dataset.num_outputs,
            class_names=dataset.class_names or (),
            source=dataset.name,
            hold_out=held_out,
            group_names=self.group_names,
        )

    def _without_client(
        self, dataset: Dataset, allocated: Indices, held_out: Indices
    ) -> dict[str, int]:
        """Number of rows that are neither allocated nor held out, by reason."""
        rows = np.setdiff1d(np.arange(len(dataset)), np.concatenate([allocated, held_out]))
        if self.unallocated is not None:
            return {self.unallocated: len(rows)}
        of_others = int(np.isin(dataset.targets[rows], dataset.targets[allocated]).sum())
        return {UNUSED: len(rows) - of_others, SPARE: of_others}

    def _views(self, client: str, rows: Indices, tests: Indices | None) -> dict[str, Indices]:
        mixed = generator(self.seed, "partition", "split", client).permutation(np.sort(rows))
        mixed = mixed[: self.split.samples_per_client]
        if tests is not None:
            is_test = np.isin(mixed, tests)
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
            view: (inputs, dataset.labelled(targets))
            for view, rows in views.items()
            for inputs, targets in (
                self._seen((dataset.inputs[rows], dataset.targets[rows]), client, group, view),
            )
        }
        made = ClientData.from_arrays(client, arrays[TRAIN], arrays.get(TEST), group)
        return made if self.relabels else replace(made, classes=dataset.labels_of_classes)

    def _seen(self, samples: Samples, client: str, group: int | None, view: str) -> Samples:
        if self.alter is None or group is None:
            return samples
        return self.alter(samples, Place(client, group, view))


def client_names(count: int) -> list[str]:
    """Zero-padded names `client-00`, `client-01`, ..., which sort numerically."""
    width = max(2, len(str(count - 1)))
    return [f"client-{number:0{width}d}" for number in range(count)]
