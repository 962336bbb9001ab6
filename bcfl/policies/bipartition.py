"""Recursive bipartition of clusters that have converged but whose clients have not: SCL.

Sattler, Müller and Samek, "Clustered Federated Learning" (2020).
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Literal

import numpy as np
from numpy.typing import NDArray

from bcfl.hypothesis import Hypothesis
from bcfl.policies.divisions import Divisions, divide, regrouped
from bcfl.policies.local_updates import LocalUpdates, local_updates
from bcfl.policies.policy import Ranking, RoundContext
from bcfl.policies.schedule import check_when, round_number
from bcfl.policies.update_similarity import cosine_distances, norm_of_mean, norms
from bcfl.requests import Objective, Steps

Linkage = Literal["single", "complete"]


@dataclass(frozen=True)
class RecursiveBipartition:
    """Split a cluster whose mean update is short although some client's update is long.

    Several clusters may split in a round, each once. Clients that miss a split are placed when
    they come back. Norms and cosines are of trainable parameters only, of the clients that trained.

    Attributes:
        objective: local objective. The paper's program takes the unweighted mean of the updates of
            a cluster, which is curvature `uniform`.
        mean_norm: a cluster splits only if its mean update is shorter than this (epsilon_1),
        client_norm: and if a client's update is longer than this (epsilon_2).
        when: the first round that may split, from 0, or its share of the run as a number below 1.
        min_members: smallest cluster that may split.
        linkage: `single` finds the bipartition with the least largest similarity across, exactly,
            which is the paper's rule; `complete` is what its program runs.
    """

    objective: Objective
    mean_norm: float = 0.4
    client_norm: float = 1.6
    when: float = 0.4
    min_members: int = 3
    linkage: Linkage = "single"

    def __post_init__(self) -> None:
        for name in ("mean_norm", "client_norm"):
            if not getattr(self, name) >= 0:
                raise ValueError(f"{name} must be at least 0, got {getattr(self, name)}")
        check_when("when", self.when)
        if self.min_members < 2:
            raise ValueError(f"min_members must be at least 2, got {self.min_members}")
        if self.linkage not in ("single", "complete"):
            raise ValueError(f"linkage must be 'single' or 'complete', got {self.linkage!r}")

    @property
    def num_clusters(self) -> int:
        """One, at the start."""
        return 1

    def associate(self, hypothesis: Hypothesis, context: RoundContext) -> Steps[Ranking]:
        """Place late clients, train, and split the clusters that ask for it."""
        known = Divisions.of(hypothesis)
        divisions, places = yield from known.place(hypothesis, context, self.objective)
        updates = yield from local_updates(hypothesis, places, self.objective, context)
        chosen = updates.candidate(self.objective)
        if context.round < round_number(self.when, context):
            return Ranking.only(divisions.remembered(chosen, {}))
        groups = self.groups(updates)
        found, made = divide(updates.clusters, groups, len(hypothesis.clusters))
        labels = dict(zip(updates.clients, map(int, found), strict=True))
        after = divisions.extended(hypothesis, made, updates.labels)
        return Ranking.only(after.remembered(regrouped(chosen, labels, made), {}))

    def groups(self, updates: LocalUpdates) -> NDArray[np.int64]:
        """(clients,) half of its cluster in which each client is, 0 where the cluster stays."""
        groups = np.zeros(len(updates), dtype=np.int64)
        for cluster in np.unique(updates.clusters):
            inside = np.flatnonzero(updates.clusters == cluster)
            products = updates.products[np.ix_(inside, inside)]
            if self.splits(products):
                groups[inside] = bipartition(products, self.linkage)
        return groups

    def splits(self, products: NDArray[np.float64]) -> bool:
        """Whether a cluster with these inner products of updates is to be split."""
        return (
            len(products) >= self.min_members
            and norm_of_mean(products) < self.mean_norm
            and float(norms(products).max()) > self.client_norm
        )


def bipartition(products: NDArray[np.float64], linkage: Linkage = "single") -> NDArray[np.int64]:
    """(updates,) 0 or 1: the half of each.

    Single linkage minimises the largest cosine between updates of different halves: it joins the
    most similar ones first, so that what is left apart is as unlike as can be.

    Args:
        products: (updates, updates) inner products, at least two updates.
        linkage: `single` or `complete`.
    """
    from sklearn.cluster import AgglomerativeClustering

    method = AgglomerativeClustering(n_clusters=2, metric="precomputed", linkage=linkage)
    halves: NDArray[np.int64] = method.fit(cosine_distances(products)).labels_.astype(np.int64)
    return halves
