import numpy as np
import pytest
import torch
from scipy.stats import multivariate_normal

from posteriors.predictive.feature_density import FeatureSums, GaussianDensity, ridged

ROWS = np.random.default_rng(0).normal(size=(40, 3)) @ np.array([[1, 0.4, 0], [0, 2, 0], [0, 0, 3]])


def test_sums_are_additive_and_scale_with_weights():
    parts = [
        FeatureSums.of(torch.from_numpy(ROWS[:15])),
        FeatureSums.of(torch.from_numpy(ROWS[15:])),
    ]
    whole = parts[0] + parts[1]
    np.testing.assert_allclose(whole.mean, ROWS.mean(0))
    np.testing.assert_allclose(whole.scatter, np.cov(ROWS.T) * 39, rtol=1e-10)
    np.testing.assert_allclose((whole * 0.25).scatter, np.cov(ROWS.T) * 39 / 4, rtol=1e-10)
    assert (whole * 0.25).count == 10


def test_log_density_is_that_of_scipy():
    prior = np.diag([1.0, 2.0, 0.5])
    density = GaussianDensity.of(FeatureSums.of(torch.from_numpy(ROWS)), torch.from_numpy(prior))
    covariance = (np.cov(ROWS.T) * 39 + 3 * prior) / 43
    wanted = multivariate_normal(ROWS.mean(0), covariance).logpdf(ROWS[:5])
    np.testing.assert_allclose(density.log_density(torch.from_numpy(ROWS[:5])), wanted, rtol=1e-10)


def test_one_sample_has_the_target_covariance():
    prior = torch.eye(3, dtype=torch.float64)
    density = GaussianDensity.of(FeatureSums.of(torch.ones(1, 3)), prior)
    np.testing.assert_allclose(density.factor @ density.factor.T, 0.75 * np.eye(3))


@pytest.mark.parametrize("scale", [0.0, 7.0])
def test_constant_features_have_a_proper_covariance(scale):
    covariance = scale * torch.diag(torch.tensor([1.0, 0.0], dtype=torch.float64))
    assert float(torch.linalg.eigvalsh(ridged(covariance)).min()) > 1e-4 * max(scale, 1)


@pytest.mark.parametrize("seed", range(20))
def test_scatter_of_rounding_errors_counts_as_zero(seed):
    """Parts of one sample each: scatters are zero but for rounding, which is not definite."""
    draw = torch.Generator().manual_seed(seed)
    parts = [FeatureSums.of(3 * torch.randn(1, 5, generator=draw)) * 1.3 for _ in range(3)]
    parts = [part + part * 1e-7 for part in parts]
    total = parts[0] + parts[1] + parts[2]
    within = sum(part.scatter for part in parts) / total.count
    proper = ridged(within, total.mean_square)
    np.testing.assert_allclose(proper, np.eye(5), atol=1e-12)
    assert torch.isfinite(GaussianDensity.of(total, proper).factor).all()
