"""Split, merge, birth and death moves: changes of several clients' associations at once.

Moves of this kind connect local optima in multi-target tracking (Oh, Russell and Sastry, 2009) and
mixture models with an unknown number of components (Richardson and Green, 1997).
"""

from __future__ import annotations

from collections.abc import Collection, Mapping
from dataclasses import dataclass, replace
from functools import lru_cache
from math import inf, log, log1p

import numpy as np
import torch
from numpy.typing import NDArray
from torch import Tensor

from bcfl.architecture.model import Model
from bcfl.hypotheses.association import UNSEEN
from bcfl.policies.context import RoundContext
from bcfl.policies.policy import Candidate, Continue, Costs
from bcfl.policies.updates.centroids import weighted_kmeans
from bcfl.protocol.answers import Trained
from bcfl.protocol.requests import Train
from bcfl.runtime.seeds import derive_seed

SPLIT_STARTS = 3
"""Restarts of 2-means; two well-separated groups are found from any start."""


@dataclass(frozen=True, eq=False)
class Split:
    """Division of a cluster's trained members into two groups.

    Attributes:
        cluster: index of the cluster.
        leaving: names of the clients of the group that leaves it.
        explained: share of the local models' variance between the two groups.
        num_members: number of local models.
    """

    cluster: int
    leaving: frozenset[str]
    explained: float
    num_members: int

    @property
    def gain(self) -> float:
        """Gain in BIC of two spherical Gaussians over one, per dimension of the models, nats.

        n log(1 / (1 - explained)) - log(n) with n the number of members. Mixture proportions are
        left out, since their contribution does not grow with the dimension.

        References:
            Pelleg and Moore (2000), "X-means", section 3.2.
        """
        if self.explained >= 1:
            return inf
        return -self.num_members * log1p(-self.explained) - log(self.num_members)


def find_splits(
    candidate: Candidate,
    answers: Mapping[Train, Trained],
    min_members: int,
    context: RoundContext,
    clusters: Collection[int] | None = None,
) -> list[Split]:
    """2-means of the local models of each cluster, weighted by samples.

    Models are compared in blocks of cluster scope, see `cluster_scope_mask`.

    Args:
        candidate: association whose clusters are divided.
        answers: its local models.
        min_members: fewest trained members of a cluster that is divided.
        context: read-only context of the round.
        clusters: indices of the clusters to divide; None is all.

    Returns:
        One split for each cluster with enough members, in order of the clusters.
    """
    mask = cluster_scope_mask(context.model)
    splits = []
    for cluster in range(len(candidate.origins)) if clusters is None else sorted(clusters):
        members = [
            training
            for training, weight in zip(
                candidate.trainings, candidate.contribution_weights[:, cluster], strict=True
            )
            if weight > 0 and training in answers
        ]
        if len(members) < max(min_members, 2):
            continue
        points = np.stack([answers[t].mean.cpu()[mask].double().numpy() for t in members])
        weights = np.array([float(answers[t].num_samples) for t in members])
        seed = derive_seed(context.seed, context.round, "split", cluster)
        labels = weighted_kmeans(points, weights, 2, seed, SPLIT_STARTS)
        if 0 < labels.sum() < len(members):
            leaving = frozenset(
                t.client for t, label in zip(members, labels, strict=True) if label == 1
            )
            explained = explained_share(points, weights, labels)
            splits.append(
                Split(
                    cluster=cluster,
                    leaving=leaving,
                    explained=explained,
                    num_members=len(members),
                )
            )
    return splits


def explained_share(
    points: NDArray[np.float64], weights: NDArray[np.float64], labels: NDArray[np.int64]
) -> float:
    """Share of the weighted variance of points that lies between their groups, in [0, 1].

    Args:
        points: float64 of shape (points, dimensions).
        weights: at least 0, float64 of shape (points,).
        labels: group of each point, int64 of shape (points,).
    """
    mean = np.average(points, axis=0, weights=weights)
    total = float((weights * ((points - mean) ** 2).sum(axis=1)).sum())
    if total == 0:
        return 0.0
    between = 0.0
    for label in np.unique(labels):
        group = labels == label
        centre = np.average(points[group], axis=0, weights=weights[group])
        between += float(weights[group].sum() * ((centre - mean) ** 2).sum())
    return between / total


def _rows_of(candidate: Candidate, costs: Costs, cluster: int) -> list[int]:
    """Rows of the costs whose clients are in a cluster."""
    label = candidate.association.label
    return [row for row, client in enumerate(costs.clients) if label(client) == cluster]


def merge_cost(candidate: Candidate, source: int, target: int) -> float:
    """Rise in cost when all members of a cluster move to another one, nats.

    By the costs by which hypotheses compete; infinite without costs.

    Args:
        candidate: association with its cost matrix.
        source: index of the cluster that is dissolved.
        target: index of the cluster that takes its members.
    """
    if candidate.costs is None:
        return inf
    members = _rows_of(candidate, candidate.costs, source)
    costs = candidate.costs.competing[members]
    return float((costs[:, target] - costs[:, source]).sum())


def cluster_cost(candidate: Candidate, cluster: int) -> float:
    """Summed cost of a cluster's members in it, nats; infinite without costs.

    Losses are non-negative, so this bounds what its members can gain from any other model.

    Args:
        candidate: association with its cost matrix.
        cluster: index of the cluster.
    """
    if candidate.costs is None:
        return inf
    members = _rows_of(candidate, candidate.costs, cluster)
    costs = candidate.costs
    return float(costs.competing[members, cluster].sum() + costs.competing_offsets[members].sum())


