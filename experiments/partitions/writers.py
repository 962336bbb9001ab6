"""Clients that are the people or devices from which the samples came."""

from __future__ import annotations

from typing import Unpack

import numpy as np

from bcfl.runtime import generator
from experiments.datasets.dataset import Dataset
from experiments.partitions.assembly import Assembly
from experiments.partitions.partition import Partition, Split, SplitOptions, check_clients


def writers(
    dataset: Dataset, clients: int = 20, seed: int = 0, **options: Unpack[SplitOptions]
) -> Partition:
    """Each client is one writer of the data set, without groups: like scenario A0 of FAACL.

    Args:
        dataset: samples whose writers are known; those of other writers are left out.
        clients: how many of the writers that have `min_samples` samples, chosen at random.
        seed: fixes the choice, and the split into training and test samples.
        **options: `test_fraction`, `min_samples`, ...; see `Split`.

    Raises:
        ValueError: the writers aren't known, or too few of them have enough samples.
    """
    split = Split(**options)
    check_clients(dataset, clients, split)
    if dataset.writers is None:
        raise ValueError(
            f"dataset {dataset.name!r} doesn't say who wrote what: put NAME_train_writers.npz and "
            "NAME_test_writers.npz (array: writer) beside NAME.npz"
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
    return Assembly("writers", seed, split).build(dataset, shares)
