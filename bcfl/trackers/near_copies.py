"""Hypotheses that say nearly the same are one hypothesis."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace

import numpy as np
from numpy.typing import NDArray

from bcfl.aggregation.aggregation import Aggregation
from bcfl.aggregation.merging import merge_hypotheses
from bcfl.architecture.model import Model
from bcfl.hypotheses.hypothesis import Hypothesis
from bcfl.hypotheses.matching import best_matching
from bcfl.hypotheses.posterior import Posterior
from bcfl.policies.capacity import FREE, ClusterSize
from bcfl.trackers.blocks import differing


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
        """Collapse near copies, the heaviest of each giving the cluster numbers.

        Weights add up and posteriors are moment-matched, so mean, variance and mass of the mixture
        stay as they are.

        Args:
            hypotheses: in any order.
            aggregation: says what merged posteriors leave as prior.
            model: the architecture.
            cluster_size: bounds on the number of clients per cluster.
        """
        groups: list[list[Hypothesis]] = []
        for one in sorted(hypotheses, key=lambda h: -h.log_weight):
            for group in groups:
                names = self._copy_names(group[0], one, model)
                if names is not None:
                    group.append(one.relabelled(names))
                    break
            else:
                groups.append([one])
        return [_collapsed(group, aggregation, model, cluster_size) for group in groups]

    def _copy_names(
        self, heavier: Hypothesis, other: Hypothesis, model: Model
    ) -> NDArray[np.int64] | None:
        """How the clusters of `other` are called in `heavier`; None if it is no near copy."""
        if len(heavier.clusters) != len(other.clusters):
            return None
        between = squared_distances(other.clusters, heavier.clusters, model)
        names = best_matching(-between)
        spread = mean_spread(heavier.clusters, model)
        furthest = between[np.arange(len(names)), names].max()
        return names if furthest <= self.threshold * spread else None


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
    """(rows, columns) squared Euclidean distances of the clusters' means.

    Blocks that all clusters share are left out: they say nothing of which cluster is which.
    """
    seen = differing(model)

    def distance(row: Posterior, column: Posterior) -> float:
        if row.key == column.key:
            return 0.0
        apart = (row.mean(model) - column.mean(model)).double().square()
        return float(apart[seen.to(apart.device)].sum())

    return np.array([[distance(row, column) for column in columns] for row in rows])


def mean_spread(clusters: Sequence[Posterior], model: Model) -> float:
    """Mean squared distance between the means of different clusters."""
    between = squared_distances(clusters, clusters, model)
    different = between[~np.eye(len(clusters), dtype=bool)]
    return float(different.mean()) if different.size else 0.0
