"""Partitions with a fixed number of classes per client."""

import numpy as np
import pytest

from experiments import partitions
from experiments.partitions.class_sets import draw_class_sets


def test_class_sets_are_balanced():
    random = np.random.default_rng(0)
    usable = np.ones(10, dtype=bool)
    for _ in range(20):
        holds = draw_class_sets(10, 3, usable, random)
        assert holds.sum(axis=1).tolist() == [3] * 10
        assert holds.sum(axis=0).tolist() == [3] * 10
        assert sorted(draw_class_sets(20, 2, usable[:3], random).sum(axis=0)) == [13, 13, 14]
    assert draw_class_sets(3, 10, usable, random).all()


def test_class_sets_differ_between_draws_and_pair_all_classes():
    pairs = set()
    for seed in range(60):
        holds = draw_class_sets(5, 2, np.ones(5, dtype=bool), np.random.default_rng(seed))
        pairs |= {tuple(np.flatnonzero(row).tolist()) for row in holds}
    assert len(pairs) == 10


def test_n_class_divides_a_class_evenly_among_its_clients(balanced):
    counts = partitions.n_class(balanced(2000, classes=3), clients=20).class_counts()
    assert ((counts > 0).sum(axis=1) == 2).all()
    column = counts[:, (counts > 0).sum(axis=0).tolist().index(13)]
    assert sorted(column[column > 0].tolist()) == [153] * 2 + [154] * 11


def test_cluster_n_class_holds_classes_by_group_then_client(digits):
    partition = partitions.cluster_n_class(digits, groups=5, clients=20, classes=(4, 2), seed=3)
    held = partition.class_counts() > 0
    assert (held.sum(axis=1) == 2).all()
    by_group = held.reshape(5, 4, 10).any(axis=1)
    assert (by_group.sum(axis=1) == 4).all()
    assert len(np.unique(by_group, axis=0)) == 5
    assert partition.num_samples == 1797


def test_classes_without_clients_are_refused_or_reported(balanced):
    with pytest.raises(ValueError, match="clients=4 with classes_per_client=2 can hold 8 of 10"):
        partitions.n_class(balanced(50), clients=4)
    partition = partitions.n_class(balanced(50), clients=4, drop_unused=True)
    assert partition.left_out == {"of classes without clients": 100}
    assert sorted(partition.class_counts().sum(axis=0)) == [0, 0] + [50] * 8
    with pytest.raises(ValueError, match=r"groups=3 with classes=\(3, 2\) can hold 9 of 10"):
        partitions.cluster_n_class(balanced(50), groups=3)
    with pytest.raises(ValueError, match="1 clients of a group"):
        partitions.cluster_n_class(balanced(50), groups=4, clients=4)


def test_n_class_repairs_within_the_classes_of_a_client(labelled):
    data = labelled(np.repeat([0, 1, 2, 3], [400, 400, 400, 5]))
    partition = partitions.n_class(data, clients=8, classes_per_client=2, min_samples=20)
    counts = partition.class_counts()
    assert (counts > 0).sum(axis=1).max() <= 2
    assert counts.sum(axis=1).min() >= 20
    scarce = labelled(np.repeat([0, 1], [400, 5]))
    with pytest.raises(ValueError, match="min_samples=20 cannot be reached"):
        partitions.n_class(scarce, clients=4, classes_per_client=1, min_samples=20)
