"""Weighted K-means, and squared distances of points to centroids and cavities."""

from __future__ import annotations

from functools import cache

import numpy as np
from numpy.typing import NDArray
from threadpoolctl import ThreadpoolController

NUM_STARTS = 10
NUM_PASSES = 2


def weighted_kmeans(
    points: NDArray[np.float64],
    weights: NDArray[np.float64],
    num_clusters: int,
    seed: int,
    starts: int = NUM_STARTS,
) -> NDArray[np.int64]:
    """Weighted K-means: Lloyd's algorithm, best of several k-means++ starts.

    Fewer distinct points than clusters leave clusters empty.

    Args:
        points: float64 of shape (points, dimensions).
        weights: float64 of shape (points,).
        num_clusters: number of clusters K.
        seed: seed of the starts.
        starts: number of starts.

    Returns:
        Cluster of each point, int64 of shape (points,).
    """
    from sklearn.cluster import KMeans

    distinct = len({row.tobytes() for row in points + 0.0})  # -0.0 is 0.0
    kmeans = KMeans(
        n_clusters=min(num_clusters, distinct), n_init=starts, random_state=seed % 2**32
    )
    with thread_pools().limit(limits=1):
        labels: NDArray[np.int64] = kmeans.fit(points, sample_weight=weights).labels_
    return labels.astype(np.int64)


@cache
def thread_pools() -> ThreadpoolController:
    """Thread pools of this process, cached: finding them takes longer than a small K-means."""
    return ThreadpoolController()


def distances_to_centroids(
    points: NDArray[np.float64],
    weights: NDArray[np.float64],
    labels: NDArray[np.int64],
    num_clusters: int,
) -> NDArray[np.float64]:
    """Squared distances of points to centroids, float64 of shape (points, clusters).

    An empty cluster's centroid is that of all points.

    Args:
        points: float64 of shape (points, dimensions).
        weights: float64 of shape (points,).
        labels: cluster of each point, int64 of shape (points,).
        num_clusters: number of clusters.
    """
    centroids = np.tile(np.average(points, axis=0, weights=weights), (num_clusters, 1))
    for label in np.unique(labels):
        members = labels == label
        centroids[label] = np.average(points[members], axis=0, weights=weights[members])
    return distances_between(points, centroids)


def distances_between(
    points: NDArray[np.float64], centres: NDArray[np.float64]
) -> NDArray[np.float64]:
    """Squared distances, float64 of shape (points, centres).

    Args:
        points: float64 of shape (points, dimensions).
        centres: float64 of shape (centres, dimensions).
    """
    return np.stack([((points - centre) ** 2).sum(axis=1) for centre in centres], axis=1)


def distances_to_cavities(
    points: NDArray[np.float64],
    weights: NDArray[np.float64],
    labels: NDArray[np.int64],
    origins: NDArray[np.float64],
) -> NDArray[np.float64]:
    """Squared distances of points to centroids that leave the point itself out.

    Args:
        points: float64 of shape (points, dimensions).
        weights: float64 of shape (points,).
        labels: cluster of each point, int64 of shape (points,).
        origins: (clusters, dimensions) what a single member of each cluster is measured against.

    Returns:
        float64 of shape (points, clusters).
    """
    distances = distances_to_centroids(points, weights, labels, len(origins))
    rows = np.arange(len(points))
    total = np.bincount(labels, weights, len(origins))[labels]
    alone = np.bincount(labels, minlength=len(origins))[labels] == 1
    share = np.divide(total, total - weights, out=np.ones_like(total), where=~alone)
    distances[rows, labels] *= share**2
    distances[alone, labels[alone]] = ((points - origins[labels])[alone] ** 2).sum(axis=1)
    return distances


def moved_to_nearest_cavities(
    points: NDArray[np.float64],
    weights: NDArray[np.float64],
    labels: NDArray[np.int64],
    origins: NDArray[np.float64],
    passes: int = NUM_PASSES,
) -> NDArray[np.int64]:
    """Move points, the one that gains most first, until each is nearest to its own cavity.

    As in Hartigan's K-means, a point does not draw the centroid that it is measured against.

    Args:
        points: float64 of shape (points, dimensions).
        weights: float64 of shape (points,).
        labels: cluster of each point, int64 of shape (points,).
        origins: (clusters, dimensions) what a single member of each cluster is measured against.
        passes: most moves per point, since moves need not converge.

    Returns:
        Cluster of each point, int64 of shape (points,).
    """
    labels, rows = labels.copy(), np.arange(len(points))
    for _ in range(passes * len(points)):
        distances = distances_to_cavities(points, weights, labels, origins)
        gains = distances[rows, labels] - distances.min(axis=1)
        first = int(gains.argmax())
        if gains[first] <= 0:
            break
        labels[first] = distances[first].argmin()
    return labels
