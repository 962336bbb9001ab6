"""Clusterings with directed support, and merging of mutual supporters (FAACL, algorithm 3)."""

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
        sources: cluster of the hypothesis whose model each cluster continues from; -1 is the
            initial model.
        partitions: partition of each cluster, numbered from 0 without gaps.
        support: directed support between the clusters.
    """

    members: tuple[tuple[str, ...], ...] = ()
    sources: tuple[int, ...] = ()
    partitions: tuple[int, ...] = ()
    support: Support = field(default_factory=Support)

    @classmethod
    def of(cls, hypothesis: Hypothesis) -> Clustering:
        """Read from a hypothesis; empty before the first round."""
        if "partitions" not in hypothesis.state:
            return cls()
        members: list[list[str]] = [[] for _ in hypothesis.clusters]
        for client, label in hypothesis.association.by_client.items():
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
        return {client: index for index, row in enumerate(self.members) for client in row}

    def joined_by(self, client: str, partition: int) -> Clustering:
        """With one more cluster, of a single new device.

        Args:
            client: name of the device.
            partition: partition of the new cluster.
        """
        return replace(
            self,
            members=(*self.members, (client,)),
            sources=(*self.sources, UNSEEN),
            partitions=(*self.partitions, partition),
        )

    def same_as(self, other: Clustering) -> bool:
        """Whether members and supporters are the same, regardless of p-values."""
        same = self.support.p_values.keys() == other.support.p_values.keys()
        return same and self.members == other.members


def merge_mutual(
    before: Clustering, rng: np.random.Generator, supporters: AfterMerge = "intersection"
) -> Clustering:
    """Merge pairs of a partition that support each other; each cluster merges at most once.

    Algorithm 3 as printed can merge a cluster twice, which does not partition the devices. A merged
    cluster takes the index of its first parent and continues from the model of either, at random.
    Clusters that were supported by a parent are supported by the merged cluster.

    Args:
        before: clusters and their support; pairs are tried in the order of the clusters.
        rng: chooses the model that is continued.
        supporters: supporters of a merged cluster. `intersection`: those of both parents (the
            thesis). `empty`: none, and no cluster keeps a parent as supporter (the author's code).

    Returns:
        The clustering after merging.
    """
    couples = _couples(before)
    absorbed = set(couples.values())
    remaining = [index for index in range(len(before.members)) if index not in absorbed]
    sources = {
        index: before.sources[(index, couples[index])[int(rng.integers(2))]]
        if index in couples
        else before.sources[index]
        for index in remaining
    }
    members = {
        index: tuple(sorted(before.members[index] + before.members[couples[index]]))
        if index in couples
        else before.members[index]
        for index in remaining
    }
    return Clustering(
        tuple(members.values()),
        tuple(sources.values()),
        tuple(before.partitions[index] for index in remaining),
        _remapped(before.support, couples, _new_indices(couples, len(before.members)), supporters),
    )


def indices_after_merging(before: Clustering) -> tuple[int, ...]:
    """Index of each cluster after `merge_mutual`; both parents have that of their child.

    Args:
        before: clusters and their support.
    """
    new = _new_indices(_couples(before), len(before.members))
    return tuple(new[index] for index in range(len(before.members)))


def _new_indices(couples: Mapping[int, int], count: int) -> dict[int, int]:
    """New index of each of `count` clusters; both of a couple have that of their child."""
    remaining = [index for index in range(count) if index not in set(couples.values())]
    indices = {old: new for new, old in enumerate(remaining)}
    return indices | {second: indices[first] for first, second in couples.items()}


def _couples(before: Clustering) -> dict[int, int]:
    """Clusters of one partition that merge, by the first of each pair."""
    couples: dict[int, int] = {}
    taken: set[int] = set()
    for first, second in combinations(range(len(before.members)), 2):
        together = before.partitions[first] == before.partitions[second]
        if not {first, second} & taken and together and before.support.mutual(first, second):
            couples[first] = second
            taken |= {first, second}
    return couples


def _remapped(
    support: Support,
    couples: Mapping[int, int],
    indices: Mapping[int, int],
    supporters: AfterMerge,
) -> Support:
    """The support between the remaining clusters, under their new indices."""
    parents = {**{b: a for a, b in couples.items()}, **couples}
    p_values: dict[tuple[int, int], float] = {}
    for (own, other), p_value in sorted(support.p_values.items()):
        if supporters == "empty" and (own in parents or other in parents):
            continue
        partner = parents.get(own)
        if partner == other or (partner is not None and (partner, other) not in support.p_values):
            continue
        pair = indices[own], indices[other]
        p_values[pair] = max(p_value, p_values.get(pair, 0.0))
    return Support(p_values)
