"""Sampled evidences of linear regression against the marginal likelihood."""

import numpy as np
import pytest
import torch
from scipy.stats import multivariate_normal, norm
from torch import nn

from posteriors.curvature.likelihood import network_log_likelihood
from posteriors.evidence.closed_form import quadratic_log_evidence
from posteriors.evidence.sampling import importance_log_evidence, monte_carlo_log_evidence
from posteriors.gaussians.covariance import DenseCovariance, StructuredGaussian
from posteriors.gaussians.gaussian import DiagonalGaussian


def problem(seed, parameters, samples=12):
    random = np.random.default_rng(seed)
    design = random.normal(size=(samples, parameters))
    values = random.normal(1.0, 1.5, size=samples)
    mean, precision = random.normal(size=parameters), random.uniform(0.5, 3.0, size=parameters)
    prior = DiagonalGaussian(torch.from_numpy(mean), torch.from_numpy(precision))
    layer = nn.Linear(parameters, 1, bias=False).double()
    log_likelihood = network_log_likelihood(
        layer, torch.from_numpy(design), torch.from_numpy(values)[:, None], "gaussian"
    )
    return design, values, prior, log_likelihood


def marginal(design, values, prior, temperature=1.0):
    """Log of the integral of N(values; design w, 1)^(1/T) under the prior."""
    covariance = temperature * np.eye(len(values))
    covariance += design / prior.precision.numpy() @ design.T
    density = multivariate_normal(design @ prior.mean.numpy(), covariance).logpdf(values)
    rescaling = np.log(2 * np.pi * temperature) - np.log(2 * np.pi) / temperature
    return density + 0.5 * len(values) * rescaling


def posterior_of(design, values, prior, temperature=1.0):
    mean, precision = prior.mean.numpy(), prior.precision.numpy()
    joint = np.diag(precision) + design.T @ design / temperature
    centre = np.linalg.solve(joint, precision * mean + design.T @ values / temperature)
    covariance = DenseCovariance.from_precision(torch.from_numpy(joint), torch.arange(len(mean)))
    return StructuredGaussian(torch.from_numpy(centre), covariance)


@pytest.mark.parametrize("temperature", [1.0, 7.0])
@pytest.mark.parametrize("parameters", [1, 3])
def test_draws_from_the_prior(parameters, temperature):
    design, values, prior, log_likelihood = problem(parameters, parameters)
    estimate = monte_carlo_log_evidence(
        log_likelihood, prior, 8000, torch.Generator().manual_seed(0), temperature
    )
    expected = marginal(design, values, prior, temperature)
    assert abs(estimate.log_evidence - expected) < 4 * estimate.standard_error
    assert 0 < estimate.standard_error < 0.3
    assert 10 < estimate.effective_draws < 8000


@pytest.mark.parametrize("temperature", [1.0, 7.0])
@pytest.mark.parametrize("parameters", [1, 4, 30])
def test_one_draw_from_the_posterior_is_exact(parameters, temperature):
    design, values, prior, log_likelihood = problem(parameters, parameters)
    proposal = posterior_of(design, values, prior, temperature)
    estimate = importance_log_evidence(
        log_likelihood, prior, proposal, 1, torch.Generator().manual_seed(0), temperature
    )
    expected = marginal(design, values, prior, temperature)
    assert estimate.log_evidence == pytest.approx(expected, abs=1e-8)
    assert estimate.standard_error == pytest.approx(0.0, abs=1e-9)


def test_a_wide_diagonal_proposal_is_unbiased():
    design, values, prior, log_likelihood = problem(3, 3)
    exact = posterior_of(design, values, prior)
    precision = exact.covariance.factor.square().sum(1) / 4
    proposal = StructuredGaussian.from_diagonal(DiagonalGaussian(exact.mean, precision))
    estimate = importance_log_evidence(
        log_likelihood, prior, proposal, 4000, torch.Generator().manual_seed(1)
    )
    expected = marginal(design, values, prior)
    assert abs(estimate.log_evidence - expected) < 4 * estimate.standard_error
    assert estimate.effective_draws > 100


def test_few_draws_from_the_prior_collapse_as_parameters_grow_in_number():
    """Each parameter is measured with precision 100; the bias grows with their number."""
    biases = []
    for parameters in (1, 10, 1000):
        random = np.random.default_rng(parameters)
        values = 2 * random.normal(size=parameters)
        prior = DiagonalGaussian.isotropic(torch.zeros(parameters, dtype=torch.float64), 1.0)

        def log_likelihood(vector, values=values):
            return torch.from_numpy(norm.logpdf(values, vector.numpy(), 0.1)).sum()

        estimate = monte_carlo_log_evidence(
            log_likelihood, prior, 20, torch.Generator().manual_seed(0)
        )
        exact = norm.logpdf(values, 0.0, np.sqrt(1.01)).sum()
        biases.append(estimate.log_evidence - exact)
        slope, bend = torch.from_numpy(100 * values), torch.full((parameters,), 100.0).double()
        quadratic = quadratic_log_evidence(norm.logpdf(values, 0, 0.1).sum(), slope, bend, 1.0)
        assert float(quadratic) == pytest.approx(exact, rel=1e-9)
        posterior = StructuredGaussian.from_diagonal(
            DiagonalGaussian(torch.from_numpy(values) * 100 / 101, torch.full_like(bend, 101.0))
        )
        weighted = importance_log_evidence(log_likelihood, prior, posterior, 3, torch.Generator())
        assert weighted.log_evidence == pytest.approx(exact, rel=1e-9)
    assert abs(biases[0]) < 30
    assert biases[1] < -100
    assert biases[2] < 50 * biases[1]
    assert estimate.effective_draws == pytest.approx(1.0, abs=1e-6)
