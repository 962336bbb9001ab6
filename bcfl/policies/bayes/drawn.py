"""Evidence of associations from several models drawn for each cluster (BCFL, Eq. 9 with N > 1)."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from fractions import Fraction
from typing import Literal

import numpy as np
import torch
from numpy.typing import NDArray

from bcfl.architecture.model import Model
from bcfl.hypotheses.hypothesis import Hypothesis
from bcfl.hypotheses.posterior import Posterior
from bcfl.policies.bayes.joint import members_of
from bcfl.policies.policy import Candidate
from bcfl.protocol.statistics.loss import LossSum
from bcfl.runtime.seeds import derive_seed, lineage_key
from posteriors import DiagonalGaussian, log_association_weight
from posteriors.evidence.closed_form import Temperature

Proposal = Literal["monte_carlo", "importance"]
Scores = Mapping[str, Mapping[str, LossSum]]


@dataclass(frozen=True, eq=False)
class Draws:
    """Models drawn for each cluster of a hypothesis.

    Attributes:
        models: by cluster, N models.
        log_weights: (clusters, N) log weights α of equation 9, nats.
    """

    models: tuple[tuple[Posterior, ...], ...]
    log_weights: NDArray[np.float64]


def drawn_models(
    parent: Hypothesis, model: Model, proposal: Proposal, count: int, seed: int
) -> Draws:
    """Draw models of each cluster; an unchanged cluster has the same draws in every round.

    Args:
        parent: hypothesis with the clusters.
        model: the architecture.
        proposal: `monte_carlo` draws from the prior that clients are sent, with equal weights;
            `importance` draws from the cluster's posterior, weighted by prior over posterior. They
            are the same where the memory accumulates.
        count: N, models of each cluster.
        seed: of the run.

    Raises:
        ValueError: a precision is zero.
    """
    models, log_weights = [], []
    for cluster in parent.clusters:
        prior = DiagonalGaussian(cluster.mean(model), cluster.prior_precision(model))
        source = prior if proposal == "monte_carlo" else cluster.gaussian(model)
        random = torch.Generator(source.mean.device)
        random.manual_seed(derive_seed(seed, cluster.key, "draws of evidence"))
        vectors = source.sample(random, (count,))
        ratios = prior.log_density(vectors) - source.log_density(vectors)
        log_weights.append(ratios.cpu().numpy() - np.log(count))
        buffers = cluster.buffers(model)
        models.append(
            tuple(
                cluster.with_parameters(
                    model, lineage_key(cluster.key, proposal, count, index), vector, buffers
                )
                for index, vector in enumerate(vectors)
            )
        )
    return Draws(tuple(models), np.array(log_weights))


class DrawnEvidence:
    """Evidence as a weighted mean of likelihoods over the models drawn for a cluster.

    The clients of a cluster share its model, so their likelihoods are multiplied draw by draw
    before they are averaged: log Σ_l α_l Π_j p(D_j | ω_l). In many dimensions one draw dominates
    (`posteriors.monte_carlo_log_evidence`).
    """

    def __init__(self, draws: Draws, temperature: Temperature) -> None:
        self._draws = draws
        self._temperature = temperature
        self._known: dict[tuple[int, tuple[str, ...]], float] = {}

    def log_weight(self, candidate: Candidate, scores: Scores) -> float:
        """Log evidence of all clients given an association, summed over the clusters, nats.

        Above `reference`.

        Args:
            candidate: the association.
            scores: summed losses by client and key of the drawn model.
        """
        clusters = ((i, members_of(candidate, i)) for i in range(len(self._draws.models)))
        return sum(self._of_cluster(i, members, scores) for i, members in clusters if members)

    def reference(self, scores: Scores) -> Fraction:
        """Exact sum of each client's largest log-likelihood over all draws, nats, tempered."""
        parts = []
        for _, row in sorted(scores.items()):
            least, samples = self._least(row)
            divisor = samples if isinstance(self._temperature, str) else self._temperature
            parts.append(-Fraction(least) / Fraction(divisor))
        return sum(parts, start=Fraction(0))

    def _least(self, row: Mapping[str, LossSum]) -> tuple[float, int]:
        """Smallest loss of a client over all draws, and its number of samples."""
        sums = [row[posterior.key] for models in self._draws.models for posterior in models]
        return min(one.total for one in sums), sums[0].num_samples

    def _of_cluster(self, index: int, members: tuple[str, ...], scores: Scores) -> float:
        if (index, members) not in self._known:
            total = self._draws.log_weights[index].copy()
            for client in members:
                least, samples = self._least(scores[client])
                row = [scores[client][posterior.key] for posterior in self._draws.models[index]]
                above = [one.total - least for one in row]
                total += log_association_weight(above, samples, self._temperature)
            self._known[index, members] = float(np.logaddexp.reduce(total))
        return self._known[index, members]
