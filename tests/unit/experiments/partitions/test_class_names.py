"""Names of classes go from a data set to its clients, unless their classes are changed."""

from dataclasses import replace

import numpy as np
import pytest
import torch

from bcfl import Federation, methods
from experiments import partitions
from experiments.datasets import Dataset
from experiments.partitions.catalogue import PARTITIONS

NAMES = tuple(f"flower {number}" for number in range(10))
CHANGED = [
    ("shifted-labels", {}),
    ("merged-classes", {}),
    ("label-halves", {"random_other_labels": True}),
    *[
        ("stream", {"steps": 3, "concept": one})
        for one in ("shifted-labels", "merged-labels", "random-label-halves")
    ],
]
KEPT = [
    *[(name, {}) for name in ("iid", "rotated", "n-class", "ocfl", "noisy", "label-halves")],
    ("ocfl", {"disjoint": False}),
    *[("stream", {"steps": 3, "concept": one}) for one in ("label-halves", "noisy", "rotations")],
]


@pytest.fixture(scope="module")
def flowers():
    return Dataset(
        name="mnist",  # of known noise
        inputs=np.random.default_rng(0).random((2000, 1, 4, 4), dtype=np.float32),
        targets=np.arange(2000) % 10,
        num_classes=10,
        class_names=NAMES,
    )


@pytest.mark.parametrize(("name", "options"), KEPT)
def test_clients_have_the_names_of_the_classes(flowers, name, options):
    for data in PARTITIONS[name](flowers, **options):
        assert data.classes == NAMES


@pytest.mark.parametrize(("name", "options"), CHANGED)
def test_clients_whose_classes_are_changed_have_none(flowers, name, options):
    partition = PARTITIONS[name](flowers, **options)
    assert {data.classes for data in partition} == {()}
    assert partition.class_names == NAMES, "of the data set"


def test_names_that_cannot_tell_classes_apart_are_left_out(flowers):
    twice = replace(flowers, class_names=("rose",) * 10)
    sets = np.eye(10, dtype=bool)
    sets[0] = True
    several = replace(flowers, label_sets=sets)
    for dataset in (twice, several, replace(flowers, class_names=None)):
        assert partitions.iid(dataset, clients=3)[0].classes == ()


def test_a_new_client_may_be_given_names(flowers):
    network = torch.nn.Sequential(torch.nn.Flatten(), torch.nn.Linear(16, 10))
    clients = partitions.iid(flowers, clients=3)
    run = Federation(clients, network, methods.build("fedavg"), seed=0).run(rounds=1)
    assert run.classes == NAMES
    found = [
        run.predict_new(flowers.inputs[:4], adaptation=(flowers.inputs[:4], labels)).mean
        for labels in (list(NAMES[:4]), [0, 1, 2, 3])
    ]
    assert np.array_equal(*found)
