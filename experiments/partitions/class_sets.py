"""Label skew by class: a fixed number of classes per client (pathological non-IID)."""

from __future__ import annotations

from math import comb
from typing import Unpack

import numpy as np
from numpy.random import Generator
from numpy.typing import NDArray

from bcfl.runtime import generator
from experiments.datasets.dataset import Dataset
from experiments.partitions.allocation import Counts, evenly, raise_to_minimum
from experiments.partitions.arguments import with_checks
from experiments.partitions.assembly import Assembly, deal
from experiments.partitions.partition import (
    Partition,
    Split,
    SplitOptions,
    check_clients,
    members,
)

Holds = NDArray[np.bool_]
MAX_DRAWS = 1000


@with_checks
def n_class(
    dataset: Dataset,
    clients: int = 40,
    classes_per_client: int = 2,
    seed: int = 0,
    drop_unused: bool = False,
    **options: Unpack[SplitOptions],
) -> Partition:
    """Clients with a few classes each, without groups.

    Classes have equally many clients, up to a difference of one, and are divided evenly. Where
    a class has fewer samples than clients, some of them have none of it.

    Args:
        dataset: data set; each sample is used once, except classes without clients.
        clients: number of clients.
        classes_per_client: number of classes of each client, among the non-empty classes.
        seed: seed of the partition.
        drop_unused: whether to drop classes without clients, where there are too few clients.
        **options: `test_fraction`, `min_samples`, ...; see `experiments.partitions.Split`.

    Raises:
        ValueError: an argument is out of range, a class has no client and `drop_unused` is false,
            or a client cannot get `min_samples` samples of its classes.

    References:
        Ma, Long, Zhou, Jiang, Zhang (2022), client-wise n-class. Their program draws classes
        independently and loses those drawn by no client.
    """
    split = Split(**options)
    check_clients(dataset, clients, split)
    sizes = _class_sizes(dataset)
    _check_classes("classes_per_client", classes_per_client, int((sizes > 0).sum()))
    what = f"clients={clients} with classes_per_client={classes_per_client}"
    _check_used(what, clients * classes_per_client, int((sizes > 0).sum()), drop_unused)
    holds = draw_class_sets(
        clients, classes_per_client, sizes > 0, generator(seed, "partition", "classes")
    )
    counts = raise_to_minimum(_shared(sizes, holds), split.min_samples, holds)
    return Assembly(name="n-class", seed=seed, split=split).build(
        dataset, deal(dataset, counts, seed, split.native_test)
    )


@with_checks
def cluster_n_class(
    dataset: Dataset,
    groups: int = 4,
    clients: int = 40,
    classes: tuple[int, int] = (3, 2),
    seed: int = 0,
    drop_unused: bool = False,
    **options: Unpack[SplitOptions],
) -> Partition:
    """Groups with a few classes each, and clients with some of the classes of their group.

    Classes have equally many groups, up to a difference of one, and are divided evenly among them;
    likewise for the clients of a group. The sets of classes of any two groups differ.

    Args:
        dataset: data set; each sample is used once, except classes without clients.
        groups: number of groups; their numbers of clients differ by at most one.
        clients: number of clients.
        classes: number of classes of each group, and of each client among those of its group.
        seed: seed of the partition.
        drop_unused: whether to drop classes without a group or client, where there are too few.
        **options: `test_fraction`, `min_samples`, ...; see `experiments.partitions.Split`.

    Raises:
        ValueError: an argument is out of range, a class has no client and `drop_unused` is false,
            there are fewer sets of classes than groups, or a client cannot get `min_samples`
            samples of its classes.

    References:
        Ma, Long, Zhou, Jiang, Zhang (2022), cluster-wise n-class (3, 2).
    """
    split = Split(**options)
    check_clients(dataset, clients, split, groups)
    of_group, of_client = _pair(classes)
    sizes = _class_sizes(dataset)
    _check_classes("classes[0]", of_group, int((sizes > 0).sum()))
    _check_classes("classes[1]", of_client, of_group)
    what = f"groups={groups} with classes={of_group, of_client}"
    _check_used(what, groups * of_group, int((sizes > 0).sum()), drop_unused)
    in_group = members(clients, groups)
    what = f"{in_group.min()} clients of a group with classes={of_group, of_client}"
    _check_used(what, int(in_group.min()) * of_client, of_group, drop_unused)
    group_holds = _distinct_sets(
        groups, of_group, sizes > 0, generator(seed, "partition", "groups")
    )
    counts = []
    for group, share in enumerate(_shared(sizes, group_holds)):
        random = generator(seed, "partition", "group", str(group))
        holds = draw_class_sets(int(in_group[group]), of_client, group_holds[group], random)
        counts.append(raise_to_minimum(_shared(share, holds), split.min_samples, holds))
    shares = deal(dataset, np.concatenate(counts), seed, split.native_test)
    labels = np.repeat(np.arange(groups), in_group).tolist()
    return Assembly(name="cluster-n-class", seed=seed, split=split).build(dataset, shares, labels)


