"""Association by how well each cluster's model explains a client's samples.

The association weights of BCFL ("A Bayesian Framework for Clustered Federated Learning",
equations 9 and 15). With flat posteriors and the best association alone it is IFCA (Ghosh et al.
2020), also known as HypCluster (Mansour et al. 2020).
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from itertools import islice
from typing import Literal

import numpy as np
from numpy.typing import NDArray

import assignment
from bcfl.hypothesis import Hypothesis
from bcfl.policies.association_prior import UNIFORM, AssociationPrior
from bcfl.policies.capacity import FREE, ClusterSize
from bcfl.policies.evidence import joint_log_weight
from bcfl.policies.held_out import judged_on_held_out
from bcfl.policies.policy import Candidate, Costs, Ranking, RoundContext, candidate
from bcfl.requests import EvidenceSum, Exchange, LossSum, Objective, Score, Steps, loss_matrix
from posteriors import log_association_weight

Temperature = float | Literal["mean"]


@dataclass(frozen=True)
class LikelihoodAssociation:
    """Rank associations by their weight: the product of each client's likelihood in its cluster.

    Attributes:
        num_clusters: number of clusters K.
        objective: local objective.
        temperature: `"mean"` weighs by the per-sample loss (the paper's training loss); a number
            divides the summed loss (1 is Bayes).
        evidence: `separable` (equation 9 with one sample point, the mean): a client's weight does
            not depend on who else is in the cluster; `joint`: candidates are weighed again by the
            Laplace evidence of all their clients together, exact for linear-Gaussian models.
        solver: how associations are ranked: `argmin` (the best alone) and `heap` for free cluster
            sizes, `murty` for any, `hungarian` for one client per cluster; `auto` chooses.
        score_samples: score at most so many samples per client; None scores all.
        cluster_size: bounds on the number of clients per cluster.
        prior: what is believed of the association beforehand.
        judge: what hypotheses compete by. `training`: the weights that associate their clients;
            fair among equal numbers of clusters. `held_out`: clients are associated as before,
            but a hypothesis is weighed by how well its best association explains the clients'
            validation samples, so that more clusters are not better by themselves.
        reweighed: with `joint` evidence, at least so many of the associations that are best by
            separable weight are weighed again before the best are taken.
    """

    num_clusters: int
    objective: Objective
    temperature: Temperature = "mean"
    evidence: Literal["separable", "joint"] = "separable"
    solver: assignment.SolverName = "auto"
    score_samples: int | None = None
    cluster_size: ClusterSize = FREE
    prior: AssociationPrior = UNIFORM
    judge: Literal["training", "held_out"] = "training"
    reweighed: int = 64

    def __post_init__(self) -> None:
        if self.num_clusters < 1:
            raise ValueError(f"num_clusters must be at least 1, got {self.num_clusters}")
        if self.evidence not in ("separable", "joint"):
            raise ValueError(f"evidence must be 'separable' or 'joint', got {self.evidence!r}")
        if self.evidence == "joint" and self.temperature == "mean":
            raise ValueError("joint evidence needs a number as temperature, got 'mean'")
        if self.judge not in ("training", "held_out"):
            raise ValueError(f"judge must be 'training' or 'held_out', got {self.judge!r}")
        if self.solver not in assignment.SOLVERS:
            raise ValueError(
                f"solver must be one of {', '.join(assignment.SOLVERS)}, got {self.solver!r}"
            )
        if self.score_samples is not None and self.score_samples < 1:
            raise ValueError(f"score_samples must be at least 1 or None, got {self.score_samples}")
        log_association_weight(np.zeros((1, 1)), np.ones(1), self.temperature)

    def associate(self, hypothesis: Hypothesis, context: RoundContext) -> Steps[Ranking]:
        """Score every cluster on every participant, then rank.

        Raises:
            ValueError: the bounds on cluster sizes do not fit the number of clients.
        """
        self.cluster_size.check(len(hypothesis.clusters), len(hypothesis.association.clients))
        keys = tuple(posterior.key for posterior in hypothesis.clusters)
        distinct = tuple(dict.fromkeys(keys))
        statistic: Literal["loss", "evidence"] = (
            "loss" if self.evidence == "separable" else "evidence"
        )
        asked = {
            client: Score(client, distinct, statistic, samples=self.score_samples)
            for client in context.participants
        }
        replies = yield Exchange.of(asked.values(), hypothesis.clusters)
        scores = {client: replies[s] for client, s in asked.items() if s in replies}
        clients = sorted(scores)
        if not clients:
            return Ranking.only(candidate(hypothesis, {}, self.objective))
        if self.evidence == "joint":
            return self._jointly(hypothesis, context, clients, scores)
        losses, counts = loss_matrix(clients, keys, scores)
        cost = -log_association_weight(losses, counts, self.temperature)
        cost -= self.prior.log_probabilities(hypothesis.association, clients)
        ranking = self._ranked(hypothesis, clients, cost)
        if self.judge == "training":
            return ranking
        return (yield from judged_on_held_out(ranking, hypothesis, self.prior))

    def _ranked(
        self, parent: Hypothesis, clients: Sequence[str], cost: NDArray[np.float64]
    ) -> Ranking:
        lower, upper = self.cluster_size.left_for(clients, parent.association)
        costs = Costs(tuple(clients), cost)

        def candidates() -> Iterator[Candidate]:
            for ranked in assignment.iter_assignments(cost, lower, upper, solver=self.solver):
                labels = dict(zip(clients, map(int, ranked.labels), strict=True))
                one = candidate(parent, labels, self.objective, log_weight=-ranked.cost)
                yield replace(one, costs=costs)

        return Ranking(candidates(), log_total(cost, lower, upper))

    def _jointly(
        self,
        parent: Hypothesis,
        context: RoundContext,
        clients: Sequence[str],
        scores: Mapping[str, Mapping[str, EvidenceSum]],
    ) -> Ranking:
        losses = {
            client: {
                key: LossSum(-e.log_likelihood, 0.0, e.num_samples) for key, e in by_key.items()
            }
            for client, by_key in scores.items()
        }
        keys = [posterior.key for posterior in parent.clusters]
        cost, counts = loss_matrix(clients, keys, losses)
        separable = self._ranked(
            parent,
            clients,
            -log_association_weight(cost, counts, self.temperature)
            - self.prior.log_probabilities(parent.association, clients),
        )
        wanted = context.candidates_per_parent
        limit = None if wanted is None else max(wanted, self.reweighed)
        first = list(islice(separable, limit))
        weighed = [
            replace(
                one,
                log_weight=joint_log_weight(
                    parent, one, scores, float(self.temperature), context.model
                )
                + self._log_prior(parent, one, clients),
            )
            for one in first
        ]
        weighed.sort(key=lambda one: -one.log_weight)
        complete = limit is None or len(first) < limit
        total = np.logaddexp.reduce([one.log_weight for one in weighed]) if complete else np.nan
        return Ranking(weighed, float(total))

    def _log_prior(self, parent: Hypothesis, one: Candidate, clients: Sequence[str]) -> float:
        log_prior = self.prior.log_probabilities(parent.association, clients)
        chosen = [one.association.label(client) for client in clients]
        return float(log_prior[np.arange(len(clients)), chosen].sum())


def log_total(
    cost: NDArray[np.float64], lower: NDArray[np.int64] | None, upper: NDArray[np.int64] | None
) -> float:
    """Log of the summed weight of all associations, nats; NaN where bounds make it too costly."""
    try:
        return assignment.log_partition(cost, lower, upper)
    except assignment.StateBudgetError:
        return float("nan")
