"""Losses of clusters on each other's samples, and merging by complete linkage, as in FedDrift."""

from __future__ import annotations

from collections.abc import Collection, Mapping, Sequence
from dataclasses import dataclass, field, replace
from typing import TypeAlias

import numpy as np
from numpy.typing import NDArray

from bcfl.hypotheses.association import UNSEEN, Association
from bcfl.hypotheses.hypothesis import Hypothesis
from bcfl.hypotheses.posterior import Posterior, weighted_mean
from bcfl.policies.policy import Continue, Given, Origin

Piece: TypeAlias = tuple[str, int]
"""A client's samples of a time step: the unit that belongs to a cluster."""
Pieces: TypeAlias = Mapping[Piece, int]
"""Cluster of each piece."""


@dataclass(frozen=True, eq=False)
class Losses:
    """Losses of all cluster models on pieces of the clients' training samples.

    Attributes:
        pieces: those that were answered for, sorted.
        values: (pieces, clusters) mean loss per sample, nats.
        counts: (pieces,) numbers of samples.
    """

    pieces: Sequence[Piece]
    values: NDArray[np.float64]
    counts: NDArray[np.float64]

    def at(self, step: int) -> Losses:
        """Those of one time step."""
        rows = [row for row, piece in enumerate(self.pieces) if piece[1] == step]
        return Losses([self.pieces[row] for row in rows], self.values[rows], self.counts[rows])

    @property
    def clients(self) -> list[str]:
        """Clients of the pieces."""
        return [client for client, _ in self.pieces]

    @property
    def best(self) -> Mapping[str, int]:
        """The cluster of lowest loss of each client; of one time step."""
        return dict(zip(self.clients, map(int, self.values.argmin(axis=1)), strict=True))

    @property
    def lowest(self) -> Mapping[str, float]:
        """The lowest loss of each client, nats per sample; of one time step."""
        return dict(zip(self.clients, map(float, self.values.min(axis=1)), strict=True))

    def by_cluster(self, labels: Pieces) -> NDArray[np.float64]:
        """Mean loss of each model on each cluster's samples, nats; NaN for empty clusters.

        Args:
            labels: cluster of each piece.

        Returns:
            float64 of shape (models, clusters).
        """
        table = np.full((self.values.shape[1],) * 2, np.nan)
        rows = np.array([labels[piece] for piece in self.pieces], dtype=np.int64)
        for cluster in range(len(table)):
            members = rows == cluster
            if members.any():
                table[:, cluster] = np.average(
                    self.values[members], axis=0, weights=self.counts[members]
                )
        return table

    def samples(self, labels: Pieces, num_clusters: int) -> NDArray[np.float64]:
        """Number of samples in each cluster, float64 of shape (clusters,).

        Args:
            labels: cluster of each piece.
            num_clusters: number of clusters.
        """
        rows = np.array([labels[piece] for piece in self.pieces], dtype=np.int64)
        samples: NDArray[np.float64] = np.zeros(num_clusters)
        np.add.at(samples, rows, self.counts)
        return samples


def cluster_distances(losses: NDArray[np.float64]) -> NDArray[np.float64]:
    """Excess loss of each model on the other cluster's data, float64 (clusters, clusters), nats.

    D_ij = max(L_ij - L_ii, L_ji - L_jj, 0), infinite where a loss is unknown.

    Args:
        losses: (models, clusters) mean loss of each cluster's model on each cluster's data, nats;
            NaN where unknown.
    """
    excess = losses - np.diag(losses)[:, None]
    distances: NDArray[np.float64] = np.maximum(np.maximum(excess, excess.T), 0.0)
    distances[np.isnan(distances)] = np.inf
    np.fill_diagonal(distances, 0.0)
    return distances


def complete_linkage(distances: NDArray[np.float64], below: float) -> NDArray[np.int64]:
    """Groups of clusters by agglomerative clustering with complete linkage.

    Args:
        distances: (clusters, clusters) symmetric; infinite ones are never merged.
        below: distance from which clusters are not merged, above 0.

    Returns:
        Group of each cluster, int64 of shape (clusters,), numbered in order of appearance.
    """
    from scipy.cluster.hierarchy import fcluster, linkage
    from scipy.spatial.distance import squareform

    if len(distances) < 2:
        return np.zeros(len(distances), dtype=np.int64)
    far = np.minimum(distances, np.finfo(np.float64).max)
    tree = linkage(squareform(far, checks=False), "complete")
    groups = fcluster(tree, np.nextafter(below, 0.0), criterion="distance")
    _, first, inverse = np.unique(groups, return_index=True, return_inverse=True)
    return np.argsort(np.argsort(first))[inverse].astype(np.int64)


@dataclass(frozen=True, eq=False)
class Regrouping:
    """Clusters of the next round, composed of previous clusters.

    Attributes:
        parts: for each cluster, the previous clusters that it is composed of.
        weights: for each cluster, the weight of each part in the merged model.
        labels: cluster of each client that is associated.
        past: cluster of the samples of clients in earlier time steps, by client and step.
        new: clusters that only start from the model of a previous one, which itself goes on.
    """

    parts: Sequence[Sequence[int]]
    weights: Sequence[Sequence[float]]
    labels: Mapping[str, int]
    past: Pieces = field(default_factory=dict)
    new: Collection[int] = ()

    @classmethod
    def of(
        cls,
        labels: Mapping[str, int],
        past: Pieces,
        origins: Sequence[int],
        groups: NDArray[np.int64],
        weights: NDArray[np.float64],
    ) -> Regrouping:
        """Merge groups of clusters and remove those without samples, past ones included.

        Args:
            labels: index of each client's cluster among the clusters to be grouped.
            past: the same of their samples of earlier time steps.
            origins: for each of these, the previous cluster whose model it continues from.
            groups: int64 of shape (clusters,), group of each.
            weights: float64 of shape (clusters,), weight of each in its group's model, not all 0
                in a group with clients.
        """
        used = sorted({int(groups[label]) for label in (*labels.values(), *past.values())})
        index = {group: number for number, group in enumerate(used)}
        members = [np.flatnonzero(groups == group).tolist() for group in used]
        return cls(
            [[origins[i] for i in group] for group in members],
            [[float(weights[i]) for i in group] for group in members],
            {client: index[int(groups[label])] for client, label in labels.items()},
            {piece: index[int(groups[label])] for piece, label in past.items()},
            [number for number, group in enumerate(members) if all(origins[i] != i for i in group)],
        )

    def applied(self, hypothesis: Hypothesis) -> tuple[Hypothesis, tuple[Origin, ...]]:
        """The hypothesis with the new clusters before training, and their origins."""
        clusters: list[Posterior] = []
        origins: list[Origin] = []
        for number, (parts, weights) in enumerate(zip(self.parts, self.weights, strict=True)):
            if len(parts) == 1:
                clusters.append(hypothesis.clusters[parts[0]])
                origins.append(Continue(parts[0], is_copy=number in self.new))
            else:
                clusters.append(weighted_mean([hypothesis.clusters[i] for i in parts], weights))
                heaviest = parts[int(np.argmax(weights))]
                origins.append(Given(clusters[-1], heaviest))
        clients = hypothesis.association.clients
        labels = np.array([self.labels.get(client, UNSEEN) for client in clients], dtype=np.int64)
        association = Association(clients, labels, len(clusters))
        return replace(hypothesis, clusters=tuple(clusters), association=association), tuple(
            origins
        )
