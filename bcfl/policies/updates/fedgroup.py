"""FedGroup: groups from decomposed cosine similarities of updates in a cold start.

Duan et al., "FedGroup: Efficient Federated Learning via Decomposed Similarity-Based Clustering"
(2021).
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Literal

import numpy as np
from numpy.typing import NDArray

from bcfl.hypotheses.hypothesis import Hypothesis
from bcfl.policies.context import RoundContext
from bcfl.policies.policy import Ranking, candidate
from bcfl.policies.updates.centroids import weighted_kmeans
from bcfl.policies.updates.divisions import Divisions, divide, regrouped
from bcfl.policies.updates.local_updates import local_updates
from bcfl.policies.updates.update_similarity import decomposed_cosines, mean_cosine_differences
from bcfl.protocol.objective import Objective
from bcfl.protocol.requests import Steps
from bcfl.runtime import check_whole
from bcfl.runtime.seeds import derive_seed, generator


@dataclass(frozen=True, kw_only=True)
class FedGroup:
    """Cluster the updates of the first round, then train each group separately.

    The first round is the cold start: some clients, the founders, train from one model. They are
    grouped by the decomposed cosine similarity of their updates, and each group continues from the
    unweighted mean of its founders' models. Later clients first train from the initial model and
    join the group whose mean update has the largest cosine with their own (of differences to the
    initial model: the ternary cosine). Groups are fixed afterwards.

    Attributes:
        groups: number of groups.
        objective: local objective after the cold start.
        cold_start: local objective of the cold start. The paper takes 50 steps of 10 samples, and
            the unweighted mean of the models, which is curvature `uniform`.
        founders: largest number of founders per group.
        dissimilarity: `edc`, K-means on cosines with the leading singular directions, as many as
            groups; `madc`, complete linkage on mean absolute differences of cosines.
    """

    groups: int
    objective: Objective
    cold_start: Objective
    founders: int = 20
    dissimilarity: Literal["edc", "madc"] = "edc"

    def __post_init__(self) -> None:
        for name in ("groups", "founders"):
            check_whole(name, getattr(self, name))
        if self.dissimilarity not in ("edc", "madc"):
            raise ValueError(f"dissimilarity must be 'edc' or 'madc', got {self.dissimilarity!r}")

    @property
    def num_clusters(self) -> int:
        """One, before the cold start."""
        return 1

    def check(self, num_clusters: int, num_clients: int, num_participants: int) -> None:
        """Check that there are enough clients. See `bcfl.policies.policy.Validates.check`.

        Args:
            num_clusters: clusters at the start.
            num_clients: clients of the federation.
            num_participants: number of participants of a round.

        Raises:
            ValueError: there are fewer clients than groups.
        """
        del num_clusters, num_participants
        if self.groups > num_clients:
            raise ValueError(
                f"groups must be at most the number of clients, {num_clients}, got {self.groups}"
            )

    def associate(self, hypothesis: Hypothesis, context: RoundContext) -> Steps[Ranking]:
        """Group the founders in the cold start, then assign newcomers.

        See `bcfl.policies.Policy.associate`.
        """
        if not hypothesis.state.get("grouped"):
            return (yield from self._cold_start(hypothesis, context))
        earlier = Divisions.of(hypothesis)
        divisions, labels = yield from earlier.assign(hypothesis, context, self.cold_start)
        chosen = candidate(hypothesis, labels, self.objective, num_samples=context.num_samples)
        return Ranking.only(divisions.carried_by(chosen, {"grouped": True}))

    def _cold_start(self, hypothesis: Hypothesis, context: RoundContext) -> Steps[Ranking]:
        founders = dict.fromkeys(self.sampled_founders(context), 0)
        updates = yield from local_updates(hypothesis, founders, self.cold_start, context)
        chosen = updates.candidate(self.cold_start)
        if not len(updates):
            return Ranking.only(chosen)
        seed = derive_seed(context.seed, context.round, "cold start")
        groups = group(updates.products, self.groups, self.dissimilarity, seed)
        clusters, new = divide(updates.clusters, groups, len(hypothesis.clusters))
        labels = dict(zip(updates.clients, map(int, clusters), strict=True))
        after = Divisions().extended(hypothesis, new, updates.labels)
        return Ranking.only(after.carried_by(regrouped(chosen, labels, new), {"grouped": True}))

    def sampled_founders(self, context: RoundContext) -> tuple[str, ...]:
        """Founders sampled from the participants, sorted.

        Args:
            context: read-only context of the round.
        """
        most = self.founders * self.groups
        if len(context.participants) <= most:
            return context.participants
        rng = generator(context.seed, context.round, "founders")
        order = rng.permutation(len(context.participants))[:most]
        return tuple(sorted(context.participants[index] for index in order))


def group(
    products: NDArray[np.float64], groups: int, dissimilarity: Literal["edc", "madc"], seed: int
) -> NDArray[np.int64]:
    """Group of each update, int64 of shape (updates,), from inner products of the updates.

    Fewer distinct updates than groups give fewer groups; updates that are all zero are one group.

    Args:
        products: (updates, updates) inner products.
        groups: number of groups.
        dissimilarity: `edc` or `madc`, see `FedGroup`.
        seed: seed of the starts of K-means.
    """
    if len(products) == 1 or not products.any():
        return np.zeros(len(products), dtype=np.int64)
    if dissimilarity == "edc":
        cosines = decomposed_cosines(products, groups)
        return weighted_kmeans(cosines, np.ones(len(cosines)), groups, seed)
    from sklearn.cluster import AgglomerativeClustering

    method = AgglomerativeClustering(
        n_clusters=min(groups, len(products)), metric="precomputed", linkage="complete"
    )
    labels: NDArray[np.int64] = method.fit(mean_cosine_differences(products)).labels_
    return labels.astype(np.int64)
