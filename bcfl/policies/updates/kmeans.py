"""K-means on local models: the policy of FeSEM and WeCFL, and the warm-up of BCFL.

FeSEM (Long et al., 2022) clusters local models with equal weights, WeCFL (Ma et al., 2022) weighted
by the clients' numbers of samples. Clients first train from the model that serves them. K-means
begins anew in each round, as in the authors' program; algorithm 1 of WeCFL assigns clients to the
nearest of the previous centres.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Literal, get_args

import numpy as np
from numpy.typing import NDArray

import assignment
from bcfl.architecture.layout import ALL, Part
from bcfl.hypotheses.association import UNSEEN, Association
from bcfl.hypotheses.hypothesis import Hypothesis
from bcfl.hypotheses.matching import best_matching
from bcfl.hypotheses.posterior import Posterior
from bcfl.policies.capacity import FREE, ClusterSize
from bcfl.policies.context import RoundContext
from bcfl.policies.policy import Ranking, answered, candidate
from bcfl.policies.trainings import trainings
from bcfl.policies.updates.centroids import (
    NUM_STARTS,
    distances_to_cavities,
    distances_to_centroids,
    moved_to_nearest_cavities,
    weighted_kmeans,
)
from bcfl.protocol.objective import Objective
from bcfl.protocol.requests import Exchange, Steps
from bcfl.runtime import check_whole
from bcfl.runtime.seeds import derive_seed

ScoredBy = Literal["cluster", "cavity"]


@dataclass(frozen=True, kw_only=True)
class KMeansAssociation:
    """Train, then cluster the trained models by Euclidean K-means.

    Attributes:
        num_clusters: number of clusters K.
        objective: local objective.
        weighting: `samples` weighs each client by its number of training samples (WeCFL),
            `equal` weighs all equally (FeSEM).
        cluster_size: bounds on the number of clients per cluster. After K-means, clients are
            associated with its centroids within the bounds at the least summed distance.
        part: parameters that distances are computed on; the WeCFL thesis clusters on the fully
            connected layers.
        starts: restarts of K-means within a round, of which the one of least variance counts.
        scored_by: model by which a client is measured against its own cluster. `cluster`: the
            centroid; `cavity`: the centroid without the client, to which clients move on after
            K-means until none is closer to another cluster. Cross-fitting is not offered: local
            models of different folds start from different models, so that their distances tell
            folds apart before groups.
    """

    num_clusters: int
    objective: Objective
    weighting: Literal["samples", "equal"] = "samples"
    cluster_size: ClusterSize = FREE
    part: Part = ALL
    starts: int = NUM_STARTS
    scored_by: ScoredBy = "cluster"

    def __post_init__(self) -> None:
        if self.scored_by not in get_args(ScoredBy):
            raise ValueError(
                f"scored_by must be one of {', '.join(get_args(ScoredBy))}, got {self.scored_by!r}"
            )
        for name in ("num_clusters", "starts"):
            check_whole(name, getattr(self, name))
        if self.weighting not in ("samples", "equal"):
            raise ValueError(f"weighting must be 'samples' or 'equal', got {self.weighting!r}")

    def check(self, num_clusters: int, num_clients: int, num_participants: int) -> None:
        """Check that the bounds fit the clients. See `bcfl.policies.policy.Validates.check`."""
        del num_participants
        self.cluster_size.check(num_clusters, num_clients)

    def associate(self, hypothesis: Hypothesis, context: RoundContext) -> Steps[Ranking]:
        """Train from the serving models, then cluster. See `bcfl.policies.Policy.associate`."""
        keys = [posterior.key for posterior in hypothesis.clusters]
        newcomers = int(hypothesis.association.sizes.argmax())
        labels = {c: hypothesis.association.label(c) for c in context.participants}
        starts = {c: keys[newcomers if k == UNSEEN else k] for c, k in labels.items()}
        return (yield from self.trained_from(hypothesis, starts, hypothesis.clusters, context))

    def trained_from(
        self,
        hypothesis: Hypothesis,
        starts: Mapping[str, str],
        models: Sequence[Posterior],
        context: RoundContext,
    ) -> Steps[Ranking]:
        """Train from the given models, then cluster.

        Args:
            hypothesis: the parent.
            starts: key of the model that each client trains from.
            models: those models.
            context: read-only context of the round.
        """
        work = trainings(hypothesis, starts, self.objective, context.num_samples)
        replies = yield Exchange.of(work.requests, (*models, *work.models))
        answers = answered(work.requests, replies)
        clients = sorted(training.client for training in answers)
        if not clients:
            return Ranking.only(candidate(hypothesis, {}, self.objective))
        trained = {training.client: reply for training, reply in answers.items()}
        mask = context.model.chosen(self.part)
        points = np.stack([trained[c].mean.cpu()[mask].double().numpy() for c in clients])
        weights = np.ones(len(clients))
        if self.weighting == "samples":
            weights = np.array([float(trained[c].num_samples) for c in clients])
        seed = derive_seed(context.seed, context.round, "kmeans")
        groups = weighted_kmeans(points, weights, self.num_clusters, seed, self.starts)
        clusters = relabel(groups, hypothesis.association, clients)
        origins = self._origins(hypothesis, context) if self.scored_by == "cavity" else None
        bounds = self.cluster_size.left_for(clients, hypothesis.association)
        clusters = self._moved(points, weights, clusters, origins, bounds)
        by_client = dict(zip(clients, map(int, clusters), strict=True))
        return Ranking.only(
            candidate(
                hypothesis,
                by_client,
                self.objective,
                starts=starts,
                answers=answers,
                num_samples=context.num_samples,
            )
        )

    def _origins(self, hypothesis: Hypothesis, context: RoundContext) -> NDArray[np.float64]:
        """(clusters, dimensions) models that clusters had before the round."""
        mask = context.model.chosen(self.part)
        means = (posterior.mean(context.model) for posterior in hypothesis.clusters)
        return np.stack([mean.cpu()[mask].double().numpy() for mean in means])

    def _moved(
        self,
        points: NDArray[np.float64],
        weights: NDArray[np.float64],
        labels: NDArray[np.int64],
        origins: NDArray[np.float64] | None,
        bounds: tuple[NDArray[np.int64] | None, NDArray[np.int64] | None],
    ) -> NDArray[np.int64]:
        """Clusters after K-means: moved to the nearest cavities, and within bounds on sizes."""
        if origins is not None:
            labels = moved_to_nearest_cavities(points, weights, labels, origins)
        if self.cluster_size.free:
            return labels
        distances = (
            distances_to_centroids(points, weights, labels, self.num_clusters)
            if origins is None
            else distances_to_cavities(points, weights, labels, origins)
        )
        return assignment.best_assignment(weights[:, None] * distances, *bounds).labels


def relabel(
    labels: NDArray[np.int64], association: Association, clients: Sequence[str]
) -> NDArray[np.int64]:
    """Relabel new clusters after the old ones with which they share most clients.

    Args:
        labels: new cluster of each client, int64 of shape (clients,).
        association: of all clients, before the round.
        clients: names of the clients that were clustered.

    Returns:
        int64 of shape (clients,).
    """
    num_clusters = association.num_clusters
    shared = np.zeros((num_clusters, num_clusters))
    for client, label in zip(clients, labels, strict=True):
        old = association.label(client)
        if old != UNSEEN:
            shared[label, old] += 1
    return best_matching(shared)[labels]
