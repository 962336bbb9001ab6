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
too_long = pytest.mark.xfail(
    strict=True,
    raises=AssertionError,
    reason="imbalanced clients have fewer samples, and as many steps as balanced ones",
)


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


@pytest.mark.parametrize(
    "name", [pytest.param(name, marks=too_long) if "imbalanced" in name else name for name in NAMES]
)
def test_three_local_epochs(counts_of_mnist, name):
    loaded = scenario.load(name)
    options = {**loaded.partition.options, "seed": 0}
    clients = build(loaded.partition.name, counts_of_mnist, options)
    samples = np.mean([len(client.views["train"]) for client in clients])
    epochs = loaded.training.local_steps * loaded.training.batch_size / samples
    assert epochs == pytest.approx(3, abs=0.5)
