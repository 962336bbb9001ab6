"""Association by likelihood: the policy of BCFL, IFCA and HypCluster.

Association weights of "A Bayesian Framework for Clustered Federated Learning" (BCFL, equations 9
and 15). With flat posteriors and the best association alone this is IFCA (Ghosh et al., 2020), also
known as HypCluster (Mansour et al., 2020).
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, replace
from typing import Any, Literal, get_args

import numpy as np
from numpy.typing import NDArray

import assignment
from bcfl.hypotheses.hypothesis import Hypothesis
from bcfl.hypotheses.posterior import Posterior
from bcfl.policies.bayes.association_prior import UNIFORM, AssociationPrior
from bcfl.policies.bayes.drawn import DrawnEvidence, Draws, drawn_models
from bcfl.policies.bayes.held_out import held_out_losses, judged_on_held_out
from bcfl.policies.bayes.joint import JointEvidence, losses_of, reweighed
from bcfl.policies.bayes.temperature import (
    Temperature,
    fitted_belief_temperature,
    fitted_temperature,
)
from bcfl.policies.capacity import FREE, ClusterSize
from bcfl.policies.context import RoundContext
from bcfl.policies.policy import Candidate, Costs, Ranking, candidate
from bcfl.policies.ranking import quotients, ranked
from bcfl.protocol.checks import LARGEST_SUM
from bcfl.protocol.objective import Objective
from bcfl.protocol.requests import Exchange, Score, Steps, loss_matrix
from bcfl.protocol.statistics.evidence import Evidence
from bcfl.protocol.statistics.loss import Loss
from bcfl.protocol.statistics.split_loss import SplitLoss, SplitLossSum
from bcfl.runtime import check_whole
from posteriors import log_association_weight

LOWEST_TEMPERATURE = 1e-100
"""Losses of any accepted size stay finite when they are divided by it."""

Evidences = Literal["separable", "joint", "monte_carlo", "importance"]
Judge = Literal["training", "held_out"]
ScoredBy = Literal["cluster", "cavity", "crossfit"]


@dataclass(frozen=True, kw_only=True)
class LikelihoodAssociation:
    """Rank associations by their weight: the product of each client's likelihood in its cluster.

    Attributes:
        num_clusters: number of clusters K.
        objective: local objective.
        temperature: `"mean"` weighs by the per-sample loss (the paper's training loss); a number
            divides the summed loss (1 is Bayes); `"auto"` fits the number in each round on the
            clients' validation samples and reports it.
        evidence: `separable` (equation 9 with one sample point, the mean): a client's weight does
            not depend on the other members. The others re-weight candidates by the evidence of each
            cluster's clients together: `joint` by the Laplace approximation, exact for
            linear-Gaussian models; `monte_carlo` and `importance` (equation 9 with N > 1) by models
            drawn from the prior that clients are sent, or from the cluster's posterior.
        solver: ranking algorithm: `argmin` (the best alone) and `heap` for free cluster sizes,
            `murty` for any, `hungarian` and `numba` (compiled) for one client per cluster; `auto`
            chooses.
        score_samples: largest number of samples scored per client; None scores all.
        cluster_size: bounds on the number of clients per cluster.
        prior: prior over associations.
        judge: what hypotheses compete by. `training`: the weights that associate their clients,
            comparable for equal numbers of clusters. `held_out`: clients are associated as before,
            but a hypothesis is weighted by the validation log-likelihood of its best association,
            which does not favour more clusters as such.
        scored_by: model by which a client is scored in a cluster. `cluster`: the cluster's model,
            which the client's own samples may have trained; `cavity`: that model without the
            client's last contribution, but with what it taught the other members before (see
            `bcfl.aggregation.cavities`), at the price of one more model sent to each client;
            `crossfit`: in each cluster, a model that all its members but one fold of the clients
            have trained (see `bcfl.aggregation.crossfit`).
        belief_temperature: divides summed losses where they become membership probabilities, apart
            from the temperature that associates; of cavity scores only. `"auto"` fits it in each
            round on two halves of the clients' samples and reports it.
        reweighed: unless evidence is `separable`, least number of associations, best by separable
            weight first, that are re-weighted before the best are taken.
        evidence_draws: N, models drawn for each cluster with the last two kinds of evidence.
        folds: number of folds of `crossfit`, at least 2; each but one is one more local training.
    """

    num_clusters: int
    objective: Objective
    temperature: Temperature = "mean"
    evidence: Evidences = "separable"
    solver: assignment.SolverName = "auto"
    score_samples: int | None = None
    cluster_size: ClusterSize = FREE
    prior: AssociationPrior = UNIFORM
    judge: Judge = "training"
    scored_by: ScoredBy = "cluster"
    belief_temperature: float | Literal["auto"] = 16.0
    reweighed: int = 64
    evidence_draws: int = 16
    folds: int = 4

    def __post_init__(self) -> None:
        check_whole("num_clusters", self.num_clusters)
        self._check_names()
        if self.belief_temperature != "auto" and not self.belief_temperature > 0:
            raise ValueError(
                f"belief_temperature must be above 0 or 'auto', got {self.belief_temperature}"
            )
        self._check_evidence()
        self.cluster_size.check_solver(self.solver)
        if self.score_samples is not None:
            check_whole("score_samples", self.score_samples, other=" or None")
        if self.temperature != "auto":
            log_association_weight(np.full((1, 1), LARGEST_SUM), np.ones(1), self.temperature)
            if not isinstance(self.temperature, str) and self.temperature < LOWEST_TEMPERATURE:
                raise ValueError(
                    f"temperature must be at least {LOWEST_TEMPERATURE:g}, got {self.temperature}"
                )

    def _check_names(self) -> None:
        allowed = {
            "evidence": get_args(Evidences),
            "judge": get_args(Judge),
            "scored_by": get_args(ScoredBy),
            "solver": assignment.SOLVERS,
        }
        for name, values in allowed.items():
            if getattr(self, name) not in values:
                raise ValueError(
                    f"{name} must be one of {', '.join(values)}, got {getattr(self, name)!r}"
                )

    def _check_evidence(self) -> None:
        if self.evidence == "joint" and isinstance(self.temperature, str):
            raise ValueError(
                f"joint evidence needs a number as temperature, got {self.temperature!r}"
            )
        if self.evidence != "separable" and self.scored_by != "cluster":
            raise ValueError(
                f"scored_by must be 'cluster' with {self.evidence} evidence, got {self.scored_by!r}"
            )
        check_whole("folds", self.folds, 2)
        check_whole("evidence_draws", self.evidence_draws)

    def check(self, num_clusters: int, num_clients: int, num_participants: int) -> None:
        """Check the bounds on cluster sizes. See `bcfl.policies.policy.Validates.check`.

        Args:
            num_clusters: clusters at the start.
            num_clients: clients of the federation.
            num_participants: number of participants of a round.

        Raises:
            ValueError: they do not fit.
        """
        self.cluster_size.check(num_clusters, num_clients)

    def associate(self, hypothesis: Hypothesis, context: RoundContext) -> Steps[Ranking]:
        """Score every cluster on every participant, then rank.

        See `bcfl.policies.Policy.associate`.

        Raises:
            ValueError: the bounds on cluster sizes do not fit the number of clients.
        """
        self.cluster_size.check(len(hypothesis.clusters), len(hypothesis.association.clients))
        draws = self._draws(hypothesis, context)
        scores = yield from self._scores(hypothesis, context, draws)
        clients = sorted(scores)
        if not clients:
            nothing = candidate(hypothesis, {}, self.objective)
            return Ranking.only(self._with_cavities(nothing))
        joint = self.evidence == "joint"
        losses, counts = loss_matrix(
            clients,
            {client: [p.key for p in self._models(hypothesis, client)] for client in clients},
            losses_of(scores) if joint else scores,
        )
        temperature = self.temperature
        if temperature == "auto":
            held_out = yield from held_out_losses(hypothesis, clients, context)
            temperature = fitted_temperature(losses, held_out)
        log_prior = self.prior.log_probabilities(hypothesis.association, clients)
        least = losses.min(axis=1)
        gaps = losses - least[:, None]
        costs = Costs(
            clients=tuple(clients),
            values=-log_association_weight(gaps, counts, temperature) - log_prior,
            offsets=quotients(least, counts if temperature == "mean" else float(temperature)),
            cluster_size=self.cluster_size,
            log_prior=log_prior - log_prior.max(axis=1, keepdims=True),
        )
        facts = {"temperature": float(temperature)} if self.temperature == "auto" else {}
        if self.scored_by != "cluster":
            costs, fitted = self._believed(costs, scores, hypothesis, counts, temperature)
            facts |= fitted
        ranking = ranked(hypothesis, costs, self.objective, self.solver, context.num_samples)
        if self.evidence != "separable":
            wanted = context.candidates_per_parent
            limit = None if wanted is None else max(wanted, self.reweighed)
            evidence = (
                DrawnEvidence(draws, temperature)
                if draws is not None
                else JointEvidence(hypothesis, context.model, float(temperature))
            )
            ranking = reweighed(ranking, limit, scores, log_prior, evidence)
        if self.judge == "held_out":
            ranking = yield from judged_on_held_out(ranking, hypothesis, self.prior, context)
        return replace(ranking, candidates=map(self._with_cavities, ranking), facts=facts)

    def _with_cavities(self, chosen: Candidate) -> Candidate:
        """The candidate, asking for the cavities that the next round is scored by."""
        return replace(chosen, needs_cavities=self.needs_cavities, folds=self.cavity_folds)

    @property
    def needs_cavities(self) -> bool:
        """Whether clients are scored by cavities, which the round before must leave."""
        return self.scored_by != "cluster"

    @property
    def asks(self) -> dict[str, str]:
        """Statistics that clients are asked for besides losses, and the option that avoids each."""
        if self.evidence == "joint":
            return {Evidence.name: "evidence to 'separable'"}
        if self._needs_halves:
            return {SplitLoss.name: "belief_temperature to a number, such as 16.0"}
        return {}

    @property
    def _needs_halves(self) -> bool:
        """Whether a temperature is fitted on two halves of the clients' samples."""
        return self.scored_by != "cluster" and self.belief_temperature == "auto"

    @property
    def cavity_folds(self) -> int:
        """Folds of clients that these are cross-fitted in; 0 leaves out each client."""
        return self.folds if self.scored_by == "crossfit" else 0

    def _believed(
        self,
        costs: Costs,
        scores: Mapping[str, Mapping[str, Any]],
        hypothesis: Hypothesis,
        counts: NDArray[np.float64],
        temperature: float | Literal["mean"],
    ) -> tuple[Costs, dict[str, float]]:
        """The costs with their belief temperature, and what is logged of it."""
        divisor = self.belief_temperature
        facts = {}
        if divisor == "auto":
            rows: list[list[SplitLossSum]] = [
                [scores[client][p.key] for p in self._models(hypothesis, client)]
                for client in costs.clients
            ]
            first = np.array([[part.first_half for part in row] for row in rows])
            second = np.array([[part.second_half for part in row] for row in rows])
            divisor = fitted_belief_temperature(first, second)
            facts = {"belief_temperature": divisor}
        per_cost = counts[:, None] if temperature == "mean" else temperature
        return replace(costs, belief_temperature=divisor / per_cost), facts

    def _models(self, hypothesis: Hypothesis, client: str) -> list[Posterior]:
        """The models by which a client is scored in each cluster."""
        if self.scored_by == "cluster":
            return list(hypothesis.clusters)
        known = hypothesis.cavities
        return [known.get((client, i), p) for i, p in enumerate(hypothesis.clusters)]

    def _draws(self, hypothesis: Hypothesis, context: RoundContext) -> Draws | None:
        """Models drawn for each cluster; None where the evidence needs none."""
        match self.evidence:
            case "monte_carlo" | "importance" as proposal:
                count, seed = self.evidence_draws, context.seed
                return drawn_models(hypothesis, context.model, proposal, count, seed)
            case _:
                return None

    def _scores(
        self, hypothesis: Hypothesis, context: RoundContext, draws: Draws | None
    ) -> Steps[Mapping[str, Mapping[str, Any]]]:
        """Scores of all cluster models, and of drawn ones, by each participant that answers."""
        drawn = [] if draws is None else [one for row in draws.models for one in row]
        models = {c: [*self._models(hypothesis, c), *drawn] for c in context.participants}
        halves = SplitLoss() if self._needs_halves else Loss()
        statistic = Evidence() if self.evidence == "joint" else halves
        requests = {
            client: Score(
                client=client,
                models=tuple(dict.fromkeys(posterior.key for posterior in models[client])),
                statistic=statistic,
                samples=self.score_samples,
            )
            for client in context.participants
        }
        needed = [posterior for row in models.values() for posterior in row]
        replies = yield Exchange.of(requests.values(), needed)
        return {client: replies[s] for client, s in requests.items() if s in replies}
