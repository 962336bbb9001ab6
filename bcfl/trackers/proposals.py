"""Proposals of a multi-hypothesis tracker: alternatives that differ in many clients at once.

The M best associations of a hypothesis differ in a few clients and share a local optimum. A
proposal leaves it by a split, merge, birth or death move, and competes as a hypothesis of its own
from the next scoring on.
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
    find_splits,
    merge_clusters,
    merge_cost,
    removal_cost,
    remove_cluster,
    split_cluster,
    with_empty_cluster,
)


class Proposal(Protocol):
    """Makes alternatives to the best hypothesis from its costs and local models."""

    def propose(
        self, candidate: Candidate, answers: Mapping[Train, Trained], context: RoundContext
    ) -> list[Candidate]:
        """Alternatives with the same parent and trainings, but other clusters.

        Args:
            candidate: best association of the round, with its costs.
            answers: its local models, by training.
            context: read-only context of the round.

        Returns:
            Candidates with other contribution weights, origins and serving.
        """
        ...


@dataclass(frozen=True, kw_only=True)
class SplitAndFree:
    """Split a cluster in two, the second half taking the slot of a cluster that is freed.

    Tries the clusters with the clearest division of their local models (2-means, share of variance
    explained) and the slots that are cheapest to free (`removal_cost`; an empty cluster is free of
    cost). Each half continues from the split cluster and is trained by its own members alone. The
    number of clusters is preserved.

    A split into an empty slot adds a cluster with clients, which always raises the likelihood of
    training samples. It is therefore proposed only if the local models support it by BIC.

    Attributes:
        every: number of rounds from one proposal to the next.
        splits: largest number of clusters tried.
        slots: largest number of slots tried for each.
        min_members: fewest trained members of a cluster that is split.
        min_gain: least `bcfl.trackers.moves.Split.gain` of a split into an empty slot, nats.
        max_cost_ratio: largest cost of freeing a slot, as a multiple of the present cost of the
            cluster that is split. Losses are non-negative, so a split cannot gain more than that
            cost itself; the rest allows for other changes within a round.
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
            raise ValueError(
                f"max_cost_ratio must be above 0 and finite, got {self.max_cost_ratio}"
            )

    def propose(
        self, candidate: Candidate, answers: Mapping[Train, Trained], context: RoundContext
    ) -> list[Candidate]:
        """Split alternatives, every `every` rounds. See `bcfl.trackers.Proposal.propose`."""
        num_clusters = len(candidate.origins)
        if (context.round + 1) % self.every or candidate.costs is None or num_clusters < 2:
            return []
        prices = {slot: removal_cost(candidate, slot) for slot in range(num_clusters)}
        paying = self._paying(candidate, prices)
        divided = find_splits(candidate, answers, self.min_members, context, paying)
        sizes = candidate.association.sizes
        alternatives = []
        for split in sorted(divided, key=lambda s: -s.explained)[: self.splits]:
            slots = [
                slot
                for slot in paying[split.cluster]
                if sizes[slot] > 0 or split.gain >= self.min_gain
            ]
            for slot in sorted(slots, key=lambda s: prices[s])[: self.slots]:
                alternatives.append(split_cluster(candidate, split, slot))
        return alternatives

    def _paying(
        self, candidate: Candidate, prices: Mapping[int, float]
    ) -> Mapping[int, Sequence[int]]:
        """For each cluster, the slots that a split of it may pay for."""
        most = {
            cluster: self.max_cost_ratio * cluster_cost(candidate, cluster) for cluster in prices
        }
        return {
            cluster: slots
            for cluster, bound in most.items()
            if (slots := [s for s, price in prices.items() if s != cluster and price < bound])
        }