def removal_cost(candidate: Candidate, cluster: int) -> float:
    """Rise in cost when the members of a cluster move to their next best ones, nats.

    The next best is chosen by the costs that associate clients, the rise is measured by those by
    which hypotheses compete; infinite without costs.

    Args:
        candidate: association with its cost matrix.
        cluster: index of the cluster that is removed.
    """
    if candidate.costs is None:
        return inf
    members = _rows_of(candidate, candidate.costs, cluster)
    alternatives = candidate.costs.values[members].copy()
    alternatives[:, cluster] = np.inf
    costs = candidate.costs.competing[members]
    rows = np.arange(len(members))
    return float((costs[rows, alternatives.argmin(axis=1)] - costs[rows, cluster]).sum())


def split_cluster(candidate: Candidate, split: Split, slot: int) -> Candidate:
    """Split move: one group of a cluster takes over a slot, whose members leave it.

    Each half continues from the cluster that is split and is trained by its own members alone. The
    group is a new cluster: that of the slot is gone (see `bcfl.Hypothesis.continues`).

    Args:
        candidate: association of the round, with its trainings.
        split: the cluster and the group that leaves it.
        slot: index of the cluster whose place the group takes; negative counts from the end.
    """
    slot %= len(candidate.origins)
    contribution_weights = candidate.contribution_weights.copy()
    contribution_weights[:, slot] = 0.0
    for row, training in enumerate(candidate.trainings):
        if training.client in split.leaving and contribution_weights[row, split.cluster] > 0:
            contribution_weights[row, slot] = contribution_weights[row, split.cluster]
            contribution_weights[row, split.cluster] = 0.0
    origins = tuple(
        Continue(split.cluster, is_copy=True) if index == slot else origin
        for index, origin in enumerate(candidate.origins)
    )
    labels = next_best_clusters(candidate, slot) | dict.fromkeys(split.leaving, slot)
    return replace(
        candidate,
        association=candidate.association.updated(labels),
        contribution_weights=contribution_weights,
        origins=origins,
        kind="split",
    )


def with_empty_cluster(candidate: Candidate) -> Candidate:
    """The candidate with one more cluster, to which no training contributes yet."""
    return replace(
        candidate,
        association=candidate.association.with_empty_cluster(),
        contribution_weights=np.pad(candidate.contribution_weights, ((0, 0), (0, 1))),
        origins=(*candidate.origins, candidate.origins[-1]),
    )


def merge_clusters(candidate: Candidate, source: int, target: int) -> Candidate:
    """Merge move: all clients of one cluster join another, and theirs is removed.

    The other continues from its own model, trained by its own members: averaging the weights of two
    networks trained apart gives a bad model.

    Args:
        candidate: association of the round, with its trainings.
        source: index of the cluster that is removed.
        target: index of the cluster that takes its members.
    """
    members = candidate.association.labels == source
    names = [c for c, moves in zip(candidate.association.clients, members, strict=True) if moves]
    association = candidate.association.updated(dict.fromkeys(names, target))
    merged = remove_cluster(replace(candidate, association=association), source)
    return replace(merged, kind="merge")


def remove_cluster(candidate: Candidate, cluster: int) -> Candidate:
    """Death move: a cluster is removed, its members join their next best ones.

    Args:
        candidate: association of the round, with its trainings.
        cluster: index of the cluster that is removed.
    """
    association = candidate.association.updated(next_best_clusters(candidate, cluster))
    return replace(
        candidate,
        association=association.without_cluster(cluster),
        contribution_weights=np.delete(candidate.contribution_weights, cluster, axis=1),
        origins=tuple(o for index, o in enumerate(candidate.origins) if index != cluster),
        kind="death",
    )


def next_best_clusters(candidate: Candidate, cluster: int) -> dict[str, int]:
    """Next best cluster of each client of a cluster that is removed.

    Clients without costs in this round join the largest other cluster.

    Args:
        candidate: association with its cost matrix.
        cluster: index of the cluster that is removed.
    """
    sizes = candidate.association.sizes.astype(np.float64)
    sizes[cluster] = -1.0
    rows: Mapping[str, int] = {}
    if candidate.costs is not None:
        rows = {client: row for row, client in enumerate(candidate.costs.clients)}
    labels: dict[str, int] = {}
    for client, label in zip(
        candidate.association.clients, candidate.association.labels, strict=True
    ):
        if label != cluster or label == UNSEEN:
            continue
        if client in rows and candidate.costs is not None:
            cost = candidate.costs.values[rows[client]].copy()
            cost[cluster] = np.inf
            labels[client] = int(cost.argmin())
        else:
            labels[client] = int(sizes.argmax())
    return labels


@lru_cache(maxsize=8)
def cluster_scope_mask(model: Model) -> Tensor:
    """Mask of the parameters in blocks of cluster scope, bool of shape (parameters,).

    Models are compared in these alone: a shared network reflects how clients' samples differ, not
    which cluster they belong to.
    """
    mask = torch.zeros(model.layout.num_parameters, dtype=torch.bool)
    for spec in model.blocks:
        for slot in model.block_slots[spec.name][0]:
            mask[slot.start : slot.stop] = spec.scope == "cluster"
    return mask
