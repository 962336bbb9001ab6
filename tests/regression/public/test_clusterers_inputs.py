"""Clusterings leave their distances as they are, and weigh samples at any scale.

Reported to neighbouring projects: HDBSCAN writes into a precomputed matrix, and K-means fails on
small weights.
"""

import numpy as np
import pytest

from bcfl.policies.updates.centroids import distances_to_centroids, weighted_kmeans
from bcfl.policies.updates.update_clustering import (
    AffinityClustering,
    AgglomerativeClustering,
    HDBSCANClustering,
    KMeansClustering,
    MeanShiftClustering,
)

ALL = {
    "hdbscan": HDBSCANClustering(),
    "hdbscan-nearest": HDBSCANClustering(noise="nearest"),
    "mean-shift": MeanShiftClustering(),
    "affinity": AffinityClustering(),
    "affinity-distance": AffinityClustering("distance"),
    "k-means": KMeansClustering(3),
    "agglomerative": AgglomerativeClustering(0.5, reads="similarity"),
}


@pytest.mark.parametrize("name", ALL)
def test_distances_may_be_read_only_and_stay_as_they_were(name):
    points = np.random.default_rng(0).normal(size=(12, 3))
    distances = np.linalg.norm(points[:, None] - points, axis=2) / 4
    before = distances.copy()
    distances.flags.writeable = False
    assert len(ALL[name].groups(distances, 0)) == 12
    np.testing.assert_array_equal(distances, before)


@pytest.fixture
def groups():
    """Points of two groups, and weights that differ."""
    random = np.random.default_rng(0)
    points = np.concatenate([random.normal(size=(8, 3)), 6 + random.normal(size=(5, 3))])
    return points, random.uniform(0.5, 9.0, size=13)


@pytest.mark.parametrize("scale", [1e-12, 1e-6, 1e6, 1e12])
def test_the_scale_of_weights_changes_nothing(groups, scale):
    points, weights = groups
    expected = weighted_kmeans(points, weights, 2, 0)
    np.testing.assert_array_equal(weighted_kmeans(points, scale * weights, 2, 0), expected)
    found = distances_to_centroids(points, scale * weights, expected, 2)
    np.testing.assert_allclose(found, distances_to_centroids(points, weights, expected, 2))


def test_a_weight_of_three_is_a_point_that_is_there_three_times(groups):
    points, _ = groups
    counts = np.arange(13) % 3 + 1
    labels = weighted_kmeans(points, counts.astype(float), 2, 0)
    repeated = distances_to_centroids(
        np.repeat(points, counts, axis=0), np.ones(counts.sum()), np.repeat(labels, counts), 2
    )
    found = distances_to_centroids(points, counts.astype(float), labels, 2)
    np.testing.assert_allclose(np.repeat(found, counts, axis=0), repeated, rtol=1e-9)
