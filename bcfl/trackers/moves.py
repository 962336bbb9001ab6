"""Moves that change several clients at once: split, free, widen, take away, unite."""

from __future__ import annotations

from collections.abc import Collection, Mapping
from dataclasses import dataclass, replace
from math import inf, log, log1p

import numpy as np
from numpy.typing import NDArray

from bcfl.hypotheses.association import UNSEEN
from bcfl.policies.context import RoundContext
from bcfl.policies.policy import Candidate, Continue, Costs
from bcfl.policies.updates.kmeans import weighted_kmeans
from bcfl.protocol.answers import Trained
from bcfl.protocol.requests import Train
from bcfl.runtime.seeds import derive_seed
from bcfl.trackers.blocks import differing

SPLIT_STARTS = 3
"""Starts of 2-means: a cluster that is worth splitting falls apart from any start."""


@dataclass(frozen=True, eq=False)
class Split:
    """A cluster whose local models fall into two.

    Attributes:
        cluster: the cluster.
        leaving: names of the clients of one half.
        explained: share of the local models' variance that the two halves explain.
        num_members: how many local models there are.
    """

    cluster: int
    leaving: frozenset[str]
    explained: float
    num_members: int

    @property
    def gain(self) -> float:
        """How much better two spherical Gaussians describe the local models than one.

        The rise of the Bayesian information criterion for each dimension of the models, nats:
        members x log(1 / (1 - explained)) - log(members). The halves' own shares of the members
        are left out: they do not grow with the dimension.

        References:
            Pelleg and Moore (2000), "X-means", section 3.2.
        """
        if self.explained >= 1:
            return inf
        return -self.num_members * log1p(-self.explained) - log(self.num_members)


def splits(
    chosen: Candidate,
    answers: Mapping[Train, Trained],
    min_members: int,
    context: RoundContext,
    clusters: Collection[int] | None = None,
) -> list[Split]:
    """For each cluster with enough trained members, the best division of its local models.

    Models are compared in the blocks that differ between clusters: a network that all clusters
    share says how a client's samples differ, not which cluster they need.

    Args:
        chosen: the candidate whose clusters are divided.
        answers: its local models.
        min_members: how many trained members are enough.
        context: of the round.
        clusters: which ones to divide; None is all.
    """
    seen = differing(context.model)
    found = []
    for cluster in range(len(chosen.origins)) if clusters is None else sorted(clusters):
        members = [
            training
            for training, feed in zip(
                chosen.trainings, chosen.contribution_weights[:, cluster], strict=True
            )
            if feed > 0 and training in answers
        ]
        if len(members) < max(min_members, 2):
            continue
        points = np.stack([answers[t].mean.cpu()[seen].double().numpy() for t in members])
        weights = np.array([float(answers[t].num_samples) for t in members])
        seed = derive_seed(context.seed, context.round, "split", cluster)
        labels = weighted_kmeans(points, weights, 2, seed, SPLIT_STARTS)
        if 0 < labels.sum() < len(members):
            leaving = frozenset(
                t.client for t, label in zip(members, labels, strict=True) if label == 1
            )
            explained = explained_share(points, weights, labels)
            found.append(Split(cluster, leaving, explained, len(members)))
    return found


def explained_share(
    points: NDArray[np.float64], weights: NDArray[np.float64], labels: NDArray[np.int64]
) -> float:
    """Share of the weighted variance of points that lies between their groups, in [0, 1]."""
    mean = np.average(points, axis=0, weights=weights)
    total = float((weights * ((points - mean) ** 2).sum(axis=1)).sum())
    if total == 0:
        return 0.0
    between = 0.0
    for label in np.unique(labels):
        inside = labels == label
        centre = np.average(points[inside], axis=0, weights=weights[inside])
        between += float(weights[inside].sum() * ((centre - mean) ** 2).sum())
    return between / total


def _rows_of(chosen: Candidate, costs: Costs, cluster: int) -> list[int]:
    """Rows of the costs whose clients are in a cluster."""
    label = chosen.association.label
    return [row for row, client in enumerate(costs.clients) if label(client) == cluster]


