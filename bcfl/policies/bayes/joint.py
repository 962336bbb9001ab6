"""Weighing associations by the evidence of each cluster's clients together."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import replace
from itertools import islice

import numpy as np
import torch
from numpy.typing import NDArray

from bcfl.architecture.model import Model
from bcfl.hypotheses.hypothesis import Hypothesis
from bcfl.policies.policy import Candidate, Ranking
from bcfl.policies.ranking import chosen_log_prior
from bcfl.protocol.statistics.evidence import EvidenceSum
from bcfl.protocol.statistics.loss import LossSum
from posteriors import quadratic_log_evidence

Expansions = Mapping[str, Mapping[str, EvidenceSum]]


def losses_of(scores: Expansions) -> dict[str, dict[str, LossSum]]:
    """The losses in expansions of the log-likelihood, by client and model."""
    return {
        client: {key: LossSum(-e.log_likelihood, 0.0, e.num_samples) for key, e in row.items()}
        for client, row in scores.items()
    }


def reweighed(
    ranking: Ranking,
    limit: int | None,
    scores: Expansions,
    log_prior: NDArray[np.float64],
    evidence: JointEvidence,
) -> Ranking:
    """The best associations of a ranking, weighed by their joint evidence and prior.

    Args:
        ranking: associations by separable weight.
        limit: how many of them to weigh again; None is all.
        scores: the clients' expansions.
        log_prior: (clients, clusters) log probabilities, rows sorted by client name.
        evidence: weighs one association.
    """
    first = list(islice(ranking, limit))
    clients = sorted(scores)
    weighed = [
        replace(
            one,
            log_weight=evidence.log_weight(one, scores) + chosen_log_prior(log_prior, one, clients),
        )
        for one in first
    ]
    weighed.sort(key=lambda one: -one.log_weight)
    complete = limit is None or len(first) < limit
    total = np.logaddexp.reduce([one.log_weight for one in weighed]) if complete else np.nan
    return Ranking(weighed, float(total))


class JointEvidence:
    """The evidence of associations that follow one hypothesis.

    Each cluster's clients share its model, so their likelihoods are integrated together (BCFL,
    equation 9, the integral over the product). With log-likelihood, gradient and curvature sums
    at the prior's mean the integral is quadratic: exact for linear-Gaussian models, the Laplace
    approximation otherwise. Evidence of one cluster with one set of clients is computed once.
    """

    def __init__(self, parent: Hypothesis, model: Model, temperature: float) -> None:
        self._temperature = temperature
        self._keys = [posterior.key for posterior in parent.clusters]
        self._precisions = [p.prior_precision(model).double() for p in parent.clusters]
        self._known: dict[tuple[int, tuple[str, ...]], float] = {}

    def log_weight(self, candidate: Candidate, scores: Expansions) -> float:
        """Log evidence of all clients given an association, summed over the clusters, nats."""
        total = 0.0
        for index in range(len(self._keys)):
            members = tuple(
                training.client
                for training, feed in zip(
                    candidate.trainings, candidate.contribution_weights[:, index], strict=True
                )
                if feed > 0
            )
            if members:
                total += self._of_cluster(index, members, scores)
        return total

    def _of_cluster(self, index: int, members: tuple[str, ...], scores: Expansions) -> float:
        if (index, members) not in self._known:
            sums = [scores[client][self._keys[index]] for client in members]
            gradient = torch.stack([one.gradient.double() for one in sums]).sum(0)
            curvature = torch.stack([one.curvature.double() for one in sums]).sum(0)
            log_likelihood = float(np.sum([one.log_likelihood for one in sums]))
            self._known[index, members] = float(
                quadratic_log_evidence(
                    log_likelihood / self._temperature,
                    gradient / self._temperature,
                    curvature / self._temperature,
                    self._precisions[index],
                )
            )
        return self._known[index, members]