@dataclass(frozen=True)
class Birth:
    """Split a cluster in two, the second half becoming a new cluster.

    For an unknown number of clusters; hypotheses must then compete on held-out samples.

    Attributes:
        every: number of rounds from one proposal to the next.
        splits: largest number of clusters tried.
        min_members: fewest trained members of a cluster that is split.
        max_clusters: largest number of clusters.
    """

    every: int = 2
    splits: int = 2
    min_members: int = 4
    max_clusters: int = 16

    def __post_init__(self) -> None:
        check_least(self, every=1, splits=1, min_members=2, max_clusters=1)

    def propose(
        self, candidate: Candidate, answers: Mapping[Train, Trained], context: RoundContext
    ) -> list[Candidate]:
        """Alternatives with one more cluster, every `every` rounds.

        See `bcfl.trackers.Proposal.propose`.
        """
        if (context.round + 1) % self.every or len(candidate.origins) >= self.max_clusters:
            return []
        divided = find_splits(candidate, answers, self.min_members, context)
        best = sorted(divided, key=lambda s: -s.explained)[: self.splits]
        return [
            replace(split_cluster(with_empty_cluster(candidate), s, -1), kind="birth") for s in best
        ]


@dataclass(frozen=True)
class Death:
    """Remove a cluster; its members join their next best ones.

    Attributes:
        every: number of rounds from one proposal to the next.
        slots: number of clusters tried, those of least `removal_cost` first.
    """

    every: int = 2
    slots: int = 1

    def __post_init__(self) -> None:
        check_least(self, every=1, slots=1)

    def propose(
        self, candidate: Candidate, answers: Mapping[Train, Trained], context: RoundContext
    ) -> list[Candidate]:
        """Alternatives with one cluster less, every `every` rounds.

        See `bcfl.trackers.Proposal.propose`.
        """
        num_clusters = len(candidate.origins)
        if (context.round + 1) % self.every or candidate.costs is None or num_clusters < 2:
            return []
        cheapest = sorted(range(num_clusters), key=lambda s: removal_cost(candidate, s))
        return [remove_cluster(candidate, slot) for slot in cheapest[: self.slots]]


@dataclass(frozen=True)
class Merge:
    """Merge two clusters that the data cannot tell apart.

    Tries the pairs of least `merge_cost`. Unlike `Death` it keeps a cluster's members together. An
    empty cluster is tried once, since its partner makes no difference.

    Attributes:
        every: number of rounds from one proposal to the next.
        pairs: largest number of pairs of clusters tried.
    """

    every: int = 2
    pairs: int = 2

    def __post_init__(self) -> None:
        check_least(self, every=1, pairs=1)

    def propose(
        self, candidate: Candidate, answers: Mapping[Train, Trained], context: RoundContext
    ) -> list[Candidate]:
        """Alternatives with one cluster less, every `every` rounds.

        See `bcfl.trackers.Proposal.propose`.
        """
        if (context.round + 1) % self.every or candidate.costs is None:
            return []
        sizes = candidate.association.sizes
        prices = {
            (source, target): merge_cost(candidate, source, target)
            for source, target in permutations(range(len(candidate.origins)), 2)
            if sizes[target] > 0
        }
        best: dict[frozenset[int], tuple[int, int]] = {}
        for pair in sorted(prices, key=lambda p: prices[p]):
            best.setdefault(frozenset(pair if sizes[pair[0]] > 0 else pair[:1]), pair)
        return [merge_clusters(candidate, *pair) for pair in list(best.values())[: self.pairs]]


def all_proposals(
    proposals: Sequence[Proposal],
    candidate: Candidate,
    answers: Mapping[Train, Trained],
    context: RoundContext,
) -> list[Candidate]:
    """Alternatives of all proposals, within the bounds on cluster sizes.

    Args:
        proposals: kinds of alternatives.
        candidate: best association of the round, with its costs.
        answers: its local models, by training.
        context: read-only context of the round.
    """
    alternatives = (
        alternative
        for proposal in proposals
        for alternative in proposal.propose(candidate, answers, context)
    )
    return [a for a in alternatives if candidate.cluster_size.allows(a.association)]


def check_least(proposal: Proposal, **least: int) -> None:
    """Check lower bounds on attributes of a proposal.

    Args:
        proposal: the proposal.
        **least: smallest allowed value of each attribute.

    Raises:
        ValueError: an attribute lies below its bound.
    """
    for name, bound in least.items():
        if getattr(proposal, name) < bound:
            raise ValueError(f"{name} must be at least {bound}, got {getattr(proposal, name)}")
