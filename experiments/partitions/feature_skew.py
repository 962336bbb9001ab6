"""IID partition, and feature skew by rotation of images."""

from __future__ import annotations

from functools import partial
from typing import Unpack

import numpy as np

from bcfl.runtime import generator
from experiments.datasets.dataset import Dataset
from experiments.partitions.allocation import evenly
from experiments.partitions.assembly import Assembly, Place, Samples
from experiments.partitions.partition import (
    Indices,
    Partition,
    Split,
    SplitOptions,
    check_clients,
)


def iid(
    dataset: Dataset, clients: int = 40, seed: int = 0, **options: Unpack[SplitOptions]
) -> Partition:
    """IID partition: random parts of equal size, without groups.

    Args:
        dataset: data set; each sample is used once.
        clients: number of clients.
        seed: seed of the partition.
        **options: `test_fraction`, `min_samples`, ...; see `Split`.

    Raises:
        ValueError: an argument is out of range, or there are too few samples.
    """
    split = Split(**options)
    check_clients(dataset, clients, split)
    return Assembly(name="iid", seed=seed, split=split).build(
        dataset, equal_parts(dataset, clients, seed)
    )


def rotated(
    dataset: Dataset,
    groups: int = 4,
    clients: int = 40,
    seed: int = 0,
    **options: Unpack[SplitOptions],
) -> Partition:
    """Groups with rotated images: feature skew without label skew.

    Samples are divided as in `iid`; those of group g are rotated counter-clockwise by g * 360 /
    groups degrees.

    Args:
        dataset: images (samples, ..., height, width); each sample is used once.
        groups: 1, 2 or 4, so that rotations are exact.
        clients: number of clients.
        seed: seed of the partition.
        **options: `test_fraction`, `min_samples`, ...; see `Split`.

    Raises:
        ValueError: an argument is out of range, or the inputs are not images of a suitable shape.

    References:
        Ghosh, Chung, Yin, Ramchandran (2020), "An efficient framework for clustered federated
        learning", section 6.2: rotated MNIST.
    """
    split = Split(**options)
    check_clients(dataset, clients, split, groups)
    _check_rotations(dataset, groups)
    labels = np.repeat(np.arange(groups), evenly(clients, groups)).tolist()
    rotate = partial(_rotated, quarter_turns=4 // groups)
    shares = equal_parts(dataset, clients, seed)
    return Assembly(name="rotated", seed=seed, split=split, alter=rotate).build(
        dataset, shares, labels
    )


def equal_parts(dataset: Dataset, clients: int, seed: int) -> list[Indices]:
    """Divide all rows at random into parts whose sizes differ by at most one.

    Args:
        dataset: the data set.
        clients: number of parts.
        seed: seed of the permutation.

    Returns:
        Rows of each part, int64.
    """
    rows = generator(seed, "partition", "rows").permutation(len(dataset))
    return np.split(rows, np.cumsum(evenly(len(dataset), clients))[:-1])


def _check_rotations(dataset: Dataset, groups: int) -> None:
    if groups not in (1, 2, 4):
        raise ValueError(
            f"groups of a rotated partition must be 1, 2 or 4 (multiples of 90 degrees), "
            f"got {groups}"
        )
    shape = dataset.input_shape
    if len(shape) < 2 or (groups == 4 and shape[-1] != shape[-2]):
        raise ValueError(
            f"groups={groups} needs {'square ' if groups == 4 else ''}images (..., height, width), "
            f"dataset {dataset.name!r} has inputs of shape {shape}"
        )


def _rotated(samples: Samples, place: Place, quarter_turns: int) -> Samples:
    inputs, targets = samples
    rotated_inputs = np.rot90(inputs, place.group * quarter_turns, axes=(-2, -1))
    return np.ascontiguousarray(rotated_inputs), targets
