"""Fusion, merging and evidence of BCFL against closed forms of a scalar linear-Gaussian model.

"A Bayesian framework for clustered federated learning", equations 8, 9, 19 and 20.
"""

import math

import numpy as np
import pytest
import torch

from posteriors import DiagonalGaussian, LocalPosterior, fuse, merge, quadratic_log_evidence

MEAN, PRECISION = 0.5, 2.0
DATA = np.array([1.0, -2.0, 4.0])
NOISE_PRECISIONS = np.array([3.0, 1.0, 0.2])


def tensor(*values):
    return torch.tensor(values, dtype=torch.float64)


def normal_log_density(x, mean, covariance):
    error = np.asarray(x) - mean
    _, log_determinant = np.linalg.slogdet(2 * np.pi * covariance)
    return -0.5 * (log_determinant + error @ np.linalg.solve(covariance, error))


@pytest.fixture
def prior():
    return DiagonalGaussian(tensor(MEAN), tensor(PRECISION))


@pytest.fixture
def locals_(prior):
    """Each client's posterior under the prior."""
    modes = (PRECISION * MEAN + NOISE_PRECISIONS * DATA) / (PRECISION + NOISE_PRECISIONS)
    pairs = zip(modes, NOISE_PRECISIONS, strict=True)
    return [
        LocalPosterior(mean=tensor(mode), curvature=tensor(one), used=prior, num_samples=1)
        for mode, one in pairs
    ]


def test_exact_fusion_is_the_pooled_posterior(prior, locals_):
    fused = fuse("exact", prior, locals_).posterior
    precision = PRECISION + NOISE_PRECISIONS.sum()
    mean = (PRECISION * MEAN + NOISE_PRECISIONS @ DATA) / precision
    assert fused.mean.item() == pytest.approx(mean, rel=1e-12)
    assert fused.precision.item() == pytest.approx(precision, rel=1e-12)


def test_literal_fusion_is_the_product_of_posteriors(prior, locals_):
    """Equation 8 as printed: the prior counts once for each client."""
    fused = fuse("literal", prior, locals_).posterior
    precision = (PRECISION + NOISE_PRECISIONS).sum()
    mean = (len(DATA) * PRECISION * MEAN + NOISE_PRECISIONS @ DATA) / precision
    assert fused.mean.item() == pytest.approx(mean, rel=1e-12)
    assert fused.precision.item() == pytest.approx(precision, rel=1e-12)


def test_merged_moments():
    rng = np.random.default_rng(0)
    weights, means = np.array([0.2, 0.5, 0.3]), rng.normal(size=(3, 4))
    variances = rng.uniform(0.1, 2, (3, 4))
    pairs = zip(means, variances, strict=True)
    merged = merge(
        [DiagonalGaussian(torch.tensor(m), torch.tensor(1 / v)) for m, v in pairs], np.log(weights)
    )
    mean = weights @ means
    variance = weights @ (variances + (means - mean) ** 2)
    np.testing.assert_allclose(merged.mean.numpy(), mean, rtol=1e-12)
    np.testing.assert_allclose(1 / merged.precision.numpy(), variance, rtol=1e-12)


def test_joint_evidence_of_two_clients():
    """Clients of one cluster share its parameter, so their data are correlated under the prior."""
    data, variance = np.array([1.3, -0.7]), 0.5
    right = normal_log_density(data, MEAN, variance * np.eye(2) + np.ones((2, 2)) / PRECISION)
    likelihood = sum(normal_log_density([one], MEAN, np.array([[variance]])) for one in data)
    measured = quadratic_log_evidence(
        likelihood,
        np.array([(data - MEAN).sum() / variance]),
        np.array([len(data) / variance]),
        np.array([PRECISION]),
    )
    assert float(measured) == pytest.approx(right, rel=1e-12)
    apart = sum(
        normal_log_density([one], MEAN, np.array([[variance + 1 / PRECISION]])) for one in data
    )
    assert not math.isclose(float(measured), apart, rel_tol=1e-3)
