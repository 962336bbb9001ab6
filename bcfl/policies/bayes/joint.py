"""Joint evidence of associations: clients of a cluster share its model (BCFL, Eq. 9)."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import replace
from fractions import Fraction
from itertools import islice
from typing import Any, Protocol

import numpy as np
import torch
from numpy.typing import NDArray

import assignment
from bcfl.architecture.model import Model
from bcfl.hypotheses.hypothesis import Hypothesis
from bcfl.policies.policy import Candidate, Ranking
from bcfl.policies.ranking import chosen_log_prior
from bcfl.protocol.statistics.evidence import EvidenceSum
from bcfl.protocol.statistics.loss import LossSum
from posteriors import quadratic_log_evidence

Expansions = Mapping[str, Mapping[str, EvidenceSum]]


class AssociationEvidence(Protocol):
    """Evidence of associations of which the clients of a cluster share its model."""

    def log_weight(self, candidate: Candidate, scores: Mapping[str, Mapping[str, Any]]) -> float:
        """Log evidence of all clients given an association, above the reference, nats.

        Args:
            candidate: the association.
            scores: replies of the clients, by client and key of the model.
        """
        ...

    def reference(self, scores: Mapping[str, Mapping[str, Any]]) -> Fraction:
        """What all log weights have in common, nats; exact.

        Args:
            scores: replies of the clients, by client and key of the model.
        """
        ...


def losses_of(scores: Expansions) -> dict[str, dict[str, LossSum]]:
    """Summed losses from expansions of the log-likelihood, by client and model, nats."""
    return {
        client: {key: LossSum(-e.log_likelihood, 0.0, e.num_samples) for key, e in row.items()}
        for client, row in scores.items()
    }


def reweighed(
    ranking: Ranking,
    limit: int | None,
    scores: Mapping[str, Mapping[str, Any]],
    log_prior: NDArray[np.float64],
    evidence: AssociationEvidence,
) -> Ranking:
    """The best associations of a ranking, re-weighted by their joint evidence and prior.

    Args:
        ranking: associations by separable weight.
        limit: number of associations that are re-weighted; None is all.
        scores: replies of the clients, by client and key of the model.
        log_prior: (clients, clusters) log probabilities, rows sorted by client name.
        evidence: joint evidence of one association.
    """
    candidates = iter(ranking)
    first = list(islice(candidates, limit))
    complete = next(candidates, None) is None
    clients = sorted(scores)
    weighted = [
        replace(
            candidate,
            log_weight=evidence.log_weight(candidate, scores)
            + chosen_log_prior(log_prior, candidate, clients),
        )
        for candidate in first
    ]
    weighted.sort(key=lambda candidate: -candidate.log_weight)
    total = (
        np.logaddexp.reduce([candidate.log_weight for candidate in weighted])
        if complete
        else np.nan
    )
    return Ranking(weighted, float(total), reference=evidence.reference(scores))


def members_of(candidate: Candidate, index: int) -> tuple[str, ...]:
    """Clients whose local models contribute to a cluster.

    Args:
        candidate: association with its trainings.
        index: index of the cluster.
    """
    weights = candidate.contribution_weights[:, index]
    pairs = zip(candidate.trainings, weights, strict=True)
    return tuple(training.client for training, weight in pairs if weight > 0)


class JointEvidence:
    """Laplace evidence of associations that follow one hypothesis.

    The clients of a cluster share its model, so the integral over it is that of their likelihoods'
    product (BCFL, equation 9). With log-likelihood, gradient and curvature sums at the prior's mean
    it is Gaussian: exact for linear-Gaussian models, the Laplace approximation otherwise. The
    evidence of each set of members is computed once per cluster.
    """

    def __init__(self, parent: Hypothesis, model: Model, temperature: float) -> None:
        self._temperature = temperature
        self._keys = [posterior.key for posterior in parent.clusters]
        self._precisions = [p.prior_precision(model).double() for p in parent.clusters]
        self._known: dict[tuple[int, tuple[str, ...]], float] = {}

    def log_weight(self, candidate: Candidate, scores: Expansions) -> float:
        """Log evidence of all clients given an association, summed over the clusters, nats.

        Above `reference`.

        Args:
            candidate: the association.
            scores: expansions of the clients' log-likelihoods, by client and model.
        """
        total = 0.0
        for index in range(len(self._keys)):
            members = members_of(candidate, index)
            if members:
                total += self._of_cluster(index, members, scores)
        return total

    def reference(self, scores: Expansions) -> Fraction:
        """Exact sum of each client's largest log-likelihood over the clusters, nats, tempered.

        Args:
            scores: expansions of the clients' log-likelihoods, by client and model.
        """
        largest = [
            max(row[key].log_likelihood for key in self._keys) for _, row in sorted(scores.items())
        ]
        return assignment.exact_sum(largest) / Fraction(self._temperature)

    def _above_largest(self, client: str, scores: Expansions) -> Mapping[str, float]:
        """Log-likelihood of a client by model, above its largest over the clusters, nats."""
        row = {key: scores[client][key].log_likelihood for key in self._keys}
        largest = max(row.values())
        return {key: value - largest for key, value in row.items()}

    def _of_cluster(self, index: int, members: tuple[str, ...], scores: Expansions) -> float:
        if (index, members) not in self._known:
            sums = [scores[client][self._keys[index]] for client in members]
            gradient = torch.stack([s.gradient.double() for s in sums]).sum(0)
            curvature = torch.stack([s.curvature.double() for s in sums]).sum(0)
            above = [self._above_largest(client, scores) for client in members]
            log_likelihood = float(np.sum([row[self._keys[index]] for row in above]))
            self._known[index, members] = float(
                quadratic_log_evidence(
                    log_likelihood / self._temperature,
                    gradient / self._temperature,
                    curvature / self._temperature,
                    self._precisions[index],
                )
            )
        return self._known[index, members]
