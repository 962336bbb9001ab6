"""Alternatives that ranking cannot reach: moves that change several clients at once.

The M best associations of a hypothesis differ in a few clients, so they share its basin. A
proposal leaves the basin: it is a hypothesis of its own that competes by weight from the next
scoring on.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from typing import Protocol

import numpy as np
from numpy.typing import NDArray

from bcfl.association import UNSEEN
from bcfl.policies.kmeans import weighted_kmeans
from bcfl.policies.policy import Candidate, Continue, RoundContext
from bcfl.requests import Train, Trained
from bcfl.seeds import derive_seed


class Proposal(Protocol):
    """A way to make alternatives to a hypothesis out of what its round has shown."""

    def propose(
        self, chosen: Candidate, answers: Mapping[Train, Trained], context: RoundContext
    ) -> list[Candidate]:
        """Candidates with the same parent and trainings, but other feeds, origins and serving."""
        ...


@dataclass(frozen=True, eq=False)
class Split:
    """A cluster whose local models fall into two.

    Attributes:
        cluster: the cluster.
        leaving: names of the clients of one half.
        explained: share of the local models' variance that the two halves explain.
    """

    cluster: int
    leaving: frozenset[str]
    explained: float


@dataclass(frozen=True)
class SplitAndFree:
    """Split a cluster in two, and free another for its second half.

    Tries the clusters whose local models fall best into two (2-means, share of the variance
    explained) with the slots that are cheapest to free: what a slot's members lose when they move
    to their next best cluster; an empty cluster costs nothing. Each half continues from the split
    cluster and is fed by its own members alone. The number of clusters stays as it is.

    Attributes:
        every: propose in every so many rounds.
        splits: how many clusters to try.
        slots: how many slots to try for each.
        min_members: split only clusters with at least so many trained members.
    """

    every: int = 2
    splits: int = 2
    slots: int = 2
    min_members: int = 4

    def __post_init__(self) -> None:
        for name, least in (("every", 1), ("splits", 1), ("slots", 1), ("min_members", 2)):
            if getattr(self, name) < least:
                raise ValueError(f"{name} must be at least {least}, got {getattr(self, name)}")

    def propose(
        self, chosen: Candidate, answers: Mapping[Train, Trained], context: RoundContext
    ) -> list[Candidate]:
        """Alternatives in rounds that are due; none where costs are unknown or K is 1."""
        num_clusters = len(chosen.origins)
        if (context.round + 1) % self.every or chosen.costs is None or num_clusters < 2:
            return []
        found = splits(chosen, answers, self.min_members, (context.seed, context.round))
        made = []
        for split in sorted(found, key=lambda s: -s.explained)[: self.splits]:
            prices = {
                slot: price_of_freeing(chosen, slot)
                for slot in range(num_clusters)
                if slot != split.cluster
            }
            for slot in sorted(prices, key=lambda s: prices[s])[: self.slots]:
                made.append(split_into(chosen, split, slot))
        return made


@dataclass(frozen=True)
class Birth:
    """Split a cluster in two, the second half becoming a cluster of its own.

    For hypotheses with an unknown number of clusters, which must be judged on held-out samples.

    Attributes:
        every: propose in every so many rounds.
        splits: how many clusters to try.
        min_members: split only clusters with at least so many trained members.
        max_clusters: never go beyond so many clusters.
    """

    every: int = 2
    splits: int = 2
    min_members: int = 4
    max_clusters: int = 16

    def propose(
        self, chosen: Candidate, answers: Mapping[Train, Trained], context: RoundContext
    ) -> list[Candidate]:
        """Alternatives with one more cluster, in rounds that are due."""
        if (context.round + 1) % self.every or len(chosen.origins) >= self.max_clusters:
            return []
        found = splits(chosen, answers, self.min_members, (context.seed, context.round))
        best = sorted(found, key=lambda s: -s.explained)[: self.splits]
        return [replace(split_into(widened(chosen), s, -1), kind="birth") for s in best]


@dataclass(frozen=True)
class Death:
    """Take a cluster away; its members go to their next best.

    Attributes:
        every: propose in every so many rounds.
        slots: how many of the cheapest clusters to try.
    """

    every: int = 2
    slots: int = 1

    def propose(
        self, chosen: Candidate, answers: Mapping[Train, Trained], context: RoundContext
    ) -> list[Candidate]:
        """Alternatives with one cluster less, in rounds that are due."""
        num_clusters = len(chosen.origins)
        if (context.round + 1) % self.every or chosen.costs is None or num_clusters < 2:
            return []
        cheapest = sorted(range(num_clusters), key=lambda s: price_of_freeing(chosen, s))
        return [without(chosen, slot) for slot in cheapest[: self.slots]]


def widened(chosen: Candidate) -> Candidate:
    """The candidate with one more cluster, which nobody feeds yet."""
    return replace(
        chosen,
        association=chosen.association.widened(),
        feeds=np.pad(chosen.feeds, ((0, 0), (0, 1))),
        origins=(*chosen.origins, chosen.origins[-1]),
    )


def without(chosen: Candidate, slot: int) -> Candidate:
    """The candidate with a cluster taken away."""
    moved = chosen.association.updated(next_best(chosen, slot))
    return replace(
        chosen,
        association=moved.without(slot),
        feeds=np.delete(chosen.feeds, slot, axis=1),
        origins=tuple(o for index, o in enumerate(chosen.origins) if index != slot),
        kind="death",
    )


def splits(
    chosen: Candidate,
    answers: Mapping[Train, Trained],
    min_members: int,
    when: tuple[int, int],
) -> list[Split]:
    """For each cluster with enough trained members, the best division of its local models."""
    found = []
    for cluster in range(len(chosen.origins)):
        members = [
            training
            for training, feed in zip(chosen.trainings, chosen.feeds[:, cluster], strict=True)
            if feed > 0 and training in answers
        ]
        if len(members) < max(min_members, 2):
            continue
        points = np.stack([answers[t].mean.double().cpu().numpy() for t in members])
        weights = np.array([float(answers[t].num_samples) for t in members])
        seed = derive_seed(*when, "split", cluster)
        labels = weighted_kmeans(points, weights, 2, seed)
        if 0 < labels.sum() < len(members):
            leaving = frozenset(
                t.client for t, label in zip(members, labels, strict=True) if label == 1
            )
            found.append(Split(cluster, leaving, explained_share(points, weights, labels)))
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


def price_of_freeing(chosen: Candidate, slot: int) -> float:
    """What the members of a cluster lose when they move to their next best one, nats."""
    if chosen.costs is None:
        return float("inf")
    members = [
        row
        for row, client in enumerate(chosen.costs.clients)
        if chosen.association.label(client) == slot
    ]
    others = np.delete(chosen.costs.values[members], slot, axis=1)
    return float((others.min(axis=1) - chosen.costs.values[members, slot]).sum())


def split_into(chosen: Candidate, split: Split, slot: int) -> Candidate:
    """The candidate in which half of a cluster goes to a slot that others leave."""
    slot %= len(chosen.origins)
    feeds = chosen.feeds.copy()
    feeds[:, slot] = 0.0
    for row, training in enumerate(chosen.trainings):
        if training.client in split.leaving and feeds[row, split.cluster] > 0:
            feeds[row, slot] = feeds[row, split.cluster]
            feeds[row, split.cluster] = 0.0
    origins = tuple(
        Continue(split.cluster) if index == slot else origin
        for index, origin in enumerate(chosen.origins)
    )
    labels = next_best(chosen, slot) | dict.fromkeys(split.leaving, slot)
    return replace(
        chosen,
        association=chosen.association.updated(labels),
        feeds=feeds,
        origins=origins,
        kind="split",
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


def every_proposal(
    proposals: Sequence[Proposal],
    chosen: Candidate,
    answers: Mapping[Train, Trained],
    context: RoundContext,
) -> list[Candidate]:
    """What all kinds of proposals have to offer."""
    return [made for one in proposals for made in one.propose(chosen, answers, context)]
