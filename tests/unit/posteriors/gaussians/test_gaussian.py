import math

import pytest
import torch

from posteriors.gaussians.gaussian import DiagonalGaussian

MEAN = torch.tensor([[0.5, -1.0, 2.0], [3.0, 0.0, -0.25]], dtype=torch.float64)
PRECISION = torch.tensor([[0.5, 4.0, 1.5], [2.0, 0.1, 9.0]], dtype=torch.float64)


def independent(gaussian):
    normal = torch.distributions.Normal(gaussian.mean, gaussian.variance.sqrt())
    return torch.distributions.Independent(normal, 1)


@pytest.mark.parametrize("precision", [PRECISION, PRECISION[:, :1], PRECISION[0, 0]])
def test_log_density_and_entropy_agree_with_torch_distributions(precision):
    gaussian = DiagonalGaussian(MEAN, precision)
    oracle = independent(gaussian)
    x = torch.tensor([1.0, 0.3, -2.0], dtype=torch.float64)
    torch.testing.assert_close(gaussian.log_density(x), oracle.log_prob(x))
    torch.testing.assert_close(gaussian.entropy(), oracle.entropy())


def test_densities_of_float32_are_summed_in_float64():
    wide = torch.zeros(200_000)
    gaussian = DiagonalGaussian.isotropic(wide, 1.0)
    expected = -100_000 * math.log(2 * math.pi)
    assert gaussian.log_density(wide).dtype == torch.float64
    assert float(gaussian.log_density(wide)) == pytest.approx(expected, rel=1e-12)


def test_isotropic_precision_stays_one_number():
    gaussian = DiagonalGaussian.isotropic(torch.zeros(4, 1000), 2.5)
    assert gaussian.precision.numel() == 1
    assert gaussian.num_parameters == 1000
    assert gaussian.shift.shape == (4, 1000)


def test_samples_have_the_moments_and_follow_the_generator():
    gaussian = DiagonalGaussian(MEAN, PRECISION)
    draws = gaussian.sample(torch.Generator().manual_seed(3), (20_000,))
    same = gaussian.sample(torch.Generator().manual_seed(3), (20_000,))
    assert draws.shape == (20_000, 2, 3)
    assert torch.equal(draws, same)
    error = gaussian.variance.sqrt() / math.sqrt(20_000)
    assert bool(((draws.mean(0) - MEAN).abs() < 5 * error).all())
    torch.testing.assert_close(draws.var(0), gaussian.variance, rtol=0.06, atol=0)


def test_equality_is_identity():
    one, other = DiagonalGaussian(MEAN, PRECISION), DiagonalGaussian(MEAN, PRECISION)
    assert one != other
    assert len({one, other, one}) == 2


def test_repr_is_one_short_line():
    text = repr(DiagonalGaussian(MEAN, PRECISION))
    assert text == ("DiagonalGaussian(batch (2,), 3 parameters, precision 0.1 to 9, float64)")
    assert "\n" not in repr(DiagonalGaussian.isotropic(torch.zeros(5), 1.0))


@pytest.mark.parametrize(
    ("mean", "precision", "error", "message"),
    [
        (torch.zeros(3), torch.ones(2), ValueError, r"precision must be broadcastable .* \(2,\)"),
        (torch.zeros(3), torch.ones(2, 3), ValueError, "precision must be broadcastable"),
        (torch.zeros(()), torch.ones(()), ValueError, r"\(\.\.\., parameters\)"),
        (torch.zeros(2, 0), torch.ones(()), ValueError, "at least one parameter"),
        (torch.zeros(2), torch.tensor([1.0, -1.0]), ValueError, "at least 0, smallest is -1"),
        (torch.zeros(2), torch.tensor([1.0, math.nan]), ValueError, "precision must be finite"),
        (torch.zeros(2), torch.tensor([1.0, math.inf]), ValueError, "precision must be finite"),
        (torch.tensor([0.0, math.nan]), torch.ones(2), ValueError, "mean must be finite, 1 of 2"),
        (torch.zeros(2, dtype=torch.int64), torch.ones(2), TypeError, "mean must be a float32"),
        (torch.zeros(2), torch.ones(2).half(), TypeError, "precision must be a float32"),
        (torch.zeros(2), torch.ones(2).double(), TypeError, "share dtype"),
        ([0.0], torch.ones(1), TypeError, "got list"),
    ],
)
def test_bad_input_is_named(mean, precision, error, message):
    with pytest.raises(error, match=message):
        DiagonalGaussian(mean, precision)


@pytest.mark.parametrize(
    "use",
    [
        lambda flat: flat.log_density(torch.zeros(3)),
        lambda flat: flat.entropy(),
        lambda flat: flat.sample(torch.Generator()),
    ],
)
def test_a_flat_gaussian_has_no_density(use):
    flat = DiagonalGaussian(torch.zeros(3), torch.tensor([0.0, 1.0, 0.0]))
    assert not flat.is_proper
    with pytest.raises(ValueError, match="zero for 2 parameters"):
        use(flat)
