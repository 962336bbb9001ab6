"""Ways to cluster clients by the cosine distances of their updates.

Each turns (clients, clients) distances into (clients,) group numbers from 0; they differ in what
they must be told. OCFL (Zuziak et al.) takes any; Briggs et al. (2020) take the agglomerative one.
"""

from __future__ import annotations

import warnings
from dataclasses import dataclass
from typing import Literal, Protocol

import numpy as np
from numpy.typing import NDArray

from bcfl.policies.updates.kmeans import weighted_kmeans

NOISE = -1
Distances = NDArray[np.float64]
Groups = NDArray[np.int64]


class UpdateClustering(Protocol):
    """Groups clients by how far apart their updates point."""

    def groups(self, distances: Distances, seed: int) -> Groups:
        """(clients,) group of each client, from 0.

        Args:
            distances: (clients, clients) symmetric, zero on the diagonal, at least two clients.
            seed: decides whatever is random.
        """
        ...


@dataclass(frozen=True)
class HDBSCANClustering:
    """HDBSCAN on the distances; finds the number of clusters.

    Attributes:
        min_share: smallest share of the clients that is a cluster, rounded to whole clients, at
            least two. OCFL uses 20 %.
        noise: where clients go that fit no cluster. `together`: they form one cluster of their
            own, as in OCFL's program; `nearest`: each joins the cluster of least mean distance.
            If nobody fits a cluster, all stay together.
    """

    min_share: float = 0.2
    noise: Literal["together", "nearest"] = "together"

    def __post_init__(self) -> None:
        if not 0 < self.min_share <= 1:
            raise ValueError(f"min_share must lie in (0, 1], got {self.min_share}")
        if self.noise not in ("together", "nearest"):
            raise ValueError(f"noise must be 'together' or 'nearest', got {self.noise!r}")

    def groups(self, distances: Distances, seed: int) -> Groups:
        """Cluster; deterministic."""
        from sklearn.cluster import HDBSCAN

        del seed
        smallest = max(2, int(self.min_share * len(distances) + 0.5))
        found = HDBSCAN(min_cluster_size=smallest, metric="precomputed", copy=True).fit(distances)
        labels: Groups = found.labels_.astype(np.int64)
        return renumbered(joining_nearest(labels, distances) if self.noise == "nearest" else labels)


@dataclass(frozen=True)
class MeanShiftClustering:
    """Mean shift on the rows of the distance matrix; finds the number of clusters.

    The bandwidth is scikit-learn's estimate. Of fewer than seven clients each stands alone, since
    the estimate is then zero.
    """

    def groups(self, distances: Distances, seed: int) -> Groups:
        """Cluster; deterministic."""
        from sklearn.cluster import MeanShift

        del seed
        return renumbered(MeanShift().fit(distances).labels_)


@dataclass(frozen=True)
class AffinityClustering:
    """Affinity propagation; finds the number of clusters.

    Where it doesn't converge, or all clients are equally alike, all stay together.

    Attributes:
        reads: `similarity` gives it minus the distance. `distance` gives it the distance itself,
            as OCFL's program does, which groups clients that are unlike.
    """

    reads: Literal["similarity", "distance"] = "similarity"

    def __post_init__(self) -> None:
        check_reads(self.reads)

    def groups(self, distances: Distances, seed: int) -> Groups:
        """Cluster, breaking ties by the seed."""
        from sklearn.cluster import AffinityPropagation

        apart = distances[~np.eye(len(distances), dtype=bool)]
        if np.ptp(apart) == 0:
            return np.zeros(len(distances), dtype=np.int64)
        given = -distances if self.reads == "similarity" else distances
        method = AffinityPropagation(affinity="precomputed", random_state=seed % 2**32)
        with warnings.catch_warnings():
            warnings.simplefilter("ignore")  # not converged: labels say so
            return renumbered(method.fit(given).labels_)


@dataclass(frozen=True)
class KMeansClustering:
    """K-means on the rows of the distance matrix, as OCFL's program does; K must be known.

    Attributes:
        num_clusters: K.
    """

    num_clusters: int

    def __post_init__(self) -> None:
        if self.num_clusters < 1:
            raise ValueError(f"num_clusters must be at least 1, got {self.num_clusters}")

    def groups(self, distances: Distances, seed: int) -> Groups:
        """Cluster from seeded starts."""
        weights = np.ones(len(distances))
        return renumbered(weighted_kmeans(distances, weights, self.num_clusters, seed))


@dataclass(frozen=True)
class AgglomerativeClustering:
    """Merge the nearest clusters until they are further apart than a threshold.

    Attributes:
        threshold: clusters at this distance or more stay apart.
        linkage: distance of two clusters: the mean, largest or least over their clients.
        reads: `distance` gives it the distance. `similarity` gives it the cosine itself, as OCFL's
            program does for its baseline, which merges the least alike.
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
        """Cluster; deterministic."""
        from sklearn import cluster

        del seed
        method = cluster.AgglomerativeClustering(
            n_clusters=None,
            distance_threshold=self.threshold,
            metric="precomputed",
            linkage=self.linkage,
        )
        given = distances if self.reads == "distance" else 1.0 - distances
        return renumbered(method.fit(given).labels_)


def check_reads(reads: str) -> None:
    """Raise ValueError unless a clustering reads similarities or distances."""
    if reads not in ("similarity", "distance"):
        raise ValueError(f"reads must be 'similarity' or 'distance', got {reads!r}")


def joining_nearest(labels: Groups, distances: Distances) -> Groups:
    """The labels with noise in the cluster of least mean distance, where there is a cluster."""
    clusters = np.unique(labels[labels != NOISE])
    if not len(clusters):
        return labels
    away = np.stack([distances[:, labels == one].mean(axis=1) for one in clusters], axis=1)
    return np.where(labels == NOISE, clusters[away.argmin(axis=1)], labels)


def renumbered(labels: Groups) -> Groups:
    """The same groups under the numbers 0, 1, ... in the order in which they first appear."""
    names: dict[int, int] = {}
    return np.array([names.setdefault(int(one), len(names)) for one in labels], dtype=np.int64)
