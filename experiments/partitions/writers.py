"""Natural partition by writer: one client per person."""

from __future__ import annotations

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
        dataset: data set with known writers; samples of other writers are left out.
        clients: number of clients, drawn at random from the writers with at least `min_samples`
            samples.
        seed: seed of the draw, and of the train-test split.
        **options: `test_fraction`, `min_samples`, ...; see `experiments.partitions.writers.Split`.

    Raises:
        ValueError: writers are unknown, or too few of them have enough samples.
    """
    split = Split(**options)
    check_clients(dataset, clients, split)
    if dataset.writers is None:
        raise ValueError(
            f"writers of dataset {dataset.name!r} are unknown: put NAME_train_writers.npz and "
            "NAME_test_writers.npz (array: writer) into the folder of NAME.npz"
        )
    names, sizes = np.unique(dataset.writers, return_counts=True)
    enough = names[sizes >= split.min_samples]
    if len(enough) < clients:
        raise ValueError(
            f"clients={clients}: dataset {dataset.name!r} has {len(enough)} writers of at least "
            f"min_samples={split.min_samples} samples"
        )
    chosen = np.sort(generator(seed, "partition", "writers").permutation(enough)[:clients])
    shares = [np.flatnonzero(dataset.writers == name) for name in chosen]
    return Assembly(
        name="writers", seed=seed, split=split, unallocated="of writers without clients"
    ).build(dataset, shares)
