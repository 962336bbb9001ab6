"""Merging of near-duplicate hypotheses, as in mixture reduction (Salmond, 1990)."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace
from itertools import combinations

import numpy as np
import torch
from numpy.typing import NDArray
from torch import Tensor

from bcfl.aggregation.aggregation import Aggregation
from bcfl.aggregation.merging import merge_hypotheses
from bcfl.architecture.model import Model
from bcfl.hypotheses.hypothesis import Hypothesis
from bcfl.hypotheses.matching import best_matching
from bcfl.hypotheses.posterior import Posterior
from bcfl.policies.capacity import FREE, ClusterSize


@dataclass(frozen=True)
class NearCopies:
    """Merge hypotheses whose clusters can be matched so that all pairs are close.

    Two clusters are compared by the squared distance of their means in units of the spread between
    the clusters of the heavier hypothesis, so the threshold does not depend on how sharp the
    posteriors are, nor on the size of the network.

    Attributes:
        threshold: hypotheses are near copies when no matched pair of clusters is further apart
            than this share of the mean squared distance between different clusters.
    """

    threshold: float = 0.05

    def __post_init__(self) -> None:
        if not self.threshold >= 0:
            raise ValueError(f"threshold must be at least 0, got {self.threshold}")

    def merge(
        self,
        hypotheses: Sequence[Hypothesis],
        aggregation: Aggregation,
        model: Model,
        cluster_size: ClusterSize = FREE,
    ) -> list[Hypothesis]:
        """Merge near copies by moment matching; the heaviest of each group numbers the clusters.

        Weights are summed, so that mass, mean and variance of the mixture are preserved.

        Args:
            hypotheses: in any order.
            aggregation: its memory determines the prior that a merged posterior leaves.
            model: the architecture.
            cluster_size: bounds on the number of clients per cluster.

        Returns:
            One hypothesis per group of near copies, most probable first before merging.
        """
        groups: list[list[Hypothesis]] = []
        furthest: list[float] = []
        for hypothesis in sorted(hypotheses, key=lambda h: -h.log_weight):
            for group, limit in zip(groups, furthest, strict=True):
                labels = _matching(group[0], hypothesis, model, limit)
                if labels is not None:
                    group.append(hypothesis.relabelled(labels))
                    break
            else:
                groups.append([hypothesis])
                furthest.append(self.threshold * mean_spread(hypothesis.clusters, model))
        return [_collapsed(group, aggregation, model, cluster_size) for group in groups]


def _matching(
    heavier: Hypothesis, other: Hypothesis, model: Model, limit: float
) -> NDArray[np.int64] | None:
    """Cluster of `heavier` for each cluster of `other`; None if a pair is further apart."""
    if len(heavier.clusters) != len(other.clusters):
        return None
    distances = squared_distances(other.clusters, heavier.clusters, model)
    labels = best_matching(-distances)
    furthest = distances[np.arange(len(labels)), labels].max()
    return labels if furthest <= limit else None


def _collapsed(
    group: list[Hypothesis], aggregation: Aggregation, model: Model, cluster_size: ClusterSize
) -> Hypothesis:
    if len(group) == 1:
        return group[0]
    log_weight = float(np.logaddexp.reduce([h.log_weight for h in group]))
    merged = merge_hypotheses(aggregation, model, group, cluster_size)
    return replace(merged, log_weight=log_weight)


def squared_distances(
    rows: Sequence[Posterior], columns: Sequence[Posterior], model: Model
) -> NDArray[np.float64]:
    """Squared Euclidean distances between the means of clusters, in blocks of cluster scope.

    Args:
        rows: clusters of one hypothesis.
        columns: clusters of another.
        model: the architecture.

    Returns:
        float64 of shape (rows, columns).
    """
    compared = {spec.name for spec in model.blocks if spec.scope == "cluster"}

    def distance(row: Posterior, column: Posterior) -> float:
        blocks = zip(row.blocks, column.blocks, strict=True)
        return sum(
            _squared_distance(a.gaussian.mean, b.gaussian.mean)
            for a, b in blocks
            if a.name in compared and a.key != b.key
        )

    return np.array([[distance(row, column) for column in columns] for row in rows], dtype=float)


def _squared_distance(a: Tensor, b: Tensor) -> float:
    difference = (a - b).double()
    return float(torch.dot(difference, difference))


def mean_spread(clusters: Sequence[Posterior], model: Model) -> float:
    """Mean squared distance between the means of different clusters; 0 for one cluster.

    Args:
        clusters: of one hypothesis.
        model: the architecture.
    """
    pairs = combinations(clusters, 2)
    distances = [float(squared_distances([a], [b], model)[0, 0]) for a, b in pairs]
    return float(np.mean(distances)) if distances else 0.0
