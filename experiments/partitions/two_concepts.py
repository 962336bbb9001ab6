"""Two groups of alternating clients with different concepts: scenarios S1, S2, A1, A2 of FAACL."""

from __future__ import annotations

from typing import Unpack

import numpy as np

from experiments.datasets.dataset import Dataset
from experiments.partitions import concepts
from experiments.partitions.allocation import evenly
from experiments.partitions.arguments import with_checks
from experiments.partitions.assembly import Assembly, deal
from experiments.partitions.concepts import (
    SMALL_SHARE,
    Concept,
    tested_on,
)
from experiments.partitions.feature_skew import equal_parts
from experiments.partitions.noise import Noise, check_noise_fits, standardised_pixels
from experiments.partitions.partition import Partition, Split, SplitOptions, check_clients


@with_checks
def shifted_labels(
    dataset: Dataset, clients: int = 20, seed: int = 0, **options: Unpack[SplitOptions]
) -> Partition:
    """Concept shift: labels of every other client are shifted by one: scenario S2 of FAACL.

    Args:
        dataset: data set, divided evenly at random; each sample is used once.
        clients: number of clients; those with even numbers have the original samples.
        seed: seed of the partition.
        **options: `test_fraction`, `min_samples`, ...; see `experiments.partitions.Split`.

    Raises:
        ValueError: an argument is out of range, or there are too few samples.
    """
    concept = concepts.shifted_labels(dataset.num_classes)
    return _alternating("shifted-labels", dataset, clients, seed, concept, options)


@with_checks
def noisy(
    dataset: Dataset,
    clients: int = 20,
    noise: tuple[float, float] | None = None,
    by_index: bool = False,
    standardised: bool = False,
    seed: int = 0,
    **options: Unpack[SplitOptions],
) -> Partition:
    """Feature noise: every other client has noisy inputs: scenario A1 of FAACL.

    Gaussian noise, then salt-and-pepper noise. Pixels are clipped to [0, 1], or to [-1, 1] where
    they are standardised, as in the author's program.

    Args:
        dataset: data set, divided evenly at random; each sample is used once.
        clients: number of clients; those with even numbers have the original samples.
        noise: variance of the Gaussian noise, and share of salt-and-pepper pixels; those of FAACL
            for the data set by default.
        by_index: whether sample i of each view has the same noise, as in the authors' program,
            which leaks the noise of test samples into training.
        standardised: whether each pixel is scaled to mean 0 and deviation 1 over all samples.
        seed: seed of the partition and of the noise.
        **options: `test_fraction`, `min_samples`, ...; see `experiments.partitions.Split`.

    Raises:
        ValueError: an argument is out of range, there are too few samples, or inputs that are not
            standardised are not within [0, 1].
    """
    concept = concepts.noisy_inputs(
        Noise.of_data_set(dataset.name, seed, noise, by_index, standardised)
    )
    if not standardised:
        check_noise_fits(dataset)
    used = standardised_pixels(dataset) if standardised else dataset
    return _alternating("noisy", used, clients, seed, concept, options)


@with_checks
def merged_classes(
    dataset: Dataset,
    clients: int = 20,
    small_share: float = SMALL_SHARE,
    seed: int = 0,
    **options: Unpack[SplitOptions],
) -> Partition:
    """Merged classes and fewer samples for every other client: scenario A2 of FAACL.

    Labels 1 and 3 become 2.

    Args:
        dataset: data set, divided evenly at random.
        clients: number of clients; those with even numbers have the original samples.
        small_share: share of their samples that the other clients keep.
        seed: seed of the partition.
        **options: `test_fraction`, `min_samples`, ...; see `experiments.partitions.Split`.

    Raises:
        ValueError: an argument is out of range, or there are too few samples.
    """
    if not 0 < small_share <= 1:
        raise ValueError(f"small_share must lie in (0, 1], got {small_share!r}")
    concept = concepts.merged_classes(small_share)
    return _alternating("merged-classes", dataset, clients, seed, concept, options)


@with_checks
def label_halves(
    dataset: Dataset,
    clients: int = 20,
    random_other_labels: bool = False,
    seed: int = 0,
    **options: Unpack[SplitOptions],
) -> Partition:
    """Disjoint classes: every other client has the second half: scenario S1 of FAACL.

    Args:
        dataset: data set; each sample is used once.
        clients: number of clients; those with even numbers have the first half of the classes.
        random_other_labels: clients hold samples of all classes; those of the other half have
            random labels in training and are left out of the test. This is the authors' program,
            which deviates from their description.
        seed: seed of the partition.
        **options: `test_fraction`, `min_samples`, ...; see `experiments.partitions.Split`.

    Raises:
        ValueError: an argument is out of range, or there are too few samples.
    """
    if random_other_labels:
        concept = concepts.random_label_halves(dataset.num_classes, seed)
        return _alternating("label-halves", dataset, clients, seed, concept, options)
    halves = concepts.HalfOfTheClasses(dataset.num_classes)
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
    assembly = Assembly(name="label-halves", seed=seed, split=split, group_names=halves.names)
    return assembly.build(dataset, shares, groups)


def _alternating(
    name: str, dataset: Dataset, clients: int, seed: int, concept: Concept, options: SplitOptions
) -> Partition:
    split = Split(**options)
    check_clients(dataset, clients, split, 2)
    groups = [client % 2 for client in range(clients)]
    shares = [
        concept.kept_rows(rows, dataset.targets[rows], group, split)
        for rows, group in zip(equal_parts(dataset, clients, seed), groups, strict=True)
    ]
    partition = Assembly(
        name=name,
        seed=seed,
        split=split,
        alter=concept.alter,
        relabels=concept.relabels,
        unallocated="beyond the share that clients of group 1 keep",
        group_names=concept.names,
    ).build(dataset, shares, groups)
    return partition if concept.tests is None else tested_on(partition, concept.tests)
