"""FedSoft: soft association by the share of samples on which each cluster's model is best.

Ruan and Joe-Wong, "FedSoft: Soft Clustered Federated Learning with Proximal Local Updating" (2022).
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace

import numpy as np
from numpy.typing import NDArray

from bcfl.hypotheses.association import Association
from bcfl.hypotheses.hypothesis import Hypothesis
from bcfl.hypotheses.posterior import Posterior
from bcfl.policies.context import RoundContext
from bcfl.policies.policy import Candidate, Continue, Ranking, answered
from bcfl.policies.trainings import Work, trainings
from bcfl.protocol.objective import Objective
from bcfl.protocol.regularizers import Attraction
from bcfl.protocol.requests import Exchange, Score, Steps, Train
from bcfl.protocol.statistics.best_counts import BestCounts, BestModels
from bcfl.runtime import check_whole
from bcfl.runtime.seeds import generator, lineage_key

OWN = "own model of "
Importances = Mapping[str, Sequence[float]]


@dataclass(frozen=True, kw_only=True)
class FedSoft:
    """Each client trains one personal model, which contributes to all clusters by importance.

    The importance of a cluster for a client is the share of its samples on which the cluster's
    model has the lowest loss. A client continues from its own last model, with a proximal pull
    towards all clusters; it starts from its most important cluster. Clients are served by the
    cluster models, weighted by importance; the paper serves their personal models.

    Either all participants contribute to all clusters by importance, or each cluster draws some of
    them without replacement, with probability proportional to importance times samples, and is
    their unweighted mean (algorithm 1). Participants that no cluster draws do not train.

    Attributes:
        num_clusters: number of clusters K.
        objective: local objective, without the proximal term.
        attraction: lambda, weight of the proximal term.
        smoothing: sigma, the importance of a cluster that is best on no sample.
        every: rounds between estimates of the importance (tau); newcomers are estimated at once.
        drawn: clients that each cluster draws; None is all.
    """

    num_clusters: int
    objective: Objective
    attraction: float = 0.1
    smoothing: float = 1e-4
    every: int = 1
    drawn: int | None = None

    def __post_init__(self) -> None:
        for name in ("num_clusters", "every"):
            check_whole(name, getattr(self, name))
        if self.drawn is not None:
            check_whole("drawn", self.drawn, other=" or None")
        if not 0 < self.attraction < float("inf"):
            raise ValueError(f"attraction must be positive and finite, got {self.attraction}")
        if not 0 < self.smoothing <= 1:
            raise ValueError(f"smoothing must lie in (0, 1], got {self.smoothing}")

    @property
    def asks(self) -> dict[str, str]:
        """Statistics that clients are asked for besides losses; no option avoids them."""
        return {BestModels.name: ""}

    def associate(self, hypothesis: Hypothesis, context: RoundContext) -> Steps[Ranking]:
        """Estimate importances, then train personal models.

        See `bcfl.policies.Policy.associate`.
        """
        estimated = yield from self._importances(hypothesis, context)
        present = {c: estimated[c] for c in context.participants if c in estimated}
        contributed = self._contributions(present, context)
        own = {
            client: hypothesis.carried_models.get(
                OWN + client, hypothesis.clusters[int(np.argmax(present[client]))]
            )
            for client in contributed
        }
        work = self._work(hypothesis, own, present, context)
        models = (*hypothesis.clusters, *own.values(), *work.models)
        replies = (yield Exchange.of(work.requests, models)) if work.requests else {}
        answers = answered(work.requests, replies)
        trained = {
            OWN + t.client: own[t.client].with_parameters(
                context.model, _key(t, context.round), reply.mean, reply.buffers
            )
            for t, reply in answers.items()
        }
        count = len(hypothesis.clusters)
        contribution_weights = np.array([contributed[t.client] for t in answers]).reshape(
            len(answers), count
        )
        chosen = Candidate(
            association=softly_served(hypothesis.association, present),
            trainings=tuple(answers),
            contribution_weights=contribution_weights,
            origins=tuple(Continue(index) for index in range(count)),
            answers=answers,
            state={
                **hypothesis.state,
                "importances": {c: list(row) for c, row in estimated.items()},
            },
            carried_models={**hypothesis.carried_models, **trained},
        )
        return Ranking.only(chosen)

    def _contributions(self, present: Importances, context: RoundContext) -> Importances:
        """(clusters,) weight of each training client in each cluster's mean.

        Weights are multiplied by the clients' samples later on unless all count the same.
        """
        if self.drawn is None:
            return present
        clients = sorted(present)
        weights = np.zeros((len(clients), self.num_clusters))
        for cluster in range(self.num_clusters):
            p = np.array([present[c][cluster] * context.num_samples[c] for c in clients])
            random = generator(context.seed, context.round, "FedSoft draw", str(cluster))
            count = min(self.drawn, len(clients))
            weights[random.choice(len(clients), count, replace=False, p=p / p.sum()), cluster] = 1
        return {c: row.tolist() for c, row in zip(clients, weights, strict=True) if row.any()}

    def _importances(self, hypothesis: Hypothesis, context: RoundContext) -> Steps[Importances]:
        """Importances of the clusters for all clients that were ever scored."""
        estimated: dict[str, Sequence[float]] = dict(hypothesis.state.get("importances", {}))
        due = context.round % self.every == 0
        keys = tuple(posterior.key for posterior in hypothesis.clusters)
        scores = [
            Score(client=client, models=keys, statistic=BestModels())
            for client in context.participants
            if due or client not in estimated
        ]
        replies = (yield Exchange.of(scores, hypothesis.clusters)) if scores else {}
        for score in scores:
            if score in replies:
                estimated[score.client] = importances(replies[score], self.smoothing).tolist()
        return estimated

    def _work(
        self,
        hypothesis: Hypothesis,
        own: Mapping[str, Posterior],
        present: Importances,
        context: RoundContext,
    ) -> Work:
        """One training for each client, with its own proximal weights."""
        requests: list[Train] = []
        models: list[Posterior] = []
        for client, start in own.items():
            objective = self._pulled(present[client])
            work = trainings(hypothesis, {client: start.key}, objective, context.num_samples)
            held = (start.key,) if OWN + client in hypothesis.carried_models else ()
            requests += [replace(request, held=held) for request in work.requests]
            models += work.models
        return Work(tuple(requests), tuple(models))

    def _pulled(self, row: Sequence[float]) -> Objective:
        pull = Attraction(self.attraction, tuple(row))
        return replace(self.objective, regularizers=(*self.objective.regularizers, pull))


def importances(counts: BestCounts, smoothing: float) -> NDArray[np.float64]:
    """Share of the samples on which each cluster is best, never 0; float64 of shape (clusters,).

    With smoothing the sum may lie slightly above 1, as in the paper.

    Args:
        counts: number of samples on which each cluster's model has the lowest loss.
        smoothing: importance of a cluster that is best on no sample.
    """
    shares: NDArray[np.float64] = counts.counts / max(counts.num_samples, 1)
    return np.where(counts.counts == 0, smoothing, shares)


def softly_served(association: Association, rows: Importances) -> Association:
    """The association in which the given clients are served by all clusters in proportion.

    Args:
        association: previous association, which other clients keep.
        rows: for each client, (clusters,) weights, at least 0, not all 0.
    """
    soft, labels = association.serving.copy(), association.labels.copy()
    for client, row in rows.items():
        position = association.position[client]
        soft[position] = np.array(row) / sum(row)
        labels[position] = soft[position].argmax()
    return Association(association.clients, labels, association.num_clusters, soft)


def _key(training: Train, round: int) -> str:
    """Lineage key of a client's personal model."""
    return lineage_key("own", round, *vars(training).values())
