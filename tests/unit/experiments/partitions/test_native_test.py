"""Groups of given sizes, and test views from the original test set."""

import numpy as np
import pytest

from experiments import partitions
from experiments.datasets import Dataset

SKEWED = (10, 10, 10, 10, 20, 30, 30, 70)


def with_tests(train_per_class, test_per_class, classes=10):
    """Samples whose only input is their row number, the original test set at the end."""
    labels = np.arange(classes)
    targets = np.concatenate([labels.repeat(train_per_class), labels.repeat(test_per_class)])
    rows = np.arange(len(targets), dtype=np.float32)[:, None]
    return Dataset(
        name="two-parts",
        inputs=rows,
        targets=targets,
        num_classes=classes,
        num_native_test=classes * test_per_class,
    )


@pytest.fixture(scope="module")
def like_mnist():
    return with_tests(6000, 1000)


def parts(partition):
    train = [len(views["train"]) for views in partition.indices.values()]
    test = [len(views.get("test", ())) for views in partition.indices.values()]
    return np.array(train), np.array(test)


@pytest.mark.parametrize(
    ("name", "options"),
    [
        ("two-stage-dirichlet", {"groups": 10}),
        ("dirichlet", {"alpha": 0.1}),
        ("n-class", {"classes_per_client": 2}),
        ("cluster-n-class", {"groups": 10, "classes": [3, 2]}),
    ],
)
def test_two_hundred_clients_hold_each_sample_once(like_mnist, name, options):
    partition = partitions.build(name, like_mnist, {**options, "clients": 200, "native_test": True})
    train, test = parts(partition)
    assert (train.sum(), test.sum(), partition.num_left_out) == (60_000, 10_000, 0)
    for views in partition.indices.values():
        assert views["train"].max() < 60_000 <= views.get("test", np.array([60_000])).min()
    assert (train + test).min() >= 8


@pytest.mark.parametrize("seed", [0, 1, 2])
def test_two_stage_dirichlet_of_the_thesis(like_mnist, seed):
    partition = partitions.two_stage_dirichlet(
        like_mnist, groups=10, clients=200, seed=seed, native_test=True
    )
    train, test = parts(partition)
    assert 250 <= np.median(train) <= 320
    assert train.min() >= 38
    assert test.min() >= 6
    shares = partition.class_counts() / partition.class_counts().sum(axis=1, keepdims=True)
    assert 3.5 <= (shares > 0.01).sum(axis=1).mean() <= 5.5


def test_training_and_test_samples_have_the_same_classes(like_mnist):
    partition = partitions.dirichlet(like_mnist, clients=20, alpha=0.1, native_test=True)
    for data in partition:
        train, test = (
            np.bincount(data.views[view].targets.numpy(), minlength=10) for view in data.views
        )
        assert np.abs(test - train / 6).max() <= 2


def test_n_class_of_the_thesis_is_balanced(like_mnist):
    partition = partitions.cluster_n_class(like_mnist, groups=10, clients=200, native_test=True)
    held = partition.class_counts() > 0
    by_group = held.reshape(10, 20, 10).any(axis=1)
    assert by_group.sum(axis=0).tolist() == [3] * 10
    assert by_group.sum(axis=1).tolist() == [3] * 10
    within = np.sort(held.reshape(10, 20, 10).sum(axis=1), axis=1)[:, -3:]
    assert within.tolist() == [[13, 13, 14]] * 10


def test_data_without_a_test_set_have_no_native_test():
    with pytest.raises(
        ValueError, match="native_test: dataset 'two-parts' has no original test set"
    ):
        partitions.dirichlet(with_tests(100, 0), clients=4, native_test=True)
    with pytest.raises(ValueError, match="native_test must be true or false"):
        partitions.dirichlet(with_tests(100, 0), clients=4, native_test="yes")


def test_a_cap_leaves_tests_in_proportion(like_mnist):
    partition = partitions.iid(like_mnist, clients=10, native_test=True, samples_per_client=700)
    train, test = parts(partition)
    assert (train + test == 700).all()
    assert abs(test.mean() - 100) < 15


def test_groups_of_given_sizes(like_mnist):
    partition = partitions.two_stage_dirichlet(
        like_mnist, groups=8, clients=190, group_sizes=SKEWED, seed=1
    )
    assert np.bincount(list(partition.groups.values())).tolist() == list(SKEWED)
    assert partition.num_samples == 70_000
    assert len(partition) == 190


@pytest.mark.parametrize(
    ("sizes", "message"),
    [
        ((10, 10), "groups=4 numbers that sum to clients=40, got 2 that sum to 20"),
        ((10, 10, 10, 11), "got 4 that sum to 41"),
        ((0, 10, 10, 20), "group_sizes must be a whole number of at least 1, got 0"),
    ],
)
def test_group_sizes_that_do_not_fit(like_mnist, sizes, message):
    with pytest.raises(ValueError, match=message):
        partitions.two_stage_dirichlet(like_mnist, group_sizes=sizes)
