"""Which clusters are so alike that they are merged, and the hypothesis after that."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace

import numpy as np
from numpy.typing import NDArray

from bcfl.hypotheses.association import UNSEEN, Association
from bcfl.hypotheses.hypothesis import Hypothesis
from bcfl.hypotheses.posterior import Posterior, weighted_mean
from bcfl.policies.policy import Continue, Given, Origin


def cluster_distances(losses: NDArray[np.float64]) -> NDArray[np.float64]:
    """(clusters, clusters) how much worse a model does on the other cluster's data than on its own.

    D_ij = max(L_ij - L_ii, L_ji - L_jj, 0), infinite where a loss is not known.

    Args:
        losses: (models, clusters) mean loss of each cluster's model on each cluster's data, nats;
            NaN where nobody says.
    """
    excess = losses - np.diag(losses)[:, None]
    distances: NDArray[np.float64] = np.maximum(np.maximum(excess, excess.T), 0.0)
    distances[np.isnan(distances)] = np.inf
    np.fill_diagonal(distances, 0.0)
    return distances


def complete_linkage(distances: NDArray[np.float64], below: float) -> NDArray[np.int64]:
    """(clusters,) group of each cluster: pairs are merged while the closest are below a bound.

    Args:
        distances: (clusters, clusters) symmetric; infinite ones are never merged.
        below: distance at which merging ends, above 0.
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
    """Clusters of the next round, by what they are made of.

    Attributes:
        parts: for each cluster, those of before that it is made of.
        weights: for each cluster, the weight of each part in the merged model.
        labels: cluster of each client that is associated.
    """

    parts: Sequence[Sequence[int]]
    weights: Sequence[Sequence[float]]
    labels: Mapping[str, int]

    @classmethod
    def of(
        cls,
        labels: Mapping[str, int],
        origins: Sequence[int],
        groups: NDArray[np.int64],
        weights: NDArray[np.float64],
    ) -> Regrouping:
        """Merge groups of clusters and leave out those without clients.

        Args:
            labels: position of each client among the clusters to be grouped.
            origins: for each of these, the cluster of before whose model it goes on from.
            groups: group of each.
            weights: weight of each in its group's model, not all 0 in a group that has clients.
        """
        used = sorted({int(groups[label]) for label in labels.values()})
        place = {group: number for number, group in enumerate(used)}
        inside = [np.flatnonzero(groups == group).tolist() for group in used]
        return cls(
            [[origins[i] for i in members] for members in inside],
            [[float(weights[i]) for i in members] for members in inside],
            {client: place[int(groups[label])] for client, label in labels.items()},
        )

    def applied(self, hypothesis: Hypothesis) -> tuple[Hypothesis, tuple[Origin, ...]]:
        """The hypothesis with the new clusters before they are trained, and their origins."""
        clusters: list[Posterior] = []
        origins: list[Origin] = []
        for parts, weights in zip(self.parts, self.weights, strict=True):
            if len(parts) == 1:
                clusters.append(hypothesis.clusters[parts[0]])
                origins.append(Continue(parts[0]))
            else:
                clusters.append(weighted_mean([hypothesis.clusters[i] for i in parts], weights))
                origins.append(Given(clusters[-1]))
        clients = hypothesis.association.clients
        labels = np.array([self.labels.get(client, UNSEEN) for client in clients], dtype=np.int64)
        association = Association(clients, labels, len(clusters))
        return replace(hypothesis, clusters=tuple(clusters), association=association), tuple(
            origins
        )
