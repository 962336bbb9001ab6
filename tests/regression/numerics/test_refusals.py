"""What a curvature or a fit cannot take is refused with the error that its docstring names."""

import warnings

import pytest
import torch
from torch import nn
from torch.nn.utils import prune
from torch.utils.checkpoint import checkpoint

from posteriors import (
    DiagonalGaussian,
    UnsupportedFitError,
    UnsupportedLayerError,
    diagonal_curvature,
    find_mode,
    gauss_newton_matrix,
    local_posterior_fit,
)
from posteriors.local import NoUTurn


@pytest.fixture(autouse=True)
def _restored_generator():
    with torch.random.fork_rng():
        torch.manual_seed(0)
        yield


class CalledByKeyword(nn.Module):
    def __init__(self):
        super().__init__()
        self.first, self.last = nn.Linear(3, 4), nn.Linear(4, 2)

    def forward(self, x):
        return self.last(input=torch.tanh(self.first(x)))


class Recurrent(nn.Module):
    def __init__(self):
        super().__init__()
        self.cells, self.last = nn.LSTM(1, 3, batch_first=True), nn.Linear(3, 2)

    def forward(self, x):
        return self.last(self.cells(x.unsqueeze(2))[0][:, -1])


class Checkpointed(nn.Module):
    def __init__(self):
        super().__init__()
        self.first, self.last = nn.Linear(3, 4), nn.Linear(4, 2)

    def forward(self, x):
        return self.last(checkpoint(lambda h: self.first(h).tanh(), x, use_reentrant=False))


def plain(first=None, between=None):
    return nn.Sequential(first or nn.Linear(3, 4), between or nn.Tanh(), nn.Linear(4, 2))


def pruned():
    network = plain()
    prune.l1_unstructured(network[0], "weight", 0.4)
    return network


def hooked():
    network = plain()
    network[0].register_full_backward_hook(lambda layer, gradients, outputs: None)
    return network


def frozen():
    return plain().requires_grad_(False)


NETWORKS = {
    "layer called by keyword": CalledByKeyword,
    "weight normalisation": lambda: plain(nn.utils.weight_norm(nn.Linear(3, 4))),
    "spectral normalisation": lambda: plain(nn.utils.spectral_norm(nn.Linear(3, 4))),
    "pruned": pruned,
    "learned slope": lambda: plain(between=nn.PReLU()),
    "recurrent": Recurrent,
    "backward hook": hooked,
    "checkpointed": Checkpointed,
    "frozen": frozen,
}


def network(name):
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")  # of deprecated ways to build one
        return NETWORKS[name]()


def problem(module):
    size = sum(parameter.numel() for parameter in module.parameters())
    prior = DiagonalGaussian.isotropic(torch.zeros(size), 1.0)
    return torch.linspace(-1, 1, 18).reshape(6, 3), torch.arange(6) % 2, prior


@pytest.mark.parametrize(
    "name",
    [
        "learned slope",
        "recurrent",
        "layer called by keyword",
        "weight normalisation",
        "spectral normalisation",
        "pruned",
    ],
)
def test_diagonal_curvature_is_right_or_refused(name):
    module = network(name).eval()
    inputs, targets, _ = problem(module)
    try:
        measured = diagonal_curvature(module, inputs, targets)
    except UnsupportedLayerError:
        return
    right = gauss_newton_matrix(module, inputs, targets).diagonal()
    torch.testing.assert_close(measured, right.to(measured))  # which has the dtype of the network


@pytest.mark.parametrize(
    "name",
    [
        "learned slope",
        "recurrent",
        "backward hook",
        "checkpointed",
    ],
)
def test_what_passes_the_check_can_be_fitted(name):
    module = network(name)
    inputs, targets, prior = problem(module)
    fit = local_posterior_fit("laplace-full")
    try:
        fit.check(module, inputs[:1], prior)
    except UnsupportedFitError:
        return
    assert torch.isfinite(torch.tensor(fit.fit(module, inputs, targets, prior).log_evidence))


@pytest.mark.parametrize(
    "name",
    [
        "laplace-diag",
        "laplace-full",
        "laplace-subnetwork",
    ],
)
def test_fit_of_frozen_parameters(name):
    """Nothing is uncertain: the fit has the parameters as they are, or it is refused."""
    module = network("frozen")
    inputs, targets, prior = problem(module)
    try:
        fit = local_posterior_fit(name).fit(module, inputs, targets, prior)
    except ValueError:
        return
    flat = torch.cat([parameter.flatten() for parameter in module.parameters()])
    torch.testing.assert_close(fit.mean, flat)


def test_mode_of_frozen_parameters():
    module = network("frozen")
    inputs, targets, prior = problem(module)
    try:
        mode = find_mode(module, inputs, targets, prior)
    except ValueError:
        return
    flat = torch.cat([parameter.flatten() for parameter in module.parameters()])
    torch.testing.assert_close(mode.parameters, flat.double())  # modes are in float64


@pytest.mark.parametrize(
    "name",
    [
        "laplace-diag",
        "laplace-full",
        "laplace-last-layer",
        "laplace-subnetwork",
        "variational",
        "laplace-kron",
    ],
)
def test_fit_without_samples(name):
    module = plain()
    inputs, targets, prior = problem(module)
    with pytest.raises(ValueError, match="sample"):
        local_posterior_fit(name).fit(module, inputs[:0], targets[:0], prior)


def test_sampling_under_a_nearly_flat_prior():
    module = nn.Linear(3, 2)
    inputs, targets, prior = problem(module)
    flat = DiagonalGaussian.isotropic(prior.mean, 1e-30)
    try:
        fit = NoUTurn(draws=40, warmup=10).fit(module, inputs, targets, flat)
    except ValueError:
        return
    assert fit.mean.isfinite().all()
