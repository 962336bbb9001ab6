import importlib

import pytest
import torch

from posteriors.gaussians.gaussian import DiagonalGaussian
from posteriors.local import KroneckerLaplace, UnsupportedFitError
from posteriors.local.kronecker_laplace import KroneckerCurvature


def curvature(first, second):
    matrix = importlib.import_module("laplace.utils.matrix")
    factors = [[torch.diag(torch.tensor(side, dtype=torch.float64)) for side in (first, second)]]
    return KroneckerCurvature(matrix.Kron(factors).decompose(), (4,))


def test_curvatures_are_summed_in_diagonal_form():
    """Sums of Kronecker products aren't Kronecker products: not (3, 3) x (4, 2)."""
    one, other = curvature([1.0, 2.0], [3.0, 1.0]), curvature([2.0, 1.0], [1.0, 1.0])
    exact = one.diagonal() + other.diagonal()
    torch.testing.assert_close(exact, torch.tensor([5.0, 3.0, 7.0, 3.0]).double())
    summed = curvature([3.0, 3.0], [4.0, 2.0]).diagonal()
    torch.testing.assert_close(summed, torch.tensor([12.0, 6.0, 12.0, 6.0]).double())


def test_posterior_of_rotated_factors():
    generator = torch.Generator().manual_seed(0)
    roots = [torch.randn(n, n, generator=generator, dtype=torch.float64) for n in (3, 2)]
    sides = [root @ root.T for root in roots]
    matrix = importlib.import_module("laplace.utils.matrix")
    one = KroneckerCurvature(matrix.Kron([sides]).decompose(), (6,))
    dense = torch.kron(*sides)
    torch.testing.assert_close(one.diagonal(), dense.diagonal())
    prior = torch.full((6,), 0.7, dtype=torch.float64)
    posterior = dense + torch.diag(prior)
    expected = torch.logdet(posterior) - prior.log().sum()
    assert one.log_determinant_ratio(prior) == pytest.approx(float(expected))
    maps = torch.randn(4, 2, 6, generator=generator, dtype=torch.float64)
    covariances = maps @ torch.linalg.inv(posterior) @ maps.transpose(1, 2)
    torch.testing.assert_close(one.under(prior).of_outputs(maps), covariances)


def test_labels_are_refused_with_what_takes_them():
    prior = DiagonalGaussian.isotropic(torch.zeros(9), 1.0)
    with pytest.raises(
        UnsupportedFitError, match="got labels; laplace-diag, -last-layer and -full"
    ):
        KroneckerLaplace("bernoulli").check(torch.nn.Linear(2, 3), torch.zeros(1, 2), prior)
