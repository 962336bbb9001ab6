"""Data sets to partition."""

import numpy as np
import pytest

from experiments import datasets
from experiments.datasets import Dataset


@pytest.fixture(scope="session")
def digits():
    return datasets.load("optdigits")


@pytest.fixture(scope="session")
def labelled():
    """Builds samples whose only input is their row number."""

    def build(targets, classes=None):
        targets = np.asarray(targets, dtype=np.int64)
        rows = np.arange(len(targets), dtype=np.float32)[:, None]
        return Dataset(
            name="labelled",
            inputs=rows,
            targets=targets,
            num_classes=classes or int(targets.max()) + 1,
        )

    return build


@pytest.fixture(scope="session")
def balanced(labelled):
    """Builds such samples with equally many of each class."""
    return lambda per_class, classes=10: labelled(np.repeat(np.arange(classes), per_class))
