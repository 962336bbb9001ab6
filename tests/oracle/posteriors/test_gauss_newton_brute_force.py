"""The Gauss-Newton matrix against autograd's Jacobian of the whole data set, in float64."""

import pytest
import torch
from torch import nn

from posteriors.curvature.diagonal import diagonal_curvature
from posteriors.curvature.gauss_newton import gauss_newton_matrix
from posteriors.networks.functional import flat_parameters, outputs_at


@pytest.fixture
def network():
    with torch.random.fork_rng():
        torch.manual_seed(0)
        return nn.Sequential(
            nn.Conv2d(1, 2, 2), nn.BatchNorm2d(2), nn.ReLU(inplace=True), nn.Flatten(),
            nn.Linear(8, 3),
        ).double()  # fmt: skip


def expected_matrix(network, inputs, likelihood):
    vector = flat_parameters(network)
    jacobian = torch.autograd.functional.jacobian(
        lambda values: outputs_at(network, values, inputs), vector
    )
    hessian = torch.eye(3, dtype=torch.float64).expand(len(inputs), 3, 3)
    if likelihood == "categorical":
        p = outputs_at(network, vector, inputs).softmax(1)
        hessian = torch.diag_embed(p) - p[:, :, None] * p[:, None]
    if likelihood == "bernoulli":
        p = outputs_at(network, vector, inputs).sigmoid()
        hessian = torch.diag_embed(p * (1 - p))
    return torch.einsum("nip,nij,njq->pq", jacobian, hessian, jacobian)


@pytest.mark.parametrize("likelihood", ["categorical", "gaussian", "bernoulli"])
@pytest.mark.parametrize("indices", [None, torch.tensor([3, 30, 40, 12])])
def test_matrix_and_its_diagonal(network, likelihood, indices):
    generator = torch.Generator().manual_seed(1)
    inputs = torch.randn(6, 1, 3, 3, generator=generator, dtype=torch.float64)
    targets = torch.tensor([0, 1, 2, 0, 0, 1])
    targets = targets if likelihood == "categorical" else torch.zeros(6, 3).double()
    actual = gauss_newton_matrix(network, inputs, targets, likelihood, indices)
    expected = expected_matrix(network, inputs, likelihood).detach()
    expected = expected if indices is None else expected[indices][:, indices]
    torch.testing.assert_close(actual, expected, rtol=1e-10, atol=1e-13)
    if indices is None:
        diagonal = diagonal_curvature(network, inputs, targets, likelihood=likelihood)
        torch.testing.assert_close(actual.diagonal(), diagonal, rtol=1e-9, atol=1e-13)


def test_bad_targets_are_named(network):
    with pytest.raises(ValueError, match="same number of samples"):
        gauss_newton_matrix(network, torch.zeros(2, 1, 3, 3).double(), torch.tensor([0]))
    with pytest.raises(ValueError, match="targets must lie in 0 to 2"):
        gauss_newton_matrix(network, torch.zeros(1, 1, 3, 3).double(), torch.tensor([5]))
