"""Divisions of a data set at the edges of their arguments use every sample at most once.

Reported to neighbouring projects: Dirichlet draws that never end, and priors that are NaN.
"""

import sys
from contextlib import contextmanager

import numpy as np
import pytest

from experiments import partitions
from experiments.datasets import DataError, Dataset
from experiments.partitions.allocation import raise_to_minimum


def samples(sizes, width=4, native_test=0):
    """A shuffled data set of so many samples of each class."""
    random = np.random.default_rng(0)
    targets = random.permutation(np.repeat(np.arange(len(sizes)), sizes)).astype(np.int64)
    inputs = random.random((len(targets), width)).astype(np.float32)
    return Dataset(
        name="toy",
        inputs=inputs,
        targets=targets,
        num_classes=len(sizes),
        num_native_test=native_test,
    )


def rows_of(partition):
    return np.concatenate([rows for views in partition.indices.values() for rows in views.values()])


def assert_valid(partition, dataset, clients, smallest):
    rows = rows_of(partition)
    assert len(partition) == clients
    assert len(np.unique(rows)) == len(rows)
    assert len(rows) + partition.num_left_out == len(dataset)
    assert partition.class_counts().sum(axis=1).min() >= smallest
    assert all(len(data.views["train"]) > 0 for data in partition)
    for data in partition:
        for view, rows in partition.indices[data.client].items():
            np.testing.assert_array_equal(data.views[view].targets, dataset.targets[rows])


EVEN, SKEWED = (400,) * 10, (2000, 3, 1, 500)


@pytest.mark.parametrize(
    "options",
    [
        {"clients": 40, "alpha": 1e-3},
        {"clients": 40, "alpha": 1e6},
        {"clients": 400, "alpha": 0.05, "min_samples": 10},
        {"clients": 40, "alpha": 1e-3, "min_samples": 1},
        {"clients": 1},
        {"clients": 40, "samples_per_client": 8},
        {"clients": 40, "test_fraction": 0.999},
    ],
    ids=str,
)
def test_dirichlet_is_valid_at_its_edges(options):
    dataset = samples(EVEN)
    found = partitions.dirichlet(dataset, **options)
    assert_valid(found, dataset, options["clients"], options.get("min_samples", 8))


@pytest.mark.parametrize(
    "options",
    [
        {"clients": 400, "min_samples": 11},
        *({"alpha": alpha} for alpha in (0, float("nan"), float("inf"), "0.1")),
        {"test_fraction": float("nan")},
        {"seed": -1},
        {"seed": 1.0},
        {"clients": 2.5},
    ],
    ids=str,
)
def test_dirichlet_refuses_what_it_cannot_do(options):
    with pytest.raises((TypeError, ValueError)):
        partitions.dirichlet(samples(EVEN), **options)


@pytest.mark.parametrize(
    ("divide", "clients"),
    [
        (lambda data: partitions.dirichlet(data, clients=20, alpha=0.1), 20),
        (lambda data: partitions.two_stage_dirichlet(data, groups=4, clients=12), 12),
        (lambda data: partitions.iid(data, clients=10), 10),
        (lambda data: partitions.rotated(data, clients=10), 10),
    ],
    ids=["dirichlet", "two-stage", "iid", "rotated"],
)
def test_classes_of_one_and_three_samples_are_divided(divide, clients):
    dataset = samples(SKEWED, width=16)
    dataset = Dataset(
        name="toy",
        inputs=dataset.inputs.reshape(-1, 1, 4, 4),
        targets=dataset.targets,
        num_classes=4,
    )
    assert_valid(divide(dataset), dataset, clients, 8)


@pytest.mark.parametrize("name", ["dirichlet", "iid", "n_class"])
def test_few_samples_of_a_native_test_leave_clients_without(name):
    dataset = samples((100,) * 10, native_test=5)
    divide = getattr(partitions, name)
    found = divide(dataset, clients=40, native_test=True, min_samples=2)
    assert_valid(found, dataset, 40, 1)
    assert 35 <= sum(not len(data.views.get("test", ())) for data in found) < 40


@pytest.mark.parametrize("name", ["dirichlet", "n_class"])
def test_a_class_without_samples_is_nowhere(name):
    sizes = (100, 100, 0, 100)
    dataset = samples(sizes)
    found = getattr(partitions, name)(dataset, clients=10)
    assert_valid(found, dataset, 10, 8)
    assert found.class_counts()[:, 2].sum() == 0


@pytest.mark.parametrize(
    "targets",
    [
        np.arange(1, 11),
        np.array([0, 1, 3]),
        np.array([0.0, 0.5]),
        np.array([0.0, np.inf]),
    ],
    ids=["from-one", "gap", "fractions", "infinite"],
)
def test_labels_that_are_no_classes_are_refused(targets):
    with pytest.raises(DataError):
        Dataset.from_arrays("own", (np.zeros((len(targets), 2)), targets))


@contextmanager
def counted_calls():
    """Count the calls of functions, those of built-in ones included; a list of one number."""
    count, before = [0], sys.getprofile()

    def on_event(frame, event, argument):
        count[0] += event in ("call", "c_call")

    sys.setprofile(on_event)
    try:
        yield count
    finally:
        sys.setprofile(before)


def test_the_work_of_reaching_a_minimum_grows_with_the_samples_that_are_moved():
    """Not with moved samples times clients: 4,000 clients share 200,000 samples."""
    shares = np.random.default_rng(0).dirichlet(np.full(4000, 1e-3), size=10)
    counts = np.floor(20_000 * shares.T).astype(np.int64)
    with counted_calls() as calls:
        found = raise_to_minimum(counts, 40)
    moved = np.maximum(found - counts, 0).sum()
    assert calls[0] < 10 * (moved + len(counts))
    assert found.sum(axis=1).min() >= 40
    assert found.min() >= 0
    np.testing.assert_array_equal(found.sum(axis=0), counts.sum(axis=0))
