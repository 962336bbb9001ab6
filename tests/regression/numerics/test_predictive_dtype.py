"""The predictive of a fit takes the inputs that the fit took."""

import pytest
import torch
from torch import nn

from posteriors import DiagonalGaussian, local_posterior_fit
from posteriors.local import NoUTurn, Variational

SHORT = {"variational": Variational(steps=20), "nuts": NoUTurn(draws=20, warmup=5)}


@pytest.fixture
def problem():
    with torch.random.fork_rng():
        torch.manual_seed(0)
        network = nn.Sequential(nn.Linear(3, 2), nn.Tanh(), nn.Linear(2, 2))
        return network, torch.randn(6, 3), torch.tensor([0, 1, 1, 0, 1, 0])


def prior(dtype=torch.float32):
    return DiagonalGaussian.isotropic(torch.zeros(14, dtype=dtype), 1.0)


def fitted(name, problem, prior):
    return SHORT.get(name, local_posterior_fit(name)).fit(*problem, prior)


def check(probabilities):
    assert probabilities.shape[-2:] == (6, 2)
    torch.testing.assert_close(probabilities.sum(-1), torch.ones_like(probabilities[..., 0]))


@pytest.mark.parametrize(
    "name",
    [
        "laplace-diag",
        "variational",
        "laplace-last-layer",
        "laplace-full",
        "laplace-subnetwork",
        "laplace-kron",
        "nuts",
    ],
)
def test_predicts_what_it_was_fitted_to(problem, name):
    check(fitted(name, problem, prior()).predictive.probabilities(problem[1]))


@pytest.mark.parametrize(
    "name",
    [
        "laplace-diag",
        "laplace-last-layer",
        "laplace-full",
        "laplace-subnetwork",
        "laplace-kron",
    ],
)
def test_predicts_under_another_prior(problem, name):
    fit = fitted(name, problem, prior())
    check(fit.under_prior_precision(2.0).probabilities(problem[1]))


def test_variational_fit_under_a_float64_prior(problem):
    check(fitted("variational", problem, prior(torch.float64)).predictive.probabilities(problem[1]))
