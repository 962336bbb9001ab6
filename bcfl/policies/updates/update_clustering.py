"""Clustering algorithms on cosine distances of updates, for OCFL and BCL.

HDBSCAN, mean shift, affinity propagation and K-means are those of OCFL (Zuziak et al.);
agglomerative clustering is that of BCL (Briggs et al., 2020).
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Literal, Protocol

import numpy as np
import scipy
from numpy.typing import NDArray

from bcfl.policies.updates.centroids import weighted_kmeans
from bcfl.runtime import check_whole
from posteriors.global_state import without_warnings

NOISE = -1
ITERATIONS = 200
"""Within which affinity propagation has to converge, as in scikit-learn."""
DECIMALS = 12
"""Decimals of cosine distances that rounding leaves correct, for updates in single precision."""
SMALLEST_BANDWIDTH = 1e-6
"""Below it, whether scikit-learn finds a row within the bandwidth of itself is up to rounding."""
Distances = NDArray[np.float64]
Groups = NDArray[np.int64]


class UpdateClustering(Protocol):
    """Groups clients by the cosine distances of their updates.

    Distances that differ by rounding alone count as equal: they are rounded to 12 decimals.
    """

    def groups(self, distances: Distances, seed: int) -> Groups:
        """Group of each client, int64 of shape (clients,), from 0.

        Args:
            distances: (clients, clients) symmetric, zero on the diagonal, at least two clients.
            seed: seed of algorithms that are randomised.
        """
        ...


@dataclass(frozen=True)
class HDBSCANClustering:
    """HDBSCAN on the distances; finds the number of clusters.

    Attributes:
        min_share: smallest cluster as a share of the clients, rounded to whole clients, at least
            two. OCFL uses 20 %.
        noise: assignment of noise points. `together`: they form one cluster of their own, as in
            the authors' code; `nearest`: each joins the cluster of least mean distance. If there
            is no cluster, all clients stay together.
    """

    min_share: float = 0.2
    noise: Literal["together", "nearest"] = "together"

    def __post_init__(self) -> None:
        if not 0 < self.min_share <= 1:
            raise ValueError(f"min_share must lie in (0, 1], got {self.min_share}")
        if self.noise not in ("together", "nearest"):
            raise ValueError(f"noise must be 'together' or 'nearest', got {self.noise!r}")

    def groups(self, distances: Distances, seed: int) -> Groups:
        """Deterministic. See `bcfl.policies.updates.update_clustering.UpdateClustering.groups`."""
        from sklearn.cluster import HDBSCAN

        del seed
        smallest = max(2, int(self.min_share * len(distances) + 0.5))
        distances = distances.round(DECIMALS)
        fitted = HDBSCAN(min_cluster_size=smallest, metric="precomputed", copy=True).fit(distances)
        labels: Groups = fitted.labels_.astype(np.int64)
        return in_order_of_appearance(
            joining_nearest(labels, distances) if self.noise == "nearest" else labels
        )


@dataclass(frozen=True)
class MeanShiftClustering:
    """Mean shift on the rows of the distance matrix; finds the number of clusters.

    The bandwidth is scikit-learn's estimate. It is zero below seven clients: rows that differ are
    then clusters of their own, the limit of small bandwidths.
    """

    def groups(self, distances: Distances, seed: int) -> Groups:
        """Deterministic. See `bcfl.policies.updates.update_clustering.UpdateClustering.groups`."""
        from sklearn.cluster import MeanShift, estimate_bandwidth

        del seed
        rows = distances.round(DECIMALS)
        bandwidth = estimate_bandwidth(rows)
        if bandwidth < SMALLEST_BANDWIDTH:
            return in_order_of_appearance(np.unique(rows, axis=0, return_inverse=True)[1])
        return in_order_of_appearance(MeanShift(bandwidth=bandwidth).fit(rows).labels_)


@dataclass(frozen=True)
class AffinityClustering:
    """Affinity propagation; finds the number of clusters.

    All clients stay together if it does not converge or all distances are equal. Groups that share
    out clients at distance zero, between which affinity propagation cannot choose, are one group.

    Attributes:
        reads: `similarity`: similarities are minus the distances. `distance`: the distances
            themselves, as in the authors' code, which groups dissimilar clients.
    """

    reads: Literal["similarity", "distance"] = "similarity"

    def __post_init__(self) -> None:
        check_reads(self.reads)

    def groups(self, distances: Distances, seed: int) -> Groups:
        """Ties are broken by the seed.

        See `bcfl.policies.updates.update_clustering.UpdateClustering.groups`.
        """
        from sklearn.cluster import AffinityPropagation

        distances = distances.round(DECIMALS)
        off_diagonal = distances[~np.eye(len(distances), dtype=bool)]
        if np.ptp(off_diagonal) == 0:
            return np.zeros(len(distances), dtype=np.int64)
        affinities = -distances if self.reads == "similarity" else distances
        method = AffinityPropagation(
            affinity="precomputed", random_state=seed % 2**32, max_iter=ITERATIONS + 1
        )
        with without_warnings():
            method.fit(affinities)
        if method.n_iter_ > ITERATIONS:
            return np.zeros(len(distances), dtype=np.int64)
        together = np.equal.outer(method.labels_, method.labels_)
        if self.reads == "similarity":
            together |= distances == 0
        _, components = scipy.sparse.csgraph.connected_components(together)
        return in_order_of_appearance(components.astype(np.int64))


@dataclass(frozen=True)
class KMeansClustering:
    """K-means on the rows of the distance matrix, as in OCFL; K must be known.

    Attributes:
        num_clusters: K.
    """

    num_clusters: int

    def __post_init__(self) -> None:
        check_whole("num_clusters", self.num_clusters)

    def groups(self, distances: Distances, seed: int) -> Groups:
        """From seeded starts.

        See `bcfl.policies.updates.update_clustering.UpdateClustering.groups`.
        """
        weights = np.ones(len(distances))
        return in_order_of_appearance(
            weighted_kmeans(distances.round(DECIMALS), weights, self.num_clusters, seed)
        )


@dataclass(frozen=True)
class AgglomerativeClustering:
    """Merge the nearest clusters until they are further apart than a threshold.

    Attributes:
        threshold: clusters at this distance or more stay apart.
        linkage: distance of two clusters: the mean, largest or least over their clients.
        reads: `distance`: distances. `similarity`: the cosines themselves, as in OCFL's code for
            this baseline, which merges the least similar clients.
    """

    threshold: float
    linkage: Literal["average", "complete", "single"] = "average"
    reads: Literal["similarity", "distance"] = "distance"

    def __post_init__(self) -> None:
        if not 0 <= self.threshold <= 2:
            raise ValueError(f"threshold must lie in [0, 2], got {self.threshold}")
        if self.linkage not in ("average", "complete", "single"):
            raise ValueError(
                f"linkage must be 'average', 'complete' or 'single', got {self.linkage!r}"
            )
        check_reads(self.reads)

    def groups(self, distances: Distances, seed: int) -> Groups:
        """Deterministic. See `bcfl.policies.updates.update_clustering.UpdateClustering.groups`."""
        from sklearn import cluster

        del seed
        method = cluster.AgglomerativeClustering(
            n_clusters=None,
            distance_threshold=self.threshold,
            metric="precomputed",
            linkage=self.linkage,
        )
        distances = distances.round(DECIMALS)
        given = distances if self.reads == "distance" else 1.0 - distances
        return in_order_of_appearance(method.fit(given).labels_)


def check_reads(reads: str) -> None:
    """Check the input of a clustering algorithm.

    Raises:
        ValueError: it is neither `similarity` nor `distance`.
    """
    if reads not in ("similarity", "distance"):
        raise ValueError(f"reads must be 'similarity' or 'distance', got {reads!r}")


def joining_nearest(labels: Groups, distances: Distances) -> Groups:
    """Assign noise points to the cluster of least mean distance, if there is a cluster.

    Args:
        labels: (clients,) cluster of each client, `NOISE` for noise.
        distances: (clients, clients) cosine distances.
    """
    clusters = np.unique(labels[labels != NOISE])
    if not len(clusters):
        return labels
    means = np.stack([distances[:, labels == k].mean(axis=1) for k in clusters], axis=1)
    return np.where(labels == NOISE, clusters[means.argmin(axis=1)], labels)


def in_order_of_appearance(labels: Groups) -> Groups:
    """The same groups, numbered 0, 1, ... in order of first appearance."""
    names: dict[int, int] = {}
    return np.array([names.setdefault(int(label), len(names)) for label in labels], dtype=np.int64)
