"""Recursive bipartition by cosine similarity of updates (SCL; Sattler, Müller and Samek, 2020).

"Clustered Federated Learning: Model-Agnostic Distributed Multitask Optimization under Privacy
Constraints".
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
from bcfl.runtime import check_whole

Linkage = Literal["single", "complete"]


@dataclass(frozen=True, kw_only=True)
class RecursiveBipartition:
    """Split a cluster near a stationary point whose clients' updates are still large.

    Several clusters may split in a round, each once. Clients that miss a split are assigned when
    they return. Norms and cosines are those of trainable parameters, over the clients that trained.

    Attributes:
        objective: local objective. The authors' code takes the unweighted mean of the updates of a
            cluster, which is curvature `uniform`.
        mean_norm: epsilon_1; a cluster splits only if the norm of its mean update is smaller,
        client_norm: epsilon_2; and if the norm of some client's update is larger.
        scale: scale of both. `absolute`: norms, as in the paper; suitable values depend on model,
            learning rate and number of steps. `relative`: shares, `mean_norm` of the cluster's
            largest update and `client_norm` of the largest update of the first round.
        first_round: first round that may split, from 0, or its share of the run below 1.
        min_members: size of the smallest cluster that may split.
        linkage: `single` minimises the largest similarity across the bipartition, exactly, which is
            the paper's rule; `complete` is what the authors' code runs.
    """

    objective: Objective
    mean_norm: float = 0.4
    client_norm: float = 1.6
    scale: Literal["absolute", "relative"] = "absolute"
    first_round: float = 0.4
    min_members: int = 3
    linkage: Linkage = "single"

    def __post_init__(self) -> None:
        for name in ("mean_norm", "client_norm"):
            if not getattr(self, name) >= 0:
                raise ValueError(f"{name} must be at least 0, got {getattr(self, name)}")
        if self.scale not in ("absolute", "relative"):
            raise ValueError(f"scale must be 'absolute' or 'relative', got {self.scale!r}")
        check_round("first_round", self.first_round)
        check_whole("min_members", self.min_members, 2)
        if self.linkage not in ("single", "complete"):
            raise ValueError(f"linkage must be 'single' or 'complete', got {self.linkage!r}")

    @property
    def num_clusters(self) -> int:
        """One, at the start."""
        return 1

    def associate(self, hypothesis: Hypothesis, context: RoundContext) -> Steps[Ranking]:
        """Assign late clients, train, and split clusters. See `bcfl.policies.Policy.associate`."""
        earlier = Divisions.of(hypothesis)
        divisions, assigned = yield from earlier.assign(hypothesis, context, self.objective)
        updates = yield from local_updates(hypothesis, assigned, self.objective, context)
        chosen = updates.candidate(self.objective)
        state = self._state(hypothesis, updates)
        if context.round < round_number(self.first_round, context):
            return Ranking.only(divisions.carried_by(chosen, state))
        groups = self.groups(updates, state.get("longest", 1.0))
        clusters, new = divide(updates.clusters, groups, len(hypothesis.clusters))
        labels = dict(zip(updates.clients, map(int, clusters), strict=True))
        after = divisions.extended(hypothesis, new, updates.labels)
        return Ranking.only(after.carried_by(regrouped(chosen, labels, new), state))

    def _state(self, hypothesis: Hypothesis, updates: LocalUpdates) -> dict[str, float]:
        """Norm of the largest update of the first round with updates, for the relative scale."""
        if self.scale == "absolute" or not len(updates):
            return {}
        longest = hypothesis.state.get("longest")
        return {"longest": norms(updates.products).max().item() if longest is None else longest}

    def groups(self, updates: LocalUpdates, longest: float = 1.0) -> NDArray[np.int64]:
        """Half of its cluster that each client belongs to, 0 where the cluster does not split.

        Args:
            updates: local updates of this round.
            longest: norm of the largest update of the first round, for the relative scale.

        Returns:
            int64 of shape (clients,).
        """
        groups = np.zeros(len(updates), dtype=np.int64)
        for cluster in np.unique(updates.clusters):
            members = np.flatnonzero(updates.clusters == cluster)
            products = updates.products[np.ix_(members, members)]
            if self.splits(products, longest):
                groups[members] = bipartition(products, self.linkage)
        return groups

    def splits(self, products: NDArray[np.float64], longest: float = 1.0) -> bool:
        """Whether a cluster satisfies the splitting criterion.

        Args:
            products: (clients, clients) inner products of the updates of its clients.
            longest: norm of the largest update of the first round, for the relative scale.
        """
        if len(products) < self.min_members:
            return False
        own = float(norms(products).max())
        absolute = self.scale == "absolute"
        mean_norm = self.mean_norm * (1.0 if absolute else own)
        client_norm = self.client_norm * (1.0 if absolute else longest)
        return norm_of_mean(products) < mean_norm and own > client_norm


def bipartition(products: NDArray[np.float64], linkage: Linkage = "single") -> NDArray[np.int64]:
    """Divide updates into two halves by agglomerative clustering on cosines.

    Single linkage minimises the largest cosine between updates of different halves.

    Args:
        products: (updates, updates) inner products, at least two updates.
        linkage: `single` or `complete`.

    Returns:
        0 or 1 for each update, int64 of shape (updates,).
    """
    from sklearn.cluster import AgglomerativeClustering

    method = AgglomerativeClustering(n_clusters=2, metric="precomputed", linkage=linkage)
    halves: NDArray[np.int64] = method.fit(cosine_distances(products)).labels_.astype(np.int64)
    return halves
