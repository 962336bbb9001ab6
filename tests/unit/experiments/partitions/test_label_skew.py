"""Dirichlet partitions, with and without groups."""

import numpy as np
import pytest

from experiments import partitions


def test_two_stage_dirichlet_makes_groups_that_differ_and_clients_that_do_not(balanced):
    partition = partitions.two_stage_dirichlet(balanced(700), clients=40, seed=2)
    shares = partition.class_counts() / partition.class_counts().sum(axis=1, keepdims=True)
    distance = np.abs(shares[:, None] - shares[None]).sum(axis=2) / 2
    group = np.repeat(range(4), 10)
    same = group[:, None] == group[None]
    assert distance[same].max() < distance[~same].min()


def two_stage_restated(random):
    """Shares that aren't rounded, of 10 groups of 20 clients and ten classes of 700."""
    while True:
        groups = np.array([random.dirichlet([0.1] * 10) for _ in range(10)]) * 700
        if groups.sum(axis=0).min() > 0.3 * 700:
            break
    clients = [[random.dirichlet([10] * 20) * groups[c, g] for c in range(10)] for g in range(10)]
    return np.concatenate([np.transpose(of_group) for of_group in clients])


def size_statistics(counts):
    sizes = counts.sum(axis=1)
    return [np.median(sizes), sizes.std(), (counts > 0.03 * sizes[:, None]).sum(axis=1).mean()]


def test_two_stage_dirichlet_has_the_statistics_of_a_plain_restatement(balanced):
    data, draws = balanced(700), 40
    ours = [
        size_statistics(
            partitions.two_stage_dirichlet(data, groups=10, clients=200, seed=s).class_counts()
        )
        for s in range(draws)
    ]
    random = np.random.default_rng(0)
    theirs = [size_statistics(two_stage_restated(random)) for _ in range(draws)]
    error = np.sqrt((np.var(ours, axis=0) + np.var(theirs, axis=0)) / draws)
    assert (np.abs(np.mean(ours, axis=0) - np.mean(theirs, axis=0)) < 4 * error).all()


@pytest.mark.parametrize("seed", range(5))
def test_no_group_gets_less_than_three_tenths_of_its_even_share(seed, balanced):
    counts = partitions.two_stage_dirichlet(balanced(50), groups=5, clients=10, seed=seed)
    by_group = counts.class_counts().reshape(5, 2, 10).sum(axis=(1, 2))
    assert by_group.min() >= 0.3 * 500 / 5


def test_groups_of_unequal_numbers_of_clients(balanced):
    partition = partitions.two_stage_dirichlet(balanced(50), groups=3, clients=8)
    assert list(partition.groups.values()) == [0, 0, 0, 1, 1, 1, 2, 2]


def test_repair_moves_samples_inside_a_group_only(digits):
    for seed in range(20):
        lax = partitions.two_stage_dirichlet(digits, seed=seed, min_samples=1, alpha=(1, 0.1))
        strict = partitions.two_stage_dirichlet(digits, seed=seed, min_samples=9, alpha=(1, 0.1))
        if (lax.class_counts().reshape(4, 10, 10).sum(axis=(1, 2)) >= 135).all():
            before = lax.class_counts().reshape(4, 10, 10).sum(axis=1)
            after = strict.class_counts().reshape(4, 10, 10).sum(axis=1)
            np.testing.assert_array_equal(before, after)
            assert strict.class_counts().sum(axis=1).min() >= 9
            assert lax.class_counts().sum(axis=1).min() < 9


def test_dirichlet_of_small_alpha_gives_clients_few_classes(balanced):
    few = partitions.dirichlet(balanced(200), clients=10, alpha=0.05).class_counts()
    many = partitions.dirichlet(balanced(200), clients=10, alpha=100).class_counts()
    assert (few > 0).sum() < 60
    assert (many > 0).all()


def test_more_clients_than_a_small_alpha_fills_ends_and_leaves_none_empty(balanced):
    partition = partitions.dirichlet(balanced(40), clients=100, alpha=0.001, min_samples=4)
    assert partition.class_counts().sum(axis=1).tolist() == [4] * 100
