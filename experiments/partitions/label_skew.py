"""Label skew by Dirichlet draws of class frequencies."""

from __future__ import annotations

from typing import Unpack

import numpy as np
from numpy.random import Generator
from numpy.typing import NDArray

from bcfl.runtime import generator
from experiments.datasets.dataset import Dataset
from experiments.partitions.allocation import (
    Counts,
    check_alpha,
    dirichlet_counts,
    proportioned,
    raise_to_minimum,
)
from experiments.partitions.arguments import with_checks
from experiments.partitions.assembly import Assembly, deal
from experiments.partitions.partition import (
    Partition,
    Split,
    SplitOptions,
    check_clients,
    members,
)

MAX_DRAWS = 1000
SMALLEST_GROUP = 0.3


@with_checks
def two_stage_dirichlet(
    dataset: Dataset,
    groups: int = 4,
    clients: int = 40,
    alpha: tuple[float, float] = (0.1, 10),
    seed: int = 0,
    group_sizes: tuple[int, ...] | None = None,
    **options: Unpack[SplitOptions],
) -> Partition:
    """Groups with strong label skew between them and weak label skew within them.

    Each class is divided among the groups with shares from Dir(alpha[0]), then each group's samples
    of that class among its clients with shares from Dir(alpha[1]). Groups are redrawn until the
    smallest has at least 0.3 times its even share of the samples. Each sample is used once.

    Args:
        dataset: data set to partition.
        groups: number of groups.
        clients: number of clients.
        alpha: concentration over groups, and over the clients of a group.
        seed: seed of the partition.
        group_sizes: number of clients of each group; even by default.
        **options: `test_fraction`, `min_samples`, ...; see `experiments.partitions.Split`.

    Raises:
        ValueError: an argument is out of range, or no draw gave sufficiently large groups.

    References:
        Ma, Long, Zhou, Jiang, Zhang (2022), "On the convergence of clustered federated learning":
        cluster-wise non-IID. Their program rounds shares down to two decimals and duplicates
        samples where some are missing; here each sample belongs to exactly one client.
    """
    split = Split(**options)
    check_clients(dataset, clients, split, groups)
    if np.shape(alpha) != (2,):
        raise ValueError(f"alpha must be two numbers, over groups and over clients, got {alpha}")
    for index, concentration in enumerate(alpha):
        check_alpha(concentration, f"alpha[{index}]")
    sizes = members(clients, groups, group_sizes)
    minimum = np.maximum(SMALLEST_GROUP * len(dataset) / groups, sizes * split.min_samples)
    class_sizes = np.bincount(dataset.targets, minlength=dataset.num_classes)
    group_counts = _draw_groups(
        class_sizes, minimum, alpha[0], generator(seed, "partition", "groups")
    )
    counts = [
        raise_to_minimum(
            dirichlet_counts(
                group_counts[group],
                int(sizes[group]),
                alpha[1],
                generator(seed, "partition", "group", str(group)),
            ),
            split.min_samples,
        )
        for group in range(groups)
    ]
    shares = deal(dataset, np.concatenate(counts), seed, split.native_test)
    labels = np.repeat(np.arange(groups), sizes).tolist()
    return Assembly(name="two-stage-dirichlet", seed=seed, split=split).build(
        dataset, shares, labels
    )


@with_checks
def dirichlet(
    dataset: Dataset,
    clients: int = 40,
    alpha: float = 0.1,
    seed: int = 0,
    **options: Unpack[SplitOptions],
) -> Partition:
    """Label skew by client, without groups.

    Each class is divided among the clients with shares from Dir(alpha). Clients below `min_samples`
    receive samples of the largest clients. Each sample is used once.

    Args:
        dataset: data set to partition.
        clients: number of clients.
        alpha: concentration; smaller values give more skew.
        seed: seed of the partition.
        **options: `test_fraction`, `min_samples`, ...; see `experiments.partitions.Split`.

    Raises:
        ValueError: an argument is out of range, or there are too few samples.

    References:
        Hsu, Qi, Brown (2019), "Measuring the effects of non-identical data distribution".
    """
    split = Split(**options)
    check_clients(dataset, clients, split)
    check_alpha(alpha)
    class_sizes = np.bincount(dataset.targets, minlength=dataset.num_classes)
    counts = dirichlet_counts(class_sizes, clients, alpha, generator(seed, "partition", "clients"))
    raised = raise_to_minimum(counts, split.min_samples)
    shares = deal(dataset, raised, seed, split.native_test)
    return Assembly(name="dirichlet", seed=seed, split=split).build(dataset, shares)


@with_checks
def label_proportions(
    dataset: Dataset,
    groups: int | None = None,
    clients: int = 40,
    alpha: float = 0.1,
    seed: int = 0,
    group_sizes: tuple[int, ...] | None = None,
    **options: Unpack[SplitOptions],
) -> Partition:
    """Class proportions of each client, or of each group of clients, from a Dirichlet distribution.

    A client's samples have the classes in the proportions p ~ Dir(alpha), and all clients are of
    one size: the largest for which no class runs out. Other samples are left out. `dirichlet`
    divides each class among clients instead, which uses all samples.

    Args:
        dataset: data set to partition; each sample belongs to at most one client.
        groups: number of groups whose clients have the same proportions; None for proportions of
            each client, without groups.
        clients: number of clients.
        alpha: concentration; smaller values give more skew.
        seed: seed of the partition.
        group_sizes: number of clients of each group; even by default.
        **options: `test_fraction`, `min_samples`, ...; see `experiments.partitions.Split`.

    Raises:
        ValueError: an argument is out of range, or a client cannot get `min_samples` samples.

    References:
        "A Bayesian framework for clustered federated learning", appendix D.2; Li, Diao, Chen, He
        (2022), "Federated learning on non-IID data silos: an experimental study".
    """
    split = Split(**options)
    check_clients(dataset, clients, split, clients if groups is None else groups)
    check_alpha(alpha)
    sizes = members(clients, clients if groups is None else groups, group_sizes)
    random = generator(seed, "partition", "proportions")
    shares = random.dirichlet(np.full(dataset.num_classes, alpha), size=len(sizes))
    class_sizes = np.bincount(dataset.targets, minlength=dataset.num_classes)
    each = proportioned(class_sizes, shares, sizes)
    if each[0].sum() < split.min_samples:
        raise ValueError(
            f"min_samples={split.min_samples}: with alpha={alpha:g} the scarcest class leaves "
            f"{each[0].sum()} samples to each of clients={clients}; use a larger alpha or fewer "
            "clients"
        )
    counts = np.repeat(each, sizes, axis=0)
    labels = np.repeat(np.arange(len(sizes)), sizes).tolist()
    shares_of_rows = deal(dataset, counts, seed, split.native_test)
    return Assembly(name="label-proportions", seed=seed, split=split).build(
        dataset, shares_of_rows, None if groups is None else labels
    )


def _draw_groups(
    class_sizes: Counts, minimum: NDArray[np.float64], alpha: float, random: Generator
) -> Counts:
    for _ in range(MAX_DRAWS):
        counts = dirichlet_counts(class_sizes, len(minimum), alpha, random)
        if (counts.sum(axis=1) >= minimum).all():
            return counts
    raise ValueError(
        f"groups={len(minimum)} with alpha[0]={alpha:g} over {len(class_sizes)} classes: none of "
        f"{MAX_DRAWS} draws gave every group at least {int(minimum.max())} of {class_sizes.sum()} "
        "samples; use fewer groups or clients, or a larger alpha[0]"
    )
