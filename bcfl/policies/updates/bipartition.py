"""Recursive bipartition of clusters that have converged but whose clients have not: SCL.

Sattler, Müller and Samek, "Clustered Federated Learning" (2020).
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Literal

import numpy as np
from numpy.typing import NDArray

from bcfl.hypotheses.hypothesis import Hypothesis
from bcfl.policies.context import RoundContext, check_round, round_number
from bcfl.policies.policy import Ranking
from bcfl.policies.updates.divisions import Divisions, divide, regrouped
from bcfl.policies.updates.local_updates import LocalUpdates, local_updates
from bcfl.policies.updates.update_similarity import cosine_distances, norm_of_mean, norms
from bcfl.protocol.objective import Objective
from bcfl.protocol.requests import Steps

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
        scale: what the two are. `absolute`: lengths, as in the paper; what fits depends on model,
            learning rate and number of steps. `relative`: shares, `mean_norm` of the cluster's
            longest update and `client_norm` of the longest update of the first round.
        when: the first round that may split, from 0, or its share of the run as a number below 1.
        min_members: smallest cluster that may split.
        linkage: `single` finds the bipartition with the least largest similarity across, exactly,
            which is the paper's rule; `complete` is what its program runs.
    """

    objective: Objective
    mean_norm: float = 0.4
    client_norm: float = 1.6
    scale: Literal["absolute", "relative"] = "absolute"
    when: float = 0.4
    min_members: int = 3
    linkage: Linkage = "single"

    def __post_init__(self) -> None:
        for name in ("mean_norm", "client_norm"):
            if not getattr(self, name) >= 0:
                raise ValueError(f"{name} must be at least 0, got {getattr(self, name)}")
        if self.scale not in ("absolute", "relative"):
            raise ValueError(f"scale must be 'absolute' or 'relative', got {self.scale!r}")
        check_round("when", self.when)
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
        state = self._state(hypothesis, updates)
        if context.round < round_number(self.when, context):
            return Ranking.only(divisions.remembered(chosen, state))
        groups = self.groups(updates, state.get("longest", 1.0))
        found, made = divide(updates.clusters, groups, len(hypothesis.clusters))
        labels = dict(zip(updates.clients, map(int, found), strict=True))
        after = divisions.extended(hypothesis, made, updates.labels)
        return Ranking.only(after.remembered(regrouped(chosen, labels, made), state))

    def _state(self, hypothesis: Hypothesis, updates: LocalUpdates) -> dict[str, float]:
        """The longest update of the first round that had any, where lengths are relative."""
        if self.scale == "absolute" or not len(updates):
            return {}
        longest = hypothesis.state.get("longest")
        return {"longest": norms(updates.products).max().item() if longest is None else longest}

    def groups(self, updates: LocalUpdates, longest: float = 1.0) -> NDArray[np.int64]:
        """(clients,) half of its cluster in which each client is, 0 where the cluster stays.

        Args:
            updates: of this round.
            longest: length of the longest update of the first round, for relative lengths.
        """
        groups = np.zeros(len(updates), dtype=np.int64)
        for cluster in np.unique(updates.clusters):
            inside = np.flatnonzero(updates.clusters == cluster)
            products = updates.products[np.ix_(inside, inside)]
            if self.splits(products, longest):
                groups[inside] = bipartition(products, self.linkage)
        return groups

    def splits(self, products: NDArray[np.float64], longest: float = 1.0) -> bool:
        """Whether a cluster is to be split.

        Args:
            products: (clients, clients) inner products of the updates of its clients.
            longest: length of the longest update of the first round, for relative lengths.
        """
        if len(products) < self.min_members:
            return False
        own = float(norms(products).max())
        absolute = self.scale == "absolute"
        mean_norm = self.mean_norm * (1.0 if absolute else own)
        client_norm = self.client_norm * (1.0 if absolute else longest)
        return norm_of_mean(products) < mean_norm and own > client_norm


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
