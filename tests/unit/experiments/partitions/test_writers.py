"""A client for each writer, by the name of the writer where there is one."""

from dataclasses import replace

import numpy as np
import pytest

from experiments import datasets, partitions
from experiments.datasets import Dataset


@pytest.fixture(scope="module")
def images():
    targets = np.arange(2000) % 10
    inputs = np.random.default_rng(0).random((2000, 1, 4, 4)).astype(np.float32)
    return Dataset(name="images", inputs=inputs, targets=targets, num_classes=10)


def test_each_writer_is_a_client(images):
    writers = np.repeat(np.arange(100), 20)
    known = Dataset(
        name="written",
        inputs=images.inputs,
        targets=images.targets,
        num_classes=10,
        writers=writers,
    )
    partition = partitions.writers(known, clients=12)
    assert len(partition) == 12
    found = [
        set(writers[np.concatenate(list(views.values()))]) for views in partition.indices.values()
    ]
    assert all(len(one) == 1 for one in found)
    assert len(set.union(*found)) == 12
    assert partition.groups is None
    assert partition.num_samples == 240
    with pytest.raises(ValueError, match="has 0 writers of at least min_samples=21"):
        partitions.writers(known, clients=12, min_samples=21)


def clients_of(dataset, **options):
    return [data.client for data in partitions.writers(dataset, seed=1, **options)]


def test_clients_have_the_names_of_their_writers():
    x, y = np.random.default_rng(0).random((90, 3)), np.arange(90) % 2
    names = np.repeat(["z", "x", "y"], 30)
    dataset = datasets.from_numpy(x, y, writers=names)
    partition = partitions.writers(dataset, clients=2)
    assert [data.client for data in partition] == sorted(data.client for data in partition)
    for client, views in partition.indices.items():
        assert set(names[np.concatenate([*views.values()])]) == {client}
    assert clients_of(dataset, clients=3) == ["x", "y", "z"]
    turned = replace(dataset, writer_names=("z", "y", "x"))
    assert clients_of(turned, clients=3) == ["x", "y", "z"], "in the order of their names"
    assert clients_of(turned, clients=3) == clients_of(dataset, clients=3)


@pytest.mark.parametrize("names", [(), ("a", ""), ("a", "b\n")])
def test_clients_are_numbered_where_names_are_none_of_clients(images, names):
    written = replace(images, writers=np.arange(2000) % 2, writer_names=names)
    assert clients_of(written, clients=2) == ["client-00", "client-01"]


def test_writers_can_be_given(images):
    with pytest.raises(ValueError, match=r"unknown: dataclasses\.replace\(dataset, writers=\.\.\."):
        partitions.writers(images)
    given = replace(images, writers=np.arange(2000) % 40)
    assert len(partitions.writers(given)) == 20
    given = replace(images, writers=[*"ab"] * 1000)
    assert clients_of(given, clients=2) == ["a", "b"]


def test_domains_can_be_given(images):
    with pytest.raises(ValueError, match=r"no domains, .*joined .*\(dataset, domains="):
        partitions.by_domain(images)
    given = replace(images, domains=[*"ab"] * 1000)
    joined = datasets.joined("both", {"a": images, "b": images})
    for dataset in (given, joined):
        partition = partitions.by_domain(dataset)
        assert (partition.group_names, partition.num_groups) == (("a", "b"), 2)


def test_real_writers_where_there_are_any():
    from experiments import datasets

    try:
        mnist = datasets.load("mnist")
    except datasets.DataError:
        pytest.skip("no MNIST in the data directories")
    if mnist.writers is None:
        pytest.skip("nothing says who wrote MNIST")
    partition = partitions.writers(mnist, min_samples=50)
    assert len(partition) == 20
    assert min(sum(data.num_samples.values()) for data in partition) >= 50
