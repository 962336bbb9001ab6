"""The predictive of a fit takes the inputs that the fit took."""

import pytest
import torch
from torch import nn

from posteriors import (
    DiagonalGaussian,
    diagonal_curvature,
    gauss_newton_matrix,
    local_posterior_fit,
)
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


@pytest.mark.parametrize("dtypes", [(torch.float32, torch.float64), (torch.float64, torch.float32)])
@pytest.mark.parametrize(
    "name",
    ["laplace-diag", "laplace-last-layer", "laplace-full", "laplace-subnetwork", "laplace-kron"],
)
def test_fits_inputs_of_another_dtype(problem, name, dtypes):
    of_network, of_inputs = dtypes
    network, inputs, targets = problem
    network, inputs = network.to(of_network), inputs.to(of_inputs)
    expected = fitted(name, (network, inputs.to(of_network), targets), prior(of_network))
    fit = fitted(name, (network, inputs, targets), prior(of_network))
    torch.testing.assert_close(fit.curvature, expected.curvature)
    check(fit.predictive.probabilities(inputs))


@pytest.mark.parametrize("of_inputs", [torch.float32, torch.float64])
@pytest.mark.parametrize("of_network", [torch.float32, torch.float64])
def test_curvatures_are_in_the_dtype_of_the_network(problem, of_network, of_inputs):
    network, inputs, targets = problem
    network, inputs = network.to(of_network), inputs.to(of_inputs)
    assert diagonal_curvature(network, inputs, targets).dtype == of_network
    matrix = gauss_newton_matrix(network, inputs, targets)
    found = diagonal_curvature(network, inputs, targets).double()
    torch.testing.assert_close(matrix.diagonal(), found, rtol=1e-4, atol=1e-6)


def test_variational_fit_under_a_float64_prior(problem):
    check(fitted("variational", problem, prior(torch.float64)).predictive.probabilities(problem[1]))
