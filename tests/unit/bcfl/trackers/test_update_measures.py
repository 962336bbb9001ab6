"""The clustering temperature of a round, from the updates of any method."""

from types import SimpleNamespace

import numpy as np
import pytest
import torch

from bcfl.trackers.update_measures import LocalUpdate, temperature_of


def round_of(vectors, origin):
    """Updates that move an origin by the given vectors."""
    start = SimpleNamespace(key="start", mean=lambda model: origin)
    return [
        LocalUpdate(
            SimpleNamespace(start="start"),
            SimpleNamespace(mean=origin + torch.tensor(vector, dtype=origin.dtype)),
            start,
        )
        for vector in vectors
    ]


CONTEXT = SimpleNamespace(seed=0, round=3, model=None)


def by_pairs(vectors):
    """T = |Gamma|_F / (2 sqrt(n (n - 1))) with Gamma_ij = 1 - cos, pair by pair."""
    total, count = 0.0, len(vectors)
    for i, first in enumerate(vectors):
        for j, second in enumerate(vectors):
            if i != j:
                cosine = np.dot(first, second) / np.linalg.norm(first) / np.linalg.norm(second)
                total += (1 - cosine) ** 2
    return np.sqrt(total) / (2 * np.sqrt(count * (count - 1)))


def test_temperature_is_the_norm_of_the_distances():
    vectors = [[1.0, 0.0], [1.0, 1.0], [-1.0, 2.0]]
    found = temperature_of(round_of(vectors, torch.tensor([5.0, -3.0])), CONTEXT)
    assert found["clustering_temperature"] == pytest.approx(by_pairs(vectors), abs=1e-6)
    assert found["clustering_temperature"] == pytest.approx(0.469730, abs=1e-5)


def test_one_update_or_a_diverged_one_has_no_temperature():
    assert temperature_of(round_of([[1.0, 0.0]], torch.zeros(2)), CONTEXT) == {}
    vectors = [[1.0, 0.0], [float("nan"), 1.0]]
    assert temperature_of(round_of(vectors, torch.zeros(2)), CONTEXT) == {}


def test_of_many_updates_a_random_subset_is_taken():
    vectors = np.random.default_rng(0).normal(size=(300, 5)).tolist()
    updates = round_of(vectors, torch.zeros(5))
    found = temperature_of(updates, CONTEXT)["clustering_temperature"]
    assert found == pytest.approx(by_pairs(vectors), abs=0.03)
    assert found == temperature_of(updates, CONTEXT)["clustering_temperature"]
