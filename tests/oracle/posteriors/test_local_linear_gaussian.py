"""Local posteriors of linear regression against the conjugate closed form (numpy and scipy)."""

import numpy as np
import pytest
import torch
from scipy.stats import multivariate_normal
from torch import nn

from posteriors.gaussians.gaussian import DiagonalGaussian
from posteriors.local import (
    DiagonalLaplace,
    FullLaplace,
    KroneckerLaplace,
    LastLayerLaplace,
    NoUTurn,
    SubnetworkLaplace,
    Variational,
)
from posteriors.local.mode import find_mode

PARAMETERS = 4


def problem(seed, *, diagonal_design, isotropic_prior):
    random = np.random.default_rng(seed)
    design = random.normal(size=(30, PARAMETERS))
    if diagonal_design:
        keep = random.integers(PARAMETERS, size=30)
        design = np.where(np.arange(PARAMETERS) == keep[:, None], design, 0.0)
    values = random.normal(1.0, 2.0, size=30)
    precision = random.uniform(0.3, 4.0, size=PARAMETERS)
    precision = np.full(PARAMETERS, 0.7) if isotropic_prior else precision
    return design, values, random.normal(size=PARAMETERS), precision


def closed_form(design, values, prior_mean, prior_precision):
    precision = np.diag(prior_precision) + design.T @ design
    right = prior_precision * prior_mean + design.T @ values
    evidence = multivariate_normal(
        design @ prior_mean, np.eye(len(values)) + design / prior_precision @ design.T
    ).logpdf(values)
    return np.linalg.solve(precision, right), np.linalg.inv(precision), evidence


def fit(method, design, values, prior_mean, prior_precision):
    """Fit at the mode that `find_mode` finds from a far start."""
    layer = nn.Linear(PARAMETERS, 1, bias=False).double()
    nn.init.constant_(layer.weight, 3.0)
    prior = DiagonalGaussian(torch.from_numpy(prior_mean), torch.from_numpy(prior_precision))
    data = torch.from_numpy(design), torch.from_numpy(values)[:, None]
    mode = find_mode(layer, *data, prior, "gaussian")
    assert mode.gradient < 1e-6
    with torch.no_grad():
        layer.weight.copy_(mode.parameters[None])
    return method.fit(layer, *data, prior, seed=1)


DENSE = [FullLaplace("gaussian"), LastLayerLaplace("gaussian"), SubnetworkLaplace(99, "gaussian")]
EXACT = [
    *[(method, False, False) for method in DENSE],
    (DiagonalLaplace("gaussian"), True, False),
    (KroneckerLaplace("gaussian"), False, True),
]


@pytest.mark.parametrize(("method", "diagonal_design", "isotropic_prior"), EXACT)
@pytest.mark.parametrize("seed", range(3))
def test_moments_and_evidence(method, diagonal_design, isotropic_prior, seed):
    data = problem(seed, diagonal_design=diagonal_design, isotropic_prior=isotropic_prior)
    mean, covariance, evidence = closed_form(*data)
    fitted = fit(method, *data)
    np.testing.assert_allclose(fitted.mean, mean, rtol=1e-8, atol=1e-8)
    assert fitted.log_evidence == pytest.approx(evidence, abs=1e-8)
    np.testing.assert_allclose(fitted.curvature, (data[0] ** 2).sum(0), rtol=1e-8)
    probes = np.random.default_rng(9).normal(size=(5, PARAMETERS))
    outputs = fitted.predictive.outputs(torch.from_numpy(probes))
    np.testing.assert_allclose(outputs.mean[:, 0], probes @ mean, atol=1e-8)
    variances = np.einsum("np,pq,nq->n", probes, covariance, probes)
    np.testing.assert_allclose(outputs.covariance[:, 0, 0], variances, rtol=1e-8)


@pytest.mark.parametrize(("method", "diagonal_design", "isotropic_prior"), EXACT)
def test_another_prior_precision_without_a_new_fit(method, diagonal_design, isotropic_prior):
    design, values, prior_mean, precision = problem(
        7, diagonal_design=diagonal_design, isotropic_prior=isotropic_prior
    )
    fitted = fit(method, design, values, prior_mean, precision)
    _, covariance, _ = closed_form(design, values, prior_mean, np.full(PARAMETERS, 30.0))
    probes = torch.eye(PARAMETERS, dtype=torch.float64)
    outputs = fitted.under_prior_precision(30.0).outputs(probes)
    np.testing.assert_allclose(outputs.covariance[:, 0, 0], np.diag(covariance), rtol=1e-8)
    assert fitted.predictive.outputs(probes).covariance[0, 0, 0] > outputs.covariance[0, 0, 0]


@pytest.mark.parametrize(("method", "diagonal_design", "isotropic_prior"), EXACT)
def test_draws_and_densities_have_the_posterior_moments(method, diagonal_design, isotropic_prior):
    data = problem(3, diagonal_design=diagonal_design, isotropic_prior=isotropic_prior)
    mean, covariance, _ = closed_form(*data)
    posterior = fit(method, *data).predictive.posterior
    draws = posterior.sample(20_000, torch.Generator().manual_seed(0)).numpy()
    scale = np.sqrt(np.diag(covariance))
    np.testing.assert_allclose((draws.mean(0) - mean) / scale, 0, atol=0.03)
    np.testing.assert_allclose(np.cov(draws.T) / np.outer(scale, scale),
                               covariance / np.outer(scale, scale), atol=0.05)  # fmt: skip
    expected = torch.from_numpy(multivariate_normal(mean, covariance).logpdf(draws[:50]))
    actual = posterior.log_density(torch.from_numpy(draws[:50]))
    torch.testing.assert_close(actual, expected, rtol=1e-6, atol=1e-5)


def test_variational_posterior_is_exact_where_the_posterior_is_diagonal():
    data = problem(1, diagonal_design=True, isotropic_prior=False)
    mean, covariance, evidence = closed_form(*data)
    fitted = fit(Variational(likelihood="gaussian", steps=1000), *data)
    deviation = np.sqrt(np.diag(covariance))
    np.testing.assert_allclose((fitted.mean.numpy() - mean) / deviation, 0, atol=0.15)
    precision = fitted.curvature.numpy() + data[3]
    np.testing.assert_allclose(precision, 1 / np.diag(covariance), rtol=0.25)
    assert evidence - 0.3 < fitted.log_evidence < evidence + 0.2
    assert fitted.evidence_kind == "lower bound"


def test_nuts_moments_and_evidence():
    """Correlated posterior; means within 5 standard errors of 400 draws, deviations within 15 %."""
    data = problem(2, diagonal_design=False, isotropic_prior=False)
    mean, covariance, evidence = closed_form(*data)
    fitted = fit(NoUTurn(likelihood="gaussian", draws=400, warmup=100), *data)
    deviation = np.sqrt(np.diag(covariance))
    np.testing.assert_allclose((fitted.mean.numpy() - mean) / deviation, 0, atol=5 / np.sqrt(400))
    np.testing.assert_allclose(fitted.predictive.draws.std(0).numpy() / deviation, 1, atol=0.15)
    assert fitted.log_evidence == pytest.approx(evidence, abs=0.02)
