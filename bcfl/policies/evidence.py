"""The evidence of an association when the clients of a cluster share its model."""

from __future__ import annotations

from collections.abc import Mapping

import numpy as np
import torch

from bcfl.hypothesis import Hypothesis
from bcfl.model import Model
from bcfl.policies.policy import Candidate
from bcfl.requests import EvidenceSum
from posteriors import quadratic_log_evidence


def joint_log_weight(
    parent: Hypothesis,
    candidate: Candidate,
    scores: Mapping[str, Mapping[str, EvidenceSum]],
    temperature: float,
    model: Model,
) -> float:
    """Log evidence of all clients given an association, summed over the clusters, nats.

    Each cluster's clients share its model, so their likelihoods are integrated together (BCFL,
    equation 9, the integral over the product). With log-likelihood, gradient and curvature sums
    at the prior's mean the integral is quadratic: exact for linear-Gaussian models, the Laplace
    approximation otherwise.

    Args:
        parent: hypothesis with the cluster posteriors of before the round.
        candidate: association to weigh.
        scores: replies of the clients, by client and model key.
        temperature: divides each client's log-likelihood sums.
        model: the architecture.
    """
    total = 0.0
    for index, posterior in enumerate(parent.clusters):
        members = [
            scores[training.client][posterior.key]
            for training, feed in zip(candidate.trainings, candidate.feeds[:, index], strict=True)
            if feed > 0
        ]
        if members:
            precision = posterior.prior_precision(model)
            total += _cluster_log_evidence(precision, members, temperature)
    return total


def _cluster_log_evidence(
    prior_precision: torch.Tensor, members: list[EvidenceSum], temperature: float
) -> float:
    gradient = torch.stack([m.gradient.double() for m in members]).sum(0) / temperature
    curvature = torch.stack([m.curvature.double() for m in members]).sum(0) / temperature
    log_likelihood = float(np.sum([m.log_likelihood for m in members])) / temperature
    return float(
        quadratic_log_evidence(log_likelihood, gradient, curvature, prior_precision.double())
    )
