"""Weighted K-means, and squared distances of points to centroids and cavities."""

from __future__ import annotations

from functools import cache
from hashlib import sha256

import numpy as np
import scipy
from numpy.typing import NDArray
from threadpoolctl import ThreadpoolController

NUM_STARTS = 10
NUM_PASSES = 2
BLOCK = 4096


def weighted_kmeans(
    points: NDArray[np.float64],
    weights: NDArray[np.float64],
    num_clusters: int,
    seed: int,
    starts: int = NUM_STARTS,
) -> NDArray[np.int64]:
    """Weighted K-means: Lloyd's algorithm, best of several k-means++ starts.

    Fewer distinct points than clusters leave clusters empty. K-means depends on distances alone:
    where there are more dimensions than points, it runs in the subspace that the points span.

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

    first: dict[bytes, int] = {}
    alike = [first.setdefault(_digest(row), index) for index, row in enumerate(points)]
    kmeans = KMeans(
        n_clusters=min(num_clusters, len(first)), n_init=starts, random_state=seed % 2**32, tol=0.0
    )
    with thread_pools().limit(limits=1):
        spanned = _in_their_span(points)[alike]
        labels: NDArray[np.int64] = kmeans.fit(spanned, sample_weight=weights).labels_
    return labels.astype(np.int64)


def _digest(point: NDArray[np.float64]) -> bytes:
    """Digest of a point, the same for equal points."""
    return sha256((point + 0.0).data).digest()  # -0.0 is 0.0


def _in_their_span(points: NDArray[np.float64]) -> NDArray[np.float64]:
    """Coordinates of points in an orthonormal basis of their span, at most as many as points.

    They are the columns of R in points.T = QR, found over blocks of rows that fit a cache, and keep
    distances up to rounding.
    """
    num_points, dimensions = points.shape
    if dimensions <= num_points:
        return points
    factor: NDArray[np.float64] = np.empty((0, num_points))
    for begin in range(0, dimensions, BLOCK):
        block = points[:, begin : begin + BLOCK].T
        rows = np.concatenate([factor, block])
        factor = scipy.linalg.qr(rows, mode="r", overwrite_a=True, check_finite=False)[0][
            :num_points
        ]
    return np.ascontiguousarray(factor.T)


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
