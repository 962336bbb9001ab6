"""Clients of two groups that alternate: every other one sees its samples in another way."""

from __future__ import annotations

from dataclasses import replace
from typing import Unpack

import numpy as np

from bcfl import ClientData
from bcfl.data import TEST
from bcfl.runtime import generator
from experiments.datasets.dataset import Dataset
from experiments.partitions.allocation import evenly
from experiments.partitions.assembly import Alter, Assembly, Place, Samples, deal
from experiments.partitions.concepts import (
    NOISE,
    SMALL_SHARE,
    Concept,
    HalfOfTheClasses,
    Noise,
    ShiftedLabels,
    merged_labels,
)
from experiments.partitions.feature_skew import equal_parts
from experiments.partitions.partition import Partition, Split, SplitOptions, check_clients


def shifted_labels(
    dataset: Dataset, clients: int = 20, seed: int = 0, **options: Unpack[SplitOptions]
) -> Partition:
    """Every other client sees class y as y + 1, the last as 0: scenario S2 of FAACL.

    Args:
        dataset: samples to divide evenly at random; every one is used once.
        clients: number of clients; those with even numbers see their samples as they are.
        seed: fixes the partition.
        **options: `test_fraction`, `min_samples`, ...; see `Split`.

    Raises:
        ValueError: an argument is out of range, or there are too few samples.
    """
    alter = ShiftedLabels(dataset.num_classes)
    return _alternating("shifted-labels", dataset, clients, seed, alter, options)


def noisy(
    dataset: Dataset,
    clients: int = 20,
    noise: tuple[float, float] | None = None,
    by_index: bool = False,
    seed: int = 0,
    **options: Unpack[SplitOptions],
) -> Partition:
    """Every other client sees noise, Gaussian then salt and pepper: scenario A1 of FAACL.

    Pixels are clipped to [0, 1]; the authors standardise MNIST and clip to [-1, 1].

    Args:
        dataset: samples to divide evenly at random; every one is used once.
        clients: number of clients; those with even numbers see their samples as they are.
        noise: variance, and share of the pixels that become black or white; none takes those of
            `NOISE`.
        by_index: see `Noise`.
        seed: fixes the partition and the noise.
        **options: `test_fraction`, `min_samples`, ...; see `Split`.

    Raises:
        ValueError: an argument is out of range, or there are too few samples.
    """
    variance, amount = NOISE.get(dataset.name, NOISE["mnist"]) if noise is None else noise
    alter = Noise(variance, amount, seed, by_index)
    return _alternating("noisy", dataset, clients, seed, alter, options)


def merged_classes(
    dataset: Dataset,
    clients: int = 20,
    small_share: float = SMALL_SHARE,
    seed: int = 0,
    **options: Unpack[SplitOptions],
) -> Partition:
    """Every other client has fewer samples, and classes 1 and 3 as 2: scenario A2 of FAACL.

    Args:
        dataset: samples to divide evenly at random.
        clients: number of clients; those with even numbers see their samples as they are.
        small_share: share of its samples that each of the others keeps.
        seed: fixes the partition.
        **options: `test_fraction`, `min_samples`, ...; see `Split`.

    Raises:
        ValueError: an argument is out of range, or there are too few samples.
    """
    if not 0 < small_share <= 1:
        raise ValueError(f"small_share must lie in (0, 1], got {small_share!r}")
    split = Split(**options)
    check_clients(dataset, clients, split, 2)
    shares = equal_parts(dataset, clients, seed)
    concept = Concept(merged_labels, share=small_share)
    groups = [client % 2 for client in range(clients)]
    shares = [
        concept.kept_rows(rows, dataset.targets[rows], group, split)
        for rows, group in zip(shares, groups, strict=True)
    ]
    return Assembly("merged-classes", seed, split, concept.alter).build(dataset, shares, groups)


def label_halves(
    dataset: Dataset,
    clients: int = 20,
    random_other_labels: bool = False,
    seed: int = 0,
    **options: Unpack[SplitOptions],
) -> Partition:
    """Every other client has the second half of the classes: scenario S1 of FAACL.

    Args:
        dataset: samples to divide; every one is used once.
        clients: number of clients; those with even numbers have the first half of the classes.
        random_other_labels: clients hold samples of all classes; in training those of the other
            half have random labels, in tests they are left out. This is what the authors' program
            does, and not what they describe.
        seed: fixes the partition.
        **options: `test_fraction`, `min_samples`, ...; see `Split`.

    Raises:
        ValueError: an argument is out of range, or there are too few samples.
    """
    halves = HalfOfTheClasses(dataset.num_classes)
    if random_other_labels:
        alter = _RandomOtherLabels(halves, seed)
        made = _alternating("label-halves", dataset, clients, seed, alter, options)
        return _tested_on(made, halves)
    split = Split(**options)
    check_clients(dataset, clients, split, 2)
    sizes = np.bincount(dataset.targets, minlength=dataset.num_classes)
    counts = np.zeros((clients, dataset.num_classes), dtype=np.int64)
    for label, size in enumerate(sizes):
        group = int(halves(np.array([label]), 1)[0])
        holders = np.arange(group, clients, 2)
        counts[holders, label] = evenly(int(size), len(holders))
    groups = [client % 2 for client in range(clients)]
    shares = deal(dataset, counts, seed, split.native_test)
    return Assembly("label-halves", seed, split).build(dataset, shares, groups)


class _RandomOtherLabels:
    """Random classes for training samples of the half that a group hasn't got."""

    def __init__(self, halves: HalfOfTheClasses, seed: int) -> None:
        self._halves, self._seed = halves, seed

    def __call__(self, samples: Samples, place: Place) -> Samples:
        """What a client sees."""
        inputs, targets = samples
        if place.view == TEST:
            return samples
        random = generator(self._seed, "partition", "labels", place.client)
        drawn = random.integers(0, self._halves.num_classes, len(targets))
        return inputs, np.where(self._halves(targets, place.group), targets, drawn)


def _tested_on(made: Partition, halves: HalfOfTheClasses) -> Partition:
    """The same, with test samples of a client's own half only."""
    clients, indices, dropped = [], dict(made.indices), 0
    for data in made:
        views, rows = dict(data.views), dict(indices[data.client])
        if TEST in views:
            own = halves(views[TEST].targets.numpy(), data.group or 0)
            kept = np.flatnonzero(own)
            dropped += len(own) - len(kept)
            views[TEST] = type(views[TEST])(views[TEST].inputs[kept], views[TEST].targets[kept])
            rows[TEST] = rows[TEST][kept]
        clients.append(ClientData(data.client, views, data.group))
        indices[data.client] = rows
    left_out = {**made.left_out, "tests of the other half of the classes": dropped}
    return replace(made, clients=tuple(clients), indices=indices, left_out=left_out)


def _alternating(
    name: str, dataset: Dataset, clients: int, seed: int, alter: Alter, options: SplitOptions
) -> Partition:
    split = Split(**options)
    check_clients(dataset, clients, split, 2)
    shares = equal_parts(dataset, clients, seed)
    groups = [client % 2 for client in range(clients)]
    return Assembly(name, seed, split, alter).build(dataset, shares, groups)
