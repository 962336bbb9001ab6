import pytest
import torch
from torch.distributions import Independent, Normal, kl_divergence

from posteriors.gaussians.divergence import kl
from posteriors.gaussians.gaussian import DiagonalGaussian


def gaussian(mean, precision):
    return DiagonalGaussian(
        torch.tensor([mean], dtype=torch.float64), torch.tensor([precision], dtype=torch.float64)
    )


FIRST, SECOND = gaussian(0.4, 5.0), gaussian(0.8, 9.0)


def test_published_values():
    assert float(kl(FIRST, SECOND)) == pytest.approx(0.8261066675, abs=1e-9)


def test_kl_agrees_with_torch_distributions_over_leading_axes():
    generator = torch.Generator().manual_seed(4)
    mean = torch.randn(3, 5, generator=generator, dtype=torch.float64)
    precision = torch.rand(3, 5, generator=generator, dtype=torch.float64) + 0.2
    p = DiagonalGaussian(mean, precision)
    q = DiagonalGaussian.isotropic(mean[0], 2.0)
    oracle = kl_divergence(
        Independent(Normal(p.mean, p.variance.sqrt()), 1),
        Independent(Normal(q.mean, q.variance.sqrt().expand(5)), 1),
    )
    assert kl(p, q).shape == (3,)
    torch.testing.assert_close(kl(p, q), oracle)


def test_isotropic_pairs_count_every_parameter():
    small = [DiagonalGaussian.isotropic(torch.zeros(10), value) for value in (1.0, 3.0)]
    full = [DiagonalGaussian(g.mean, g.precision.expand(10).clone()) for g in small]
    torch.testing.assert_close(kl(*small), kl(*full))
    assert float(kl(*small)) > 0.5


def test_bad_pairs_are_named():
    flat = DiagonalGaussian.isotropic(torch.zeros(1, dtype=torch.float64), 0.0)
    for pair in ((flat, FIRST), (FIRST, flat)):
        with pytest.raises(ValueError, match="no density"):
            kl(*pair)
    wide = DiagonalGaussian.isotropic(torch.zeros(2, dtype=torch.float64), 1.0)
    with pytest.raises(ValueError, match="as many parameters, got 1 and 2"):
        kl(FIRST, wide)
