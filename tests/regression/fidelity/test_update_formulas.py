"""Clustering by updates against plain restatements.

"One-shot clustering for federated learning", equations 1 to 4; Sattler, Müller and Samek (2020) on
the optimal bipartition; Duan et al. (2021) on decomposed and mean cosine differences.
"""

import itertools

import numpy as np
import pytest
from sklearn.cluster import AffinityPropagation
from sklearn.metrics import adjusted_rand_score

from bcfl.policies.updates.bipartition import bipartition
from bcfl.policies.updates.clustering_temperature import clustering_temperature
from bcfl.policies.updates.update_clustering import AffinityClustering
from bcfl.policies.updates.update_similarity import (
    cosine_distances,
    decomposed_cosines,
    mean_cosine_differences,
    norm_of_mean,
)


@pytest.fixture(params=range(4))
def updates(request):
    rng = np.random.default_rng(request.param)
    return rng.normal(size=(int(rng.integers(3, 8)), 5))


def cosines(updates):
    directions = updates / np.linalg.norm(updates, axis=1, keepdims=True)
    return directions @ directions.T


@pytest.mark.parametrize("norm", [1.0, 2.0, 3.0])
def test_clustering_temperature(updates, norm):
    count = len(updates)
    distances = 1 - cosines(updates)
    np.fill_diagonal(distances, 0)
    bound = (count * (count - 1) * 2**norm) ** (1 / norm)
    right = (distances**norm).sum() ** (1 / norm) / bound
    measured = clustering_temperature(cosine_distances(updates @ updates.T), norm)
    assert measured == pytest.approx(right, rel=1e-12)


def test_bipartition_has_the_least_similarity_across(updates):
    similar, count = cosines(updates), len(updates)
    across = [
        similar[np.ix_(half, ~half)].max()
        for signs in itertools.product((False, True), repeat=count - 1)
        for half in [np.array([*signs, False])]
        if half.any()
    ]
    halves = bipartition(updates @ updates.T).astype(bool)
    assert similar[np.ix_(halves, ~halves)].max() == pytest.approx(min(across), rel=1e-12)


def test_length_of_the_mean(updates):
    measured = norm_of_mean(updates @ updates.T)
    assert measured == pytest.approx(np.linalg.norm(updates.mean(axis=0)), rel=1e-12)


def test_decomposed_cosines(updates):
    """Cosines with the main right singular vectors, up to the sign of each."""
    _, _, main = np.linalg.svd(updates, full_matrices=False)
    right = updates @ main[:2].T / np.linalg.norm(updates, axis=1, keepdims=True)
    measured = decomposed_cosines(updates @ updates.T, 2)
    np.testing.assert_allclose(np.abs(measured), np.abs(right), atol=1e-9)


def test_mean_cosine_differences(updates):
    similar, count = cosines(updates), len(updates)
    right = np.zeros((count, count))
    for one, other in itertools.permutations(range(count), 2):
        rest = [k for k in range(count) if k not in (one, other)]
        right[one, other] = np.mean([abs(similar[one, k] - similar[other, k]) for k in rest])
    np.testing.assert_allclose(mean_cosine_differences(updates @ updates.T), right, atol=1e-12)


@pytest.mark.parametrize(("reads", "sign"), [("similarity", -1.0), ("distance", 1.0)])
def test_affinity_propagation_as_meant_and_as_published(reads, sign):
    angles = np.deg2rad([0, 2, 5, 60, 62, 65, 180, 183])
    directions = np.stack([np.cos(angles), np.sin(angles)], axis=1)
    distances = 1 - directions @ directions.T
    np.fill_diagonal(distances, 0)
    right = AffinityPropagation(affinity="precomputed", random_state=0).fit(sign * distances)
    measured = AffinityClustering(reads).groups(distances, 0)
    assert adjusted_rand_score(right.labels_, measured) == 1.0
