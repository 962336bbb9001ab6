"""Alternatives that ranking cannot reach: moves that change several clients at once.

The M best associations of a hypothesis differ in a few clients, so they share its basin. A
proposal leaves the basin: it is a hypothesis of its own that competes by weight from the next
scoring on.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from itertools import permutations
from math import inf
from typing import Protocol

from bcfl.policies.context import RoundContext
from bcfl.policies.policy import Candidate
from bcfl.protocol.answers import Trained
from bcfl.protocol.requests import Train
from bcfl.trackers.moves import (
    cluster_cost,
    price_of_freeing,
    price_of_uniting,
    split_into,
    splits,
    united,
    widened,
    without,
)


class Proposal(Protocol):
    """A way to make alternatives to a hypothesis out of what its round has shown."""

    def propose(
        self, chosen: Candidate, answers: Mapping[Train, Trained], context: RoundContext
    ) -> list[Candidate]:
        """Candidates with the same parent and trainings, but other feeds, origins and serving."""
        ...


@dataclass(frozen=True)
class SplitAndFree:
    """Split a cluster in two, and free another for its second half.

    Tries the clusters whose local models fall best into two (2-means, share of the variance
    explained) with the slots that are cheapest to free: what a slot's members lose when they move
    to their next best cluster; an empty cluster costs nothing. Each half continues from the split
    cluster and is fed by its own members alone. The number of clusters stays as it is.

    Half a cluster in an empty slot is one more cluster with clients. Training samples always like
    that, so such a split must also be one that the local models themselves fall into.

    Attributes:
        every: propose in every so many rounds.
        splits: how many clusters to try.
        slots: how many slots to try for each.
        min_members: split only clusters with at least so many trained members.
        min_gain: split into empty slots only what gains at least so much by `Split.gain`, nats.
        max_cost_ratio: free a slot only if that costs its members less than so many times what the
            split cluster's members cost now. Losses are positive, so two models can spare these
            members no more than once that; the rest allows for what else may change in a round.
    """

    every: int = 2
    splits: int = 2
    slots: int = 2
    min_members: int = 4
    min_gain: float = 3.0
    max_cost_ratio: float = 2.0

    def __post_init__(self) -> None:
        check_least(self, every=1, splits=1, slots=1, min_members=2)
        if not 0 < self.max_cost_ratio < inf:
            raise ValueError(f"hope must be above 0 and finite, got {self.max_cost_ratio}")

    def propose(
        self, chosen: Candidate, answers: Mapping[Train, Trained], context: RoundContext
    ) -> list[Candidate]:
        """Alternatives in rounds that are due; none where costs are unknown or K is 1."""
        num_clusters = len(chosen.origins)
        if (context.round + 1) % self.every or chosen.costs is None or num_clusters < 2:
            return []
        prices = {slot: price_of_freeing(chosen, slot) for slot in range(num_clusters)}
        paying = self._paying(chosen, prices)
        found = splits(chosen, answers, self.min_members, context, paying)
        sizes = chosen.association.sizes
        made = []
        for split in sorted(found, key=lambda s: -s.explained)[: self.splits]:
            slots = [
                slot
                for slot in paying[split.cluster]
                if sizes[slot] > 0 or split.gain >= self.min_gain
            ]
            for slot in sorted(slots, key=lambda s: prices[s])[: self.slots]:
                made.append(split_into(chosen, split, slot))
        return made

    def _paying(
        self, chosen: Candidate, prices: Mapping[int, float]
    ) -> Mapping[int, Sequence[int]]:
        """Slots that may be freed for half of a cluster with some hope of gain, by cluster."""
        worth = {cluster: self.max_cost_ratio * cluster_cost(chosen, cluster) for cluster in prices}
        return {
            cluster: slots
            for cluster, most in worth.items()
            if (slots := [s for s, price in prices.items() if s != cluster and price < most])
        }


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

    def __post_init__(self) -> None:
        check_least(self, every=1, splits=1, min_members=2, max_clusters=1)

    def propose(
        self, chosen: Candidate, answers: Mapping[Train, Trained], context: RoundContext
    ) -> list[Candidate]:
        """Alternatives with one more cluster, in rounds that are due."""
        if (context.round + 1) % self.every or len(chosen.origins) >= self.max_clusters:
            return []
        found = splits(chosen, answers, self.min_members, context)
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

    def __post_init__(self) -> None:
        check_least(self, every=1, slots=1)

    def propose(
        self, chosen: Candidate, answers: Mapping[Train, Trained], context: RoundContext
    ) -> list[Candidate]:
        """Alternatives with one cluster less, in rounds that are due."""
        num_clusters = len(chosen.origins)
        if (context.round + 1) % self.every or chosen.costs is None or num_clusters < 2:
            return []
        cheapest = sorted(range(num_clusters), key=lambda s: price_of_freeing(chosen, s))
        return [without(chosen, slot) for slot in cheapest[: self.slots]]


@dataclass(frozen=True)
class Merge:
    """Unite two clusters that the data cannot tell apart.

    Tries the pairs whose members lose least when they all move from one cluster to the other, by
    the costs by which hypotheses compete. Unlike `Death` it keeps a cluster's members together. An
    empty cluster is tried once, since with whom it unites makes no difference.

    Attributes:
        every: propose in every so many rounds.
        pairs: how many pairs of clusters to try.
    """

    every: int = 2
    pairs: int = 2

    def __post_init__(self) -> None:
        check_least(self, every=1, pairs=1)

    def propose(
        self, chosen: Candidate, answers: Mapping[Train, Trained], context: RoundContext
    ) -> list[Candidate]:
        """Alternatives with one cluster less, in rounds that are due."""
        if (context.round + 1) % self.every or chosen.costs is None:
            return []
        sizes = chosen.association.sizes
        prices = {
            (gone, kept): price_of_uniting(chosen, gone, kept)
            for gone, kept in permutations(range(len(chosen.origins)), 2)
            if sizes[kept] > 0
        }
        best: dict[frozenset[int], tuple[int, int]] = {}
        for pair in sorted(prices, key=lambda p: prices[p]):
            best.setdefault(frozenset(pair if sizes[pair[0]] > 0 else pair[:1]), pair)
        return [united(chosen, *pair) for pair in list(best.values())[: self.pairs]]


def every_proposal(
    proposals: Sequence[Proposal],
    chosen: Candidate,
    answers: Mapping[Train, Trained],
    context: RoundContext,
) -> list[Candidate]:
    """What all kinds of proposals have to offer, within the bounds on cluster sizes."""
    every = (made for one in proposals for made in one.propose(chosen, answers, context))
    return [made for made in every if chosen.cluster_size.allows(made.association)]


def check_least(proposal: Proposal, **least: int) -> None:
    """Check numbers of a proposal.

    Raises:
        ValueError: one of them is below what is given for it.
    """
    for name, bound in least.items():
        if getattr(proposal, name) < bound:
            raise ValueError(f"{name} must be at least {bound}, got {getattr(proposal, name)}")
