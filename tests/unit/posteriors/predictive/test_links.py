import numpy as np
import pytest
import torch
from scipy.special import expit

from posteriors.predictive.links import apply_link, temper


def gaussian(scale, classes=3, samples=4, seed=0):
    generator = torch.Generator().manual_seed(seed)
    mean = 2 * torch.randn(samples, classes, generator=generator, dtype=torch.float64)
    root = torch.randn(samples, classes, classes, generator=generator, dtype=torch.float64)
    return mean, scale * root @ root.transpose(1, 2)


def monte_carlo(mean, covariance):
    noise = torch.randn(
        200_000, *mean.shape, generator=torch.Generator().manual_seed(1), dtype=torch.float64
    )
    root = torch.linalg.cholesky(covariance)
    return (mean + torch.einsum("nij,snj->sni", root, noise)).softmax(2).mean(0)


def test_probit_without_variance_is_the_softmax():
    mean, covariance = gaussian(0.0)
    torch.testing.assert_close(apply_link("probit", mean, covariance), mean.softmax(1))


def test_probit_of_one_uncertain_logit_is_mackays():
    """Two logits of variance v each: sigmoid(difference / sqrt(1 + pi v / 8))."""
    mean = torch.tensor([[0.0, 1.5]])
    p = apply_link("probit", mean, 2.0 * torch.eye(2)[None])
    assert float(p[0, 1]) == pytest.approx(expit(1.5 / np.sqrt(1 + np.pi / 4)), abs=1e-7)


def test_probit_approximates_the_expectation():
    mean, covariance = gaussian(0.3)
    p = apply_link("probit", mean, covariance)
    torch.testing.assert_close(p.sum(1), torch.ones(4).double())
    assert float((p - monte_carlo(mean, covariance)).abs().max()) < 0.1


def test_bridge_approximates_the_expectation_for_equal_variances():
    mean = gaussian(0.0)[0] / 2
    covariance = (0.5 * torch.eye(3).double() + 0.1).expand(4, 3, 3)
    p = apply_link("bridge", mean, covariance)
    torch.testing.assert_close(p.sum(1), torch.ones(4).double())
    assert float((p - monte_carlo(mean, covariance)).abs().max()) < 0.15


def test_bridge_of_symmetric_logits_is_uniform():
    p = apply_link("bridge", torch.zeros(1, 4), 3.0 * torch.eye(4)[None])
    torch.testing.assert_close(p, torch.full((1, 4), 0.25).double())


def test_bridge_survives_far_logits():
    mean = torch.tensor([[2000.0, 0.0, -1500.0]])
    p = apply_link("bridge", mean, torch.eye(3)[None])
    assert bool(p.isfinite().all())
    assert float(p[0, 0]) == pytest.approx(1.0)


@pytest.mark.parametrize("link", ["probit", "bridge"])
def test_more_variance_lowers_confidence(link):
    mean = torch.tensor([[2.0, 0.0, -1.0]])
    largest = [
        float(apply_link(link, mean, scale * torch.eye(3)[None]).max()) for scale in (0.5, 2.0, 8.0)
    ]
    assert largest[0] > largest[1] > largest[2] or link == "bridge"
    assert all(value > 1 / 3 for value in largest)


def test_tempering_divides_logits():
    logits = torch.tensor([[1.0, -2.0, 0.5], [0.0, 50.0, -50.0]], dtype=torch.float64)
    torch.testing.assert_close(temper(logits, 2.5), (logits / 2.5).softmax(1))
    torch.testing.assert_close(temper(logits.log_softmax(1), 2.5), (logits / 2.5).softmax(1))
    assert temper(torch.tensor([0.0, 1.0]).log(), 3.0).tolist() == [0.0, 1.0]


def test_tempering_brings_back_probabilities_that_round_to_zero():
    found = temper(torch.tensor([0.0, -1000.0, -2000.0]), 1000.0)
    expected = torch.tensor([0.665241, 0.244728, 0.090031], dtype=torch.float64)
    torch.testing.assert_close(found, expected, rtol=1e-5, atol=0)


def test_bad_arguments_are_named():
    with pytest.raises(ValueError, match="link must be one of probit, bridge, got 'mc'"):
        apply_link("mc", torch.zeros(1, 2), torch.eye(2)[None])
    with pytest.raises(ValueError, match=r"got \(1, 2\) and \(1, 3, 3\)"):
        apply_link("probit", torch.zeros(1, 2), torch.eye(3)[None])
    with pytest.raises(ValueError, match="some variance for the link 'bridge'"):
        apply_link("bridge", torch.zeros(1, 2), torch.zeros(1, 2, 2))
    for temperature in (0.0, float("inf")):
        with pytest.raises(ValueError, match="temperature must be positive"):
            temper(torch.ones(1, 2) / 2, temperature)