def draw_class_sets(units: int, size: int, usable: Holds, random: Generator) -> Holds:
    """Draw a set of classes for each unit with balanced class frequencies.

    Each usable class has a quota of units * size / usable, rounded up or down at random; each unit
    in turn takes the classes with the largest remaining quota, ties at random.

    Args:
        units: number of groups or clients.
        size: number of classes of each unit.
        usable: (classes,) bool, whether a class may be drawn.
        random: source of randomness.

    Returns:
        (units, classes) bool, whether a unit holds a class; rows sum to `size`.
    """
    labels = np.flatnonzero(usable)
    left = random.permutation(evenly(units * size, len(labels)))
    holds = np.zeros((units, len(usable)), dtype=bool)
    for row in holds:
        order = random.permutation(len(labels))
        chosen = order[np.argsort(-left[order], kind="stable")[:size]]
        left[chosen] -= 1
        row[labels[chosen]] = True
    return holds


def _distinct_sets(units: int, size: int, usable: Holds, random: Generator) -> Holds:
    if comb(int(usable.sum()), size) < units:
        raise ValueError(
            f"groups={units} cannot all have different sets of classes: there are "
            f"{comb(int(usable.sum()), size)} sets of {size} among {usable.sum()} classes"
        )
    for _ in range(MAX_DRAWS):
        holds = draw_class_sets(units, size, usable, random)
        if len(np.unique(holds, axis=0)) == units:
            return holds
    raise ValueError(
        f"groups={units} of {size} classes: each of {MAX_DRAWS} draws gave two groups the same "
        "classes; use fewer groups"
    )


def _shared(sizes: Counts, holds: Holds) -> Counts:
    counts = np.zeros(holds.shape, dtype=np.int64)
    for label, total in enumerate(sizes):
        holders = np.flatnonzero(holds[:, label])
        if len(holders):
            counts[holders, label] = evenly(int(total), len(holders))
    return counts


def _class_sizes(dataset: Dataset) -> Counts:
    return np.bincount(dataset.targets, minlength=dataset.num_classes)


def _pair(classes: tuple[int, int]) -> tuple[int, int]:
    if np.shape(classes) != (2,):
        raise ValueError(f"classes must be two numbers, of a group and of a client, got {classes}")
    return classes[0], classes[1]


def _check_classes(what: str, number: int, most: int) -> None:
    if number not in range(1, most + 1):
        raise ValueError(f"{what} must be a whole number, 1 to {most}, got {number}")


def _check_used(what: str, drawn: int, classes: int, drop_unused: bool) -> None:
    if drawn < classes and not drop_unused:
        raise ValueError(
            f"{what} can hold {drawn} of {classes} classes: increase them, or drop the other "
            "classes with drop_unused=True"
        )
