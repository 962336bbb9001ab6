"""IID partition, quantity skew, and feature skew by rotation of images or by source domain."""

from __future__ import annotations

from dataclasses import replace
from functools import partial
from typing import Unpack

import numpy as np

from bcfl.runtime import generator
from experiments.datasets.dataset import Dataset
from experiments.partitions.allocation import check_alpha, evenly, largest_remainder
from experiments.partitions.arguments import with_checks
from experiments.partitions.assembly import Assembly, Place, Samples
from experiments.partitions.concepts import angles
from experiments.partitions.partition import (
    Indices,
    Partition,
    Split,
    SplitOptions,
    check_clients,
    members,
)


@with_checks
def iid(
    dataset: Dataset, clients: int = 40, seed: int = 0, **options: Unpack[SplitOptions]
) -> Partition:
    """IID partition: random parts of equal size, without groups.

    Args:
        dataset: data set; each sample is used once.
        clients: number of clients.
        seed: seed of the partition.
        **options: `test_fraction`, `min_samples`, ...; see `experiments.partitions.Split`.

    Raises:
        ValueError: an argument is out of range, or there are too few samples.
    """
    split = Split(**options)
    check_clients(dataset, clients, split)
    return Assembly(name="iid", seed=seed, split=split).build(
        dataset, equal_parts(dataset, clients, seed)
    )


@with_checks
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
        **options: `test_fraction`, `min_samples`, ...; see `experiments.partitions.Split`.

    Returns:
        A sequence of `bcfl.ClientData`, with the groups and the sizes of the partition.

    Raises:
        ValueError: an argument is out of range, or the inputs are not images of a suitable shape.

    References:
        Ghosh, Chung, Yin, Ramchandran (2020), "An efficient framework for clustered federated
        learning", section 6.2: rotated MNIST.

    Example:
        >>> from experiments import datasets, partitions
        >>> partition = partitions.rotated(datasets.load("optdigits"), groups=2, clients=4)
        >>> partition.groups
        {'client-00': 0, 'client-01': 0, 'client-02': 1, 'client-03': 1}
        >>> partition[0].num_samples
        {'train': 338, 'test': 112}
    """
    split = Split(**options)
    check_clients(dataset, clients, split, groups)
    _check_rotations(dataset, groups)
    labels = np.repeat(np.arange(groups), evenly(clients, groups)).tolist()
    rotate = partial(_rotated, quarter_turns=4 // groups)
    shares = equal_parts(dataset, clients, seed)
    names = angles(groups)
    assembly = Assembly(name="rotated", seed=seed, split=split, alter=rotate, group_names=names)
    return assembly.build(dataset, shares, labels)


@with_checks
def skewed_sizes(
    dataset: Dataset,
    clients: int = 40,
    alpha: float = 0.5,
    seed: int = 0,
    **options: Unpack[SplitOptions],
) -> Partition:
    """Quantity skew: clients of very different sizes with IID samples, without groups.

    Beyond `min_samples` for each client, samples are shared in proportions from Dir(alpha).

    Args:
        dataset: data set; each sample is used once.
        clients: number of clients.
        alpha: concentration; smaller values give more skew.
        seed: seed of the partition.
        **options: `test_fraction`, `min_samples`, ...; see `experiments.partitions.Split`.

    Raises:
        ValueError: an argument is out of range, or there are too few samples.

    References:
        Li, Diao, Chen, He (2022), "Federated learning on non-IID data silos: an experimental
        study", quantity skew.
    """
    split = Split(**options)
    check_clients(dataset, clients, split)
    check_alpha(alpha)
    shares = generator(seed, "partition", "sizes").dirichlet(np.full(clients, alpha))
    spare = len(dataset) - clients * split.min_samples
    sizes = split.min_samples + largest_remainder(spare, shares)
    rows = generator(seed, "partition", "rows").permutation(len(dataset))
    parts = np.split(rows, np.cumsum(sizes)[:-1])
    return Assembly(name="skewed-sizes", seed=seed, split=split).build(dataset, parts)


@with_checks
def by_domain(
    dataset: Dataset,
    clients: int = 10,
    seed: int = 0,
    group_sizes: tuple[int, ...] | None = None,
    **options: Unpack[SplitOptions],
) -> Partition:
    """A group of clients for each source domain: Feature (K, C / K) of BCFL.

    The samples of a domain are divided evenly at random among the clients of its group. By
    default original training and test samples of a domain are pooled, and each client's are split
    again. Where domains show the same things, as MNIST-M shows the digits of MNIST, a test image of
    one may then have its twin among the training images of the other; `native_test = true` keeps
    the original division, and holds out `test_fraction` where a domain has none.

    Args:
        dataset: data set of several domains, such as Digits-Five; each sample is used once.
        clients: number of clients.
        seed: seed of the partition.
        group_sizes: number of clients of each domain; even by default.
        **options: `test_fraction`, `min_samples`, ...; see `experiments.partitions.Split`.

    Raises:
        ValueError: the data set has one domain, an argument is out of range, or a domain has too
            few samples.

    References:
        "A Bayesian framework for clustered federated learning", section 5 and Table 1.
    """
    split, names = Split(**options), dataset.domain_names
    assembly = Assembly(name="by-domain", seed=seed, split=split, group_names=names)
    check_clients(dataset, clients, split, max(len(names), 1))
    if dataset.domains is None:
        raise ValueError(
            f"dataset {dataset.name!r} has no domains, such as Digits-Five has; "
            "experiments.datasets.joined makes one of a data set for each domain, and "
            "dataclasses.replace(dataset, domains=...) gives the name of that of each sample"
        )
    sizes = members(clients, len(names), group_sizes)
    native = np.arange(len(dataset)) >= len(dataset) - dataset.num_native_test
    tests: list[Indices] = []
    shares: list[Indices] = []
    for domain, (name, size) in enumerate(zip(names, sizes.tolist(), strict=True)):
        rows = np.flatnonzero(dataset.domains == domain)
        if len(rows) < size * split.min_samples:
            raise ValueError(
                f"min_samples={split.min_samples}: the {size} clients of domain {name!r} require "
                f"{size * split.min_samples} samples, it has {len(rows)}"
            )
        mixed = generator(seed, "partition", "domain", name).permutation(rows)
        parts = np.split(mixed, np.cumsum(evenly(len(rows), size))[:-1])
        shares += parts
        if split.native_test and native[rows].any():
            tests.append(rows[native[rows]])
        elif split.native_test:
            tests += [part[: split.num_test(len(part))] for part in parts]
    if split.native_test:
        own = replace(split, native_test=False)
        assembly = replace(assembly, split=own, test_rows=np.concatenate(tests))
    labels = np.repeat(np.arange(len(names)), sizes).tolist()
    return assembly.build(dataset, shares, labels)


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
