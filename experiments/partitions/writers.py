"""Natural partition by writer: one client per person."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Unpack

import numpy as np

from bcfl.runtime import generator
from experiments.datasets.dataset import Dataset
from experiments.partitions.arguments import with_checks
from experiments.partitions.assembly import Assembly
from experiments.partitions.partition import Partition, Split, SplitOptions, check_clients


@with_checks
def writers(
    dataset: Dataset, clients: int = 20, seed: int = 0, **options: Unpack[SplitOptions]
) -> Partition:
    """Natural partition by writer, without groups: similar to scenario A0 of FAACL.

    Args:
        dataset: data set with known writers; samples of other writers are left out. Clients have
            the names of the writers, if it has these.
        clients: number of clients, drawn at random from the writers with at least `min_samples`
            samples.
        seed: seed of the draw, and of the train-test split.
        **options: `test_fraction`, `min_samples`, ...; see `experiments.partitions.Split`.

    Raises:
        ValueError: writers are unknown, or too few of them have enough samples.
    """
    split = Split(**options)
    check_clients(dataset, clients, split)
    if dataset.writers is None:
        raise ValueError(
            f"writers of dataset {dataset.name!r} are unknown: dataclasses.replace(dataset, "
            "writers=...) gives one name or number for each sample, those of the test set last; of "
            "a file NAME.npz they may lie beside it, as NAME_train_writers.npz and "
            "NAME_test_writers.npz (array: writer)"
        )
    numbers, sizes = np.unique(dataset.writers, return_counts=True)
    enough = numbers[sizes >= split.min_samples]
    if len(enough) < clients:
        raise ValueError(
            f"clients={clients}: dataset {dataset.name!r} has {len(enough)} writers of at least "
            f"min_samples={split.min_samples} samples"
        )
    chosen = np.sort(generator(seed, "partition", "writers").permutation(enough)[:clients])
    names = _names(dataset, chosen.tolist())
    if names:
        chosen, names = chosen[np.argsort(names)], sorted(names)
    shares = [np.flatnonzero(dataset.writers == number) for number in chosen]
    return Assembly(
        name="writers", seed=seed, split=split, unallocated="of writers without clients"
    ).build(dataset, shares, names=names)


def _names(dataset: Dataset, writers: Sequence[int]) -> list[str]:
    """Names of writers, where all of them have one that a client can have."""
    names = [dataset.writer_names[number] for number in writers if dataset.writer_names]
    return names if all(name and name.isprintable() for name in names) else []
