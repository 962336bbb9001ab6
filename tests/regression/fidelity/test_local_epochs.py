"""Scenarios of one-shot clustering train for the three local epochs that they state.

"One-shot clustering for federated learning", section IV. Class counts are those of MNIST.
"""

import numpy as np
import pytest

from experiments.config import scenario
from experiments.datasets import Dataset
from experiments.partitions import build

TRAIN = (5923, 6742, 5958, 6131, 5842, 5421, 5918, 6265, 5851, 5949)
TEST = (980, 1135, 1032, 1010, 982, 892, 958, 1028, 974, 1009)
NAMES = [
    f"ocfl-mnist-{overlap}-{balance}-{clients}"
    for overlap in ("separate", "overlapping")
    for balance in ("balanced", "imbalanced")
    for clients in (15, 30)
]


@pytest.fixture(scope="module")
def counts_of_mnist():
    """Labels as in MNIST, with inputs of one number."""
    rng = np.random.default_rng(0)
    targets = np.concatenate(
        [rng.permutation(np.repeat(np.arange(10), counts)) for counts in (TRAIN, TEST)]
    )
    inputs = np.zeros((len(targets), 1), dtype=np.float32)
    return Dataset(
        name="mnist",
        inputs=inputs,
        targets=targets.astype(np.int64),
        num_classes=10,
        num_native_test=sum(TEST),
    )


@pytest.mark.parametrize("name", NAMES)
def test_three_local_epochs(counts_of_mnist, name):
    loaded = scenario.load(name)
    options = {**loaded.partition.options, "seed": 0}
    clients = build(loaded.partition.name, counts_of_mnist, options)
    objective = loaded.build("fedavg").policy.objective
    for client in clients:
        samples = len(client.views["train"])
        epochs = objective.steps(samples) * objective.batch_size / samples
        assert epochs == pytest.approx(3, abs=0.1)


@pytest.mark.parametrize("name", [name for name in NAMES if "imbalanced" in name])
def test_imbalanced_clients_have_the_published_number_of_samples(counts_of_mnist, name):
    """Authors: an even share with replacement, without duplicates, 70 % of it for training.

    No sample on which a client is tested is a training sample of any client.
    """
    loaded = scenario.load(name)
    options = {**loaded.partition.options, "seed": 0}
    ours = build(loaded.partition.name, counts_of_mnist, options)
    published = build(
        "shared-ocfl", counts_of_mnist, {k: options[k] for k in options if k != "disjoint"}
    )
    sizes = [[len(client.views["train"]) for client in clients] for clients in (ours, published)]
    assert np.mean(sizes[0]) == pytest.approx(np.mean(sizes[1]), rel=0.01)
    views = [
        np.concatenate([ours.indices[client.client][view] for client in ours])
        for view in ("train", "test")
    ]
    assert not np.intersect1d(*views).size
