"""Log evidence by simple Monte Carlo and by importance sampling."""

from __future__ import annotations

import math
from dataclasses import dataclass

import torch
from torch import Tensor

from posteriors.curvature.likelihood import LogLikelihood
from posteriors.gaussians.covariance import StructuredGaussian
from posteriors.gaussians.gaussian import DiagonalGaussian


@dataclass(frozen=True)
class EvidenceEstimate:
    """Estimate of a log evidence with diagnostics.

    Attributes:
        log_evidence: Estimate, nats; biased downwards (Jensen's inequality).
        standard_error: Standard error of the estimate, nats, by the delta method; unreliable for
            few effective draws.
        effective_draws: Effective sample size (Σ w)² / Σ w² of the weights w.
    """

    log_evidence: float
    standard_error: float
    effective_draws: float


def monte_carlo_log_evidence(
    log_likelihood: LogLikelihood,
    prior: DiagonalGaussian,
    num_draws: int,
    generator: torch.Generator,
    temperature: float = 1.0,
) -> EvidenceEstimate:
    """Log evidence as the average likelihood over draws from the prior.

    "A Bayesian framework for clustered federated learning", equation 9, with N = `num_draws`. In
    high dimensions no draw comes near the posterior, and the estimate is far too low.

    Args:
        log_likelihood: Summed log likelihood of a parameter vector, nats.
        prior: Proper prior, (parameters,).
        num_draws: Number of draws, at least 1.
        generator: Source of randomness.
        temperature: Positive number by which the log likelihood is divided; 1 is Bayes' rule.

    Raises:
        ValueError: If a number is out of range, the prior is flat somewhere, or a log likelihood
            is NaN or +inf.
    """
    _check(num_draws, temperature)
    draws = prior.sample(generator, (num_draws,))
    return _average(_values(log_likelihood, draws) / temperature)


def importance_log_evidence(
    log_likelihood: LogLikelihood,
    prior: DiagonalGaussian,
    proposal: StructuredGaussian,
    num_draws: int,
    generator: torch.Generator,
    temperature: float = 1.0,
) -> EvidenceEstimate:
    """Log evidence by importance sampling from an approximate posterior.

    The evidence estimate is unbiased for any proposal that covers the posterior, and exact with one
    draw where the proposal is the posterior. Parameters known under the proposal are not
    integrated.

    Args:
        log_likelihood: Summed log likelihood of a parameter vector, nats.
        prior: Proper prior, (parameters,).
        proposal: Approximate posterior, for example a Laplace approximation.
        num_draws: Number of draws, at least 1.
        generator: Source of randomness.
        temperature: Positive number by which the log likelihood is divided; 1 is Bayes' rule.

    Raises:
        ValueError: If a number is out of range, the prior is flat somewhere, or a log likelihood
            is NaN or +inf.
    """
    _check(num_draws, temperature)
    draws = proposal.sample(num_draws, generator)
    values = _values(log_likelihood, draws) / temperature
    prior_values = _prior_density(prior, draws, proposal.covariance.indices)
    return _average(values + prior_values - proposal.log_density(draws))


def _prior_density(prior: DiagonalGaussian, draws: Tensor, indices: Tensor | None) -> Tensor:
    if indices is None:
        return prior.log_density(draws)
    precision = prior.precision.expand(prior.mean.shape)[indices]
    return DiagonalGaussian(prior.mean[indices], precision).log_density(draws[:, indices])


def _values(log_likelihood: LogLikelihood, draws: Tensor) -> Tensor:
    with torch.no_grad():
        values = torch.stack([log_likelihood(draw).double() for draw in draws])
    if bool(values.isnan().any()) or float(values.max()) == math.inf:
        raise ValueError("log_likelihood must be below +inf and not NaN at every draw")
    return values


def _average(logs: Tensor) -> EvidenceEstimate:
    """Log of the mean of exp(logs), with its standard error by the delta method."""
    count = len(logs)
    total = float(logs.logsumexp(0))
    if total == -math.inf:
        return EvidenceEstimate(-math.inf, math.inf, 0.0)
    shares = (logs - total).exp()
    effective = 1 / float(shares.square().sum())
    error = math.sqrt(max(0.0, 1 / effective - 1 / count))
    return EvidenceEstimate(total - math.log(count), error, effective)


def _check(num_draws: int, temperature: float) -> None:
    if num_draws < 1:
        raise ValueError(f"num_draws must be at least 1, got {num_draws}")
    if not (math.isfinite(temperature) and temperature > 0):
        raise ValueError(f"temperature must be positive and finite, got {temperature}")
