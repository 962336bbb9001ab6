"""A clustering with directed support, and the merging of clusters that support each other.

"Asymmetric clustering in federated continual learning", algorithm 3.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field, replace
from itertools import combinations
from typing import Literal

import numpy as np

from bcfl.hypotheses.association import UNSEEN
from bcfl.hypotheses.hypothesis import Hypothesis
from bcfl.policies.faacl.support import Support

AfterMerge = Literal["intersection", "empty"]


@dataclass(frozen=True)
class Clustering:
    """Clusters of devices, in partitions, with the support between them.

    Attributes:
        members: devices of each cluster, sorted.
        sources: cluster of the hypothesis whose model each cluster goes on from; -1 is the model
            that everybody starts from.
        partitions: partition of each cluster, numbered from 0 without gaps.
        support: who supports whom.
    """

    members: tuple[tuple[str, ...], ...] = ()
    sources: tuple[int, ...] = ()
    partitions: tuple[int, ...] = ()
    support: Support = field(default_factory=Support)

    @classmethod
    def of(cls, hypothesis: Hypothesis) -> Clustering:
        """The clustering that a hypothesis remembers; empty before the first round."""
        if "partitions" not in hypothesis.state:
            return cls()
        association = hypothesis.association
        members: list[list[str]] = [[] for _ in hypothesis.clusters]
        for client, label in zip(association.clients, association.labels, strict=True):
            if label != UNSEEN:
                members[label].append(client)
        return cls(
            tuple(map(tuple, members)),
            tuple(range(len(members))),
            tuple(hypothesis.state["partitions"]),
            Support.of(hypothesis.state),
        )

    @property
    def labels(self) -> dict[str, int]:
        """Cluster of each device."""
        return {client: index for index, one in enumerate(self.members) for client in one}

    def joined_by(self, client: str, partition: int) -> Clustering:
        """With one more cluster, of one device that was not there."""
        return replace(
            self,
            members=(*self.members, (client,)),
            sources=(*self.sources, UNSEEN),
            partitions=(*self.partitions, partition),
        )

    def same_as(self, other: Clustering) -> bool:
        """Whether devices and supporters are the same, whatever the p-values."""
        same = self.support.p_values.keys() == other.support.p_values.keys()
        return same and self.members == other.members


def merge_mutual(
    before: Clustering, random: np.random.Generator, supporters: AfterMerge = "intersection"
) -> Clustering:
    """Merge pairs of clusters that support each other; each cluster merges at most once.

    Algorithm 3 as printed can merge a cluster twice, which leaves no partition of the devices. A
    merged cluster has the place of its first parent and goes on from the model of either, by
    chance. Clusters that were supported by a parent are supported by the merged cluster.

    Args:
        before: clusters and their support; pairs are tried in the order of the clusters.
        random: decides whose model goes on.
        supporters: of a merged cluster: those that both parents had (the thesis), or none, and
            nobody keeps a parent as its supporter (the program).
    """
    couples = _couples(before)
    gone = set(couples.values())
    living = [index for index in range(len(before.members)) if index not in gone]
    sources = {
        index: before.sources[(index, couples[index])[int(random.integers(2))]]
        if index in couples
        else before.sources[index]
        for index in living
    }
    members = {
        index: tuple(sorted(before.members[index] + before.members[couples[index]]))
        if index in couples
        else before.members[index]
        for index in living
    }
    return Clustering(
        tuple(members.values()),
        tuple(sources.values()),
        tuple(before.partitions[index] for index in living),
        _remapped(before.support, couples, _places(couples, len(before.members)), supporters),
    )


def places_after_merging(before: Clustering) -> tuple[int, ...]:
    """For each cluster, its number after `merge_mutual`; both parents have that of their child.

    Args:
        before: clusters and their support.
    """
    names = _places(_couples(before), len(before.members))
    return tuple(names[index] for index in range(len(before.members)))


def _places(couples: Mapping[int, int], count: int) -> dict[int, int]:
    """New number of each of so many clusters; both of a couple have that of their child."""
    living = [index for index in range(count) if index not in set(couples.values())]
    names = {old: new for new, old in enumerate(living)}
    return names | {second: names[first] for first, second in couples.items()}


def _couples(before: Clustering) -> dict[int, int]:
    """Clusters that merge, by the first of each pair."""
    couples: dict[int, int] = {}
    taken: set[int] = set()
    for one, other in combinations(range(len(before.members)), 2):
        if not {one, other} & taken and before.support.mutual(one, other):
            couples[one] = other
            taken |= {one, other}
    return couples


def _remapped(
    support: Support,
    couples: Mapping[int, int],
    names: Mapping[int, int],
    supporters: AfterMerge,
) -> Support:
    """The support between the clusters that are left, under their new numbers."""
    parents = {**{b: a for a, b in couples.items()}, **couples}
    p_values: dict[tuple[int, int], float] = {}
    for (own, other), p_value in sorted(support.p_values.items()):
        if supporters == "empty" and (own in parents or other in parents):
            continue
        partner = parents.get(own)
        if partner == other or (partner is not None and (partner, other) not in support.p_values):
            continue
        pair = names[own], names[other]
        p_values[pair] = max(p_value, p_values.get(pair, 0.0))
    return Support(p_values)
