"""Partitions by source domain, by class proportions of a client, and by size."""

import numpy as np
import pytest

from experiments import datasets, partitions
from experiments.datasets import DataError, Dataset


def numbered(name, samples, tests, offset, classes=10):
    """Samples whose input is their number plus an offset."""
    inputs = (offset + np.arange(samples, dtype=np.float32))[:, None]
    targets = np.arange(samples) % classes
    return Dataset(
        name=name, inputs=inputs, targets=targets, num_classes=classes, num_native_test=tests
    )


@pytest.fixture
def digits_five():
    parts = {"mt": numbered("mt", 100, 20, 0), "sv": numbered("sv", 60, 10, 1000)}
    return datasets.joined("digits-five", parts)


def test_domains_are_joined_with_the_original_test_samples_last(digits_five):
    assert len(digits_five) == 160
    assert digits_five.num_native_test == 30
    assert digits_five.domain_names == ("mt", "sv")
    inputs = digits_five.inputs[:, 0]
    assert ((inputs >= 1000) == (digits_five.domains == 1)).all()
    assert set(inputs[-30:]) == {*range(80, 100), *range(1050, 1060)}
    with pytest.raises(DataError, match="must agree in input shape and number of classes"):
        datasets.joined("odd", {"a": numbered("a", 20, 0, 0), "b": numbered("b", 20, 0, 0, 5)})
    with pytest.raises(DataError, match=r"2 domain_names 'a', 'b', .* got 2 for sample 2"):
        Dataset(
            name="odd",
            inputs=np.zeros((4, 1), np.float32),
            targets=np.arange(4),
            num_classes=4,
            domains=np.array([0, 1, 2, 0]),
            domain_names=("a", "b"),
        )


@pytest.mark.parametrize("native", [False, True])
def test_each_client_has_samples_of_one_domain(digits_five, native):
    """Feature (2, 2): two groups of two clients."""
    options = {"clients": 4, "seed": 1, "native_test": native}
    partition = partitions.build("by-domain", digits_five, options)
    assert list(partition.groups.values()) == [0, 0, 1, 1]
    assert partition.num_samples == 160
    for client, size in zip(partition, (50, 50, 30, 30), strict=True):
        rows = np.concatenate(list(partition.indices[client.client].values()))
        assert (digits_five.domains[rows] == client.group).all()
        assert len(rows) == size
        if native:
            assert (partition.indices[client.client]["test"] >= 130).all()
    uneven = partitions.by_domain(digits_five, clients=4, group_sizes=(3, 1))
    assert list(uneven.groups.values()) == [0, 0, 0, 1]
    with pytest.raises(ValueError, match="clients of domain 'sv' require 70 samples, it has 60"):
        partitions.by_domain(digits_five, clients=4, min_samples=35)
    with pytest.raises(ValueError, match="has no domains"):
        partitions.by_domain(numbered("one", 100, 0, 0))


def test_clients_of_a_domain_without_original_test_samples_are_tested_too():
    parts = {"mt": numbered("mt", 100, 20, 0), "sc": numbered("sc", 40, 0, 1000)}
    joined = datasets.joined("like", parts)
    partition = partitions.by_domain(joined, clients=4, native_test=True, test_fraction=0.25)
    tests = [client.num_samples["test"] for client in partition]
    assert sum(tests[:2]) == 20
    assert tests[2:] == [5, 5]


def test_proportions_of_classes_are_those_of_the_group():
    data = numbered("plain", 5000, 0, 0)
    partition = partitions.label_proportions(data, groups=3, clients=6, alpha=1.0, seed=4)
    counts = partition.class_counts()
    assert len(set(counts.sum(axis=1))) == 1
    assert (counts[0::2] == counts[1::2]).all()
    assert (counts.sum(axis=0) <= 500).all()
    assert counts.sum(axis=0).max() >= 490, "as many samples as the scarcest class allows"
    assert list(partition.groups.values()) == [0, 0, 1, 1, 2, 2]


def test_proportions_of_clients_follow_a_dirichlet_distribution():
    """Dir(alpha) over l classes: mean 1 / l, variance (l - 1) / (l^2 (l alpha + 1))."""
    data = numbered("plain", 200_000, 0, 0, classes=5)
    partition = partitions.label_proportions(data, clients=400, alpha=0.5, seed=0)
    counts = partition.class_counts()
    shares = counts / counts.sum(axis=1, keepdims=True)
    assert partition.groups is None
    np.testing.assert_allclose(shares.mean(axis=0), 0.2, atol=0.04)
    np.testing.assert_allclose(shares.var(axis=0), 4 / (25 * 3.5), rtol=0.25)
    with pytest.raises(ValueError, match="the scarcest class leaves"):
        partitions.label_proportions(data, clients=400, alpha=0.001, min_samples=499)


def test_sizes_follow_a_dirichlet_distribution():
    data = numbered("plain", 40_000, 0, 0)
    partition = partitions.build("skewed-sizes", data, {"clients": 100, "alpha": 0.5, "seed": 0})
    sizes = np.array([sum(client.num_samples.values()) for client in partition])
    assert sizes.sum() == len(data)
    assert sizes.min() >= 8
    shares = (sizes - 8) / (sizes - 8).sum()
    assert shares.var() == pytest.approx(99 / (1e4 * 51), rel=0.3)
    large = partition.class_counts()[sizes.argmax()]
    np.testing.assert_allclose(large / large.sum(), 0.1, atol=0.03)
    with pytest.raises(ValueError, match="alpha must be a number"):
        partitions.skewed_sizes(data, alpha=0)