def price_of_uniting(chosen: Candidate, gone: int, kept: int) -> float:
    """What the members of a cluster lose when they all move to one other cluster, nats."""
    if chosen.costs is None:
        return inf
    members = _rows_of(chosen, chosen.costs, gone)
    lost = chosen.costs.competing[members]
    return float((lost[:, kept] - lost[:, gone]).sum())


def cluster_cost(chosen: Candidate, cluster: int) -> float:
    """What the members of a cluster cost in it, nats: no other model can spare them more."""
    if chosen.costs is None:
        return inf
    members = _rows_of(chosen, chosen.costs, cluster)
    return float(chosen.costs.competing[members, cluster].sum())


def price_of_freeing(chosen: Candidate, slot: int) -> float:
    """What the members of a cluster lose when they move to their next best one, nats.

    They move by the costs that associate them, and lose by those by which hypotheses compete.
    """
    if chosen.costs is None:
        return float("inf")
    members = _rows_of(chosen, chosen.costs, slot)
    others = chosen.costs.values[members].copy()
    others[:, slot] = np.inf
    lost = chosen.costs.competing[members]
    rows = np.arange(len(members))
    return float((lost[rows, others.argmin(axis=1)] - lost[rows, slot]).sum())


def split_into(chosen: Candidate, split: Split, slot: int) -> Candidate:
    """The candidate in which half of a cluster goes to a slot that others leave."""
    slot %= len(chosen.origins)
    contribution_weights = chosen.contribution_weights.copy()
    contribution_weights[:, slot] = 0.0
    for row, training in enumerate(chosen.trainings):
        if training.client in split.leaving and contribution_weights[row, split.cluster] > 0:
            contribution_weights[row, slot] = contribution_weights[row, split.cluster]
            contribution_weights[row, split.cluster] = 0.0
    origins = tuple(
        Continue(split.cluster) if index == slot else origin
        for index, origin in enumerate(chosen.origins)
    )
    labels = next_best(chosen, slot) | dict.fromkeys(split.leaving, slot)
    return replace(
        chosen,
        association=chosen.association.updated(labels),
        contribution_weights=contribution_weights,
        origins=origins,
        kind="split",
    )


def widened(chosen: Candidate) -> Candidate:
    """The candidate with one more cluster, which nobody feeds yet."""
    return replace(
        chosen,
        association=chosen.association.widened(),
        contribution_weights=np.pad(chosen.contribution_weights, ((0, 0), (0, 1))),
        origins=(*chosen.origins, chosen.origins[-1]),
    )


def united(chosen: Candidate, gone: int, kept: int) -> Candidate:
    """The candidate in which the clients of one cluster all move to another, and it is gone.

    The other continues from itself, fed by its own members: the mean of two models trained apart
    is a bad one.
    """
    members = chosen.association.labels == gone
    names = [c for c, moves in zip(chosen.association.clients, members, strict=True) if moves]
    moved = chosen.association.updated(dict.fromkeys(names, kept))
    return replace(without(replace(chosen, association=moved), gone), kind="merge")


def without(chosen: Candidate, slot: int) -> Candidate:
    """The candidate with a cluster taken away."""
    moved = chosen.association.updated(next_best(chosen, slot))
    return replace(
        chosen,
        association=moved.without(slot),
        contribution_weights=np.delete(chosen.contribution_weights, slot, axis=1),
        origins=tuple(o for index, o in enumerate(chosen.origins) if index != slot),
        kind="death",
    )


def next_best(chosen: Candidate, slot: int) -> dict[str, int]:
    """Where the clients of a cluster go when it is taken away: the next best that is left.

    Clients without costs in this round go to the largest other cluster.
    """
    sizes = chosen.association.sizes.astype(np.float64)
    sizes[slot] = -1.0
    rows: Mapping[str, int] = {}
    if chosen.costs is not None:
        rows = {client: row for row, client in enumerate(chosen.costs.clients)}
    moved: dict[str, int] = {}
    for client, label in zip(chosen.association.clients, chosen.association.labels, strict=True):
        if label != slot or label == UNSEEN:
            continue
        if client in rows and chosen.costs is not None:
            cost = chosen.costs.values[rows[client]].copy()
            cost[slot] = np.inf
            moved[client] = int(cost.argmin())
        else:
            moved[client] = int(sizes.argmax())
    return moved
