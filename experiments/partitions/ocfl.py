"""Three groups with given classes: the partitions of one-shot clustered federated learning."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Unpack

import numpy as np
from numpy.typing import NDArray

from bcfl.runtime import generator
from experiments.datasets.dataset import Dataset
from experiments.partitions.allocation import Counts, proportioned
from experiments.partitions.arguments import with_checks
from experiments.partitions.assembly import Assembly, deal
from experiments.partitions.partition import (
    Indices,
    Partition,
    Split,
    SplitOptions,
    check_clients,
    members,
)

SEPARATE = ((0, 1, 2, 3), (4, 5, 6), (7, 8, 9))
OVERLAPPING = ((0, 1, 2, 3, 8, 9), (4, 5, 6, 7, 8, 9), (0, 1, 2, 3, 4, 5))
GROUPS, CLASSES = 3, 10
UNEQUAL = {15: (3, 7, 5), 30: (7, 14, 9)}
TEST_FRACTION = 0.3
NOT_DRAWN = "that no client has drawn"


@with_checks
def ocfl(
    dataset: Dataset,
    clients: int = 15,
    overlapping: bool = False,
    balanced: bool = True,
    disjoint: bool = True,
    seed: int = 0,
    **options: Unpack[SplitOptions],
) -> Partition:
    """Three groups of clients with given classes; the original test set is held out.

    Balanced: groups of equal size, with uniform sampling over the group's classes. Imbalanced: 3, 7
    and 5 clients of 15 (7, 14 and 9 of 30), with class weights of a group from Dir(1).

    Disjoint clients have the same number of samples: an even share of the data, or less where a
    class is too scarce. That is a quarter to a half of the published number if imbalanced: seven
    clients of three classes would need more samples than there are. Otherwise each client draws
    that share with replacement and keeps the distinct samples, as published, training and test
    samples from disjoint halves of the data; clients share some, but none is tested on another's
    training sample.

    Args:
        dataset: data set of ten classes.
        clients: number of clients; 15 or 30 if imbalanced.
        overlapping: whether any two groups have common classes.
        balanced: whether groups and classes are balanced.
        disjoint: whether each sample belongs to at most one client.
        seed: seed of the partition.
        **options: `test_fraction` (0.3 by default), `min_samples`, ...; see
            `experiments.partitions.Split`.

    Raises:
        ValueError: an argument is out of range, or a client cannot get `min_samples` samples.

    References:
        Zuziak, Pellungrini, Rinzivillo (2024), "One-shot clustering for federated learning". There
        a test sample of one client may be a training sample of another, see
        `experiments.partitions.shared_ocfl`.
    """
    split, sizes = _checked(dataset, clients, balanced, options)
    pool, held_out = _pool(dataset)
    class_sizes = np.bincount(pool.targets, minlength=CLASSES)
    shares = class_shares(class_sizes, overlapping, balanced, seed)
    labels = np.repeat(np.arange(GROUPS), sizes).tolist()
    if not disjoint:
        tests = generator(seed, "partition", "test pool").permutation(len(pool))
        tests = np.sort(tests[: split.num_test(len(pool))])
        trains = np.setdiff1d(np.arange(len(pool)), tests)
        weights = shares / np.maximum(class_sizes, 1)
        drawn = _drawn(pool, labels, weights, (trains, tests), seed)
        return Assembly(
            name="ocfl",
            seed=seed,
            split=split,
            hold_out=held_out,
            test_rows=tests,
            unallocated=NOT_DRAWN,
        ).build(dataset, drawn, labels)
    counts = np.repeat(proportioned(class_sizes, shares, sizes), sizes, axis=0)
    least = int(counts.sum(axis=1).min())
    if least < split.min_samples:
        raise ValueError(
            f"min_samples={split.min_samples}: the scarcest class leaves {least} samples to each "
            f"of clients={clients}"
        )
    assembly = Assembly(name="ocfl", seed=seed, split=split, hold_out=held_out)
    return assembly.build(dataset, deal(pool, counts, seed), labels)


@with_checks
def shared_ocfl(
    dataset: Dataset,
    clients: int = 15,
    overlapping: bool = False,
    balanced: bool = True,
    seed: int = 0,
    **options: Unpack[SplitOptions],
) -> Partition:
    """`ocfl` with overlapping clients, as published; for comparison only.

    Each client draws an even share with replacement from all samples of its group's classes and
    keeps the distinct ones. A test sample of one client may be a training sample of another.

    Args:
        dataset: data set of ten classes.
        clients: number of clients; 15 or 30 if imbalanced.
        overlapping: whether any two groups have common classes.
        balanced: whether groups and classes are balanced.
        seed: seed of the partition.
        **options: `test_fraction` (0.3 by default), `min_samples`, ...; see
            `experiments.partitions.Split`.

    Raises:
        ValueError: an argument is out of range.
    """
    split, sizes = _checked(dataset, clients, balanced, options)
    pool, held_out = _pool(dataset)
    class_sizes = np.bincount(pool.targets, minlength=CLASSES)
    shares = class_shares(class_sizes, overlapping, balanced, seed)
    weights = shares / np.maximum(class_sizes, 1)
    labels = np.repeat(np.arange(GROUPS), sizes).tolist()
    drawn = _drawn(pool, labels, weights, (np.arange(len(pool)),), seed)
    return Assembly(
        name="shared-ocfl", seed=seed, split=split, hold_out=held_out, unallocated=NOT_DRAWN
    ).build(dataset, drawn, labels)


def _drawn(
    pool: Dataset,
    groups: Sequence[int],
    weights: NDArray[np.float64],
    parts: Sequence[Indices],
    seed: int,
) -> list[Indices]:
    """Distinct rows that each client draws with replacement: an even share of each part.

    Args:
        pool: samples to draw from.
        groups: group of each client.
        weights: (groups, classes) weight of a sample of each class.
        parts: disjoint rows of the pool.
        seed: seed of the draws.
    """
    drawn: list[Indices] = []
    for client, group in enumerate(groups):
        random = generator(seed, "partition", "draw", str(client))
        rows = []
        for part in parts:
            p = weights[group][pool.targets[part]]
            rows.append(random.choice(part, len(part) // len(groups), p=p / p.sum()))
        drawn.append(np.unique(np.concatenate(rows)))
    return drawn


def class_shares(
    class_sizes: Counts, overlapping: bool, balanced: bool, seed: int
) -> NDArray[np.float64]:
    """(groups, classes) share of each class in a group's samples; rows sum to 1.

    Args:
        class_sizes: (classes,) int64 number of samples.
        overlapping: whether any two groups have common classes.
        balanced: uniform over samples, or weighted by class with a draw from Dir(1).
        seed: seed of the draw.
    """
    random = generator(seed, "partition", "groups")
    weights = np.ones((GROUPS, CLASSES))
    if not balanced:
        weights = random.dirichlet(np.ones(CLASSES), size=GROUPS)
    for row, held in zip(weights, OVERLAPPING if overlapping else SEPARATE, strict=True):
        row[np.setdiff1d(np.arange(CLASSES), held)] = 0
    shares: NDArray[np.float64] = weights * class_sizes
    shares /= shares.sum(axis=1, keepdims=True)
    return shares


def _checked(
    dataset: Dataset, clients: int, balanced: bool, options: SplitOptions
) -> tuple[Split, Counts]:
    chosen: SplitOptions = {"test_fraction": TEST_FRACTION, **options}
    split = Split(**chosen)
    if split.native_test:
        raise ValueError("native_test must be false: the original test set is held out")
    check_clients(dataset, clients, split, GROUPS)
    if dataset.num_classes != CLASSES:
        raise ValueError(
            f"the data set must have {CLASSES} classes, {dataset.name!r} has {dataset.num_classes}"
        )
    if balanced:
        return split, members(clients, GROUPS)
    if clients not in UNEQUAL:
        raise ValueError(f"clients must be 15 or 30 where balanced is false, got {clients}")
    return split, members(clients, GROUPS, UNEQUAL[clients])


def _pool(dataset: Dataset) -> tuple[Dataset, Indices]:
    """Samples to allocate, and the rows of the held-out original test set."""
    count = len(dataset) - dataset.num_native_test
    pool = Dataset(
        name=dataset.name,
        inputs=dataset.inputs[:count],
        targets=dataset.targets[:count],
        num_classes=dataset.num_classes,
    )
    return pool, np.arange(count, len(dataset))
