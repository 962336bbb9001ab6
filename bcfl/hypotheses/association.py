"""Which client is served by which cluster."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from functools import cached_property

import numpy as np
from numpy.typing import NDArray

UNSEEN = -1


@dataclass(frozen=True, eq=False)
class Association:
    """Whose model each client uses.

    Hard associations keep labels only; soft ones also keep their probabilities.

    Attributes:
        clients: all clients, sorted by name.
        labels: (clients,) int64 most probable cluster (within bounds on the sizes, where there are
            any), -1 for a client never seen.
        num_clusters: number of clusters.
        probabilities: (clients, clusters) rows that sum to 1 (0 for a client never seen), or None
            when each client is in exactly one cluster.
    """

    clients: tuple[str, ...]
    labels: NDArray[np.int64]
    num_clusters: int
    probabilities: NDArray[np.float64] | None = None

    def __post_init__(self) -> None:
        if len(self.labels) != len(self.clients):
            raise ValueError(f"{len(self.labels)} labels do not fit {len(self.clients)} clients")
        if len(self.labels) and not (
            self.labels.min() >= UNSEEN and self.labels.max() < self.num_clusters
        ):
            raise ValueError(
                f"labels must lie between -1 and {self.num_clusters - 1}, "
                f"got {self.labels.min()} to {self.labels.max()}"
            )
        self.labels.flags.writeable = False
        if self.probabilities is not None:
            self.probabilities.flags.writeable = False

    def __repr__(self) -> str:
        sizes = " ".join(map(str, self.sizes))
        return f"Association({len(self.clients)} clients, cluster sizes {sizes})"

    @classmethod
    def unseen(cls, clients: Sequence[str], num_clusters: int) -> Association:
        """No client is associated yet."""
        return cls(tuple(clients), np.full(len(clients), UNSEEN), num_clusters)

    @cached_property
    def position(self) -> Mapping[str, int]:
        """Row of each client."""
        return {client: row for row, client in enumerate(self.clients)}

    @property
    def serving(self) -> NDArray[np.float64]:
        """(clients, clusters) probability that a client is served by a cluster."""
        if self.probabilities is not None:
            return self.probabilities
        rows = np.zeros((len(self.clients), self.num_clusters))
        seen = np.flatnonzero(self.labels != UNSEEN)
        rows[seen, self.labels[seen]] = 1.0
        return rows

    @property
    def sizes(self) -> NDArray[np.int64]:
        """(clusters,) number of clients whose most probable cluster this is."""
        seen = self.labels[self.labels != UNSEEN]
        return np.bincount(seen, minlength=self.num_clusters).astype(np.int64)

    def label(self, client: str) -> int:
        """Cluster of a client, -1 if it was never seen."""
        return int(self.labels[self.position[client]])

    def updated(self, labels: Mapping[str, int]) -> Association:
        """The association after some clients moved; the others keep what they had."""
        rows = np.array([self.position[client] for client in labels], dtype=np.int64)
        moved = self.labels.copy()
        moved[rows] = list(labels.values())
        if self.probabilities is None:
            return Association(self.clients, moved, self.num_clusters)
        soft = self.probabilities.copy()
        soft[rows] = 0.0
        soft[rows, moved[rows]] = 1.0
        return Association(self.clients, moved, self.num_clusters, soft)

    def with_empty_cluster(self) -> Association:
        """The association with one more cluster, which is empty."""
        soft = self.probabilities
        wide = None if soft is None else np.pad(soft, ((0, 0), (0, 1)))
        return Association(self.clients, self.labels.copy(), self.num_clusters + 1, wide)

    def without_cluster(self, cluster: int) -> Association:
        """The association with a cluster taken away; later clusters move up by one.

        Raises:
            ValueError: some client is still in the cluster.
        """
        if (self.labels == cluster).any():
            raise ValueError(f"cluster {cluster} still has clients")
        labels = self.labels - (self.labels > cluster)
        soft = self.probabilities
        if soft is not None:
            soft = np.delete(soft, cluster, axis=1)
            rows = soft.sum(axis=1, keepdims=True)
            soft = np.divide(soft, rows, out=np.zeros_like(soft), where=rows > 0)
        return Association(self.clients, labels, self.num_clusters - 1, soft)

    @classmethod
    def mixture(cls, parts: Sequence[Association], weights: NDArray[np.float64]) -> Association:
        """The weighted mean of associations over the same clusters.

        Args:
            parts: associations whose clusters have the same meaning.
            weights: (parts,) summing to 1.
        """
        if len(parts) == 1:
            return parts[0]
        soft = sum(
            (w * part.serving for w, part in zip(weights, parts, strict=True)),
            start=np.zeros((len(parts[0].clients), parts[0].num_clusters)),
        )
        labels = np.where(soft.sum(axis=1) > 0, soft.argmax(axis=1), UNSEEN)
        if np.all((soft == 0) | (np.abs(soft - 1) < 1e-12)):
            return cls(parts[0].clients, labels, parts[0].num_clusters)
        return cls(parts[0].clients, labels, parts[0].num_clusters, soft)
