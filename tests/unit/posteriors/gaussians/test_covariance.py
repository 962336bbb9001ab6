import numpy as np
import pytest
import torch
from scipy.stats import multivariate_normal

from posteriors.curvature.likelihood_curvature import DenseCurvature, DiagonalCurvature
from posteriors.gaussians.covariance import DenseCovariance, DiagonalCovariance, StructuredGaussian
from posteriors.gaussians.gaussian import DiagonalGaussian

MEAN = torch.tensor([1.0, -2.0, 0.5, 3.0], dtype=torch.float64)
MATRIX = torch.tensor([[2.0, 0.6, 0.0], [0.6, 1.0, -0.3], [0.0, -0.3, 4.0]], dtype=torch.float64)
CHOSEN = torch.tensor([3, 0, 1])


def dense():
    return DenseCovariance.from_precision(MATRIX, CHOSEN)


def diagonal(indices=None):
    return DiagonalCovariance(torch.tensor([2.0, 1.0, 4.0]).double(), indices)


@pytest.mark.parametrize("covariance", [dense(), diagonal(CHOSEN)])
def test_known_parameters_stay_and_the_others_vary(covariance):
    posterior = StructuredGaussian(MEAN, covariance)
    draws = posterior.sample(40_000, torch.Generator().manual_seed(0))
    assert bool((draws[:, 2] == 0.5).all())
    matrix = MATRIX if isinstance(covariance, DenseCovariance) else torch.diag(covariance.precision)
    expected = np.linalg.inv(matrix)
    np.testing.assert_allclose(np.cov(draws[:, CHOSEN].numpy().T), expected, atol=0.02)
    np.testing.assert_allclose(draws.mean(0), MEAN, atol=0.02)
    density = multivariate_normal(MEAN[CHOSEN].numpy(), expected)
    np.testing.assert_allclose(
        posterior.log_density(draws[:9]), density.logpdf(draws[:9, CHOSEN].numpy())
    )


@pytest.mark.parametrize("covariance", [dense(), diagonal()])
def test_covariance_of_linear_maps(covariance):
    matrix = MATRIX if isinstance(covariance, DenseCovariance) else torch.diag(covariance.precision)
    generator = torch.Generator().manual_seed(2)
    maps = torch.randn(5, 2, 3, generator=generator, dtype=torch.float64)
    expected = torch.einsum("ncp,pq,nkq->nck", maps, torch.linalg.inv(matrix), maps)
    torch.testing.assert_close(covariance.of_outputs(maps), expected)


def test_diagonal_gaussians_convert():
    isotropic = DiagonalGaussian.isotropic(torch.zeros(3), 4.0)
    posterior = StructuredGaussian.from_diagonal(isotropic)
    point = torch.tensor([[0.1, 0.2, -0.3]])
    torch.testing.assert_close(posterior.log_density(point), isotropic.log_density(point))
    assert posterior.sample(2, torch.Generator()).dtype == torch.float32
    with pytest.raises(ValueError, match="precision must be positive"):
        StructuredGaussian.from_diagonal(DiagonalGaussian.isotropic(torch.zeros(3), 0.0))


def test_curvature_and_prior_make_a_posterior():
    prior = torch.tensor([0.5, 2.0, 1.0], dtype=torch.float64)
    curvature = DenseCurvature(MATRIX, CHOSEN)
    torch.testing.assert_close(
        curvature.under(prior).factor @ curvature.under(prior).factor.T, MATRIX + torch.diag(prior)
    )
    expected = torch.logdet(MATRIX + torch.diag(prior)) - prior.log().sum()
    assert curvature.log_determinant_ratio(prior) == pytest.approx(float(expected))
    alone = DiagonalCurvature(MATRIX.diagonal(), CHOSEN)
    torch.testing.assert_close(alone.under(prior).precision, MATRIX.diagonal() + prior)
    ratio = torch.log((MATRIX.diagonal() + prior) / prior).sum()
    assert alone.log_determinant_ratio(prior) == pytest.approx(float(ratio))


def test_bad_precisions_are_named():
    with pytest.raises(ValueError, match="must be positive definite"):
        DenseCovariance.from_precision(-MATRIX, CHOSEN)
    with pytest.raises(ValueError, match=r"shape \(2, 2\), got \(3, 3\)"):
        DenseCovariance.from_precision(MATRIX, CHOSEN[:2])
    with pytest.raises(ValueError, match="precision must be positive numbers"):
        DiagonalCovariance(torch.tensor([1.0, 0.0]))
