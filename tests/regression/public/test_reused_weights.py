"""Curvature of weights that enter the forward pass twice is exact, or refused by name.

Reported to neighbouring projects: per-sample gradients of tied or reparameterised weights are those
of one use only.
"""

import pytest
import torch
from torch import nn
from torch.nn import functional as F
from torch.nn.utils import parametrizations, prune, spectral_norm, weight_norm

from posteriors import (
    DiagonalGaussian,
    UnsupportedFitError,
    UnsupportedLayerError,
    diagonal_curvature,
    gauss_newton_matrix,
    local_posterior_fit,
)


class WeightAgain(nn.Module):
    def __init__(self):
        super().__init__()
        self.layer, self.last = nn.Linear(4, 4), nn.Linear(4, 3)

    def forward(self, x):
        return self.last(torch.tanh(F.linear(torch.tanh(self.layer(x)), self.layer.weight)))


class TiedDecoder(nn.Module):
    def __init__(self):
        super().__init__()
        self.encoder = nn.Linear(4, 3)

    def forward(self, x):
        return F.linear(torch.tanh(self.encoder(x)), self.encoder.weight.t())[:, :3]


class Cosine(nn.Module):
    def __init__(self):
        super().__init__()
        self.layer = nn.Linear(4, 3, bias=False)

    def forward(self, x):
        return self.layer(x) / self.layer.weight.norm(dim=1)


class BiasAgain(nn.Module):
    def __init__(self):
        super().__init__()
        self.layer = nn.Linear(4, 3)

    def forward(self, x):
        return torch.tanh(self.layer(x)) + self.layer.bias


class CalledTwice(nn.Module):
    def __init__(self):
        super().__init__()
        self.layer, self.last = nn.Linear(4, 4), nn.Linear(4, 3)

    def forward(self, x):
        return self.last(torch.tanh(self.layer(torch.tanh(self.layer(x)))))


class OneParameter(nn.Module):
    def __init__(self):
        super().__init__()
        self.first, self.second, self.last = nn.Linear(4, 4), nn.Linear(4, 4), nn.Linear(4, 3)
        self.second.weight = self.first.weight

    def forward(self, x):
        return self.last(torch.tanh(self.second(torch.tanh(self.first(x)))))


class KeywordCall(nn.Module):
    def __init__(self):
        super().__init__()
        self.layer, self.last = nn.Linear(4, 4), nn.Linear(4, 3)

    def forward(self, x):
        return self.last(torch.tanh(self.layer(input=x)))


def plain():
    return nn.Sequential(nn.Linear(4, 5), nn.ReLU(inplace=True), nn.Linear(5, 3))


def normed(norm):
    return lambda: nn.Sequential(norm(nn.Linear(4, 5)), nn.Tanh(), nn.Linear(5, 3))


def pruned():
    network = nn.Sequential(nn.Linear(4, 5), nn.Tanh(), nn.Linear(5, 3))
    prune.random_unstructured(network[0], "weight", 0.4)
    return network


def made(build, count=7):
    with torch.random.fork_rng(devices=[]):
        torch.manual_seed(0)
        return build(), torch.randn(count, 4), torch.arange(count) % 3


@pytest.mark.filterwarnings("ignore:.*weight_norm.* is deprecated:FutureWarning")
@pytest.mark.parametrize(
    "build",
    [
        plain,
        CalledTwice,
        OneParameter,
        WeightAgain,
        TiedDecoder,
        Cosine,
        BiasAgain,
        pytest.param(normed(weight_norm), id="weight-norm"),
        pytest.param(normed(spectral_norm), id="spectral-norm"),
        pruned,
        pytest.param(normed(parametrizations.weight_norm), id="parametrised-weight-norm"),
        KeywordCall,
    ],
)
def test_diagonal_is_exact_or_refused(true_diagonal, build):
    network, inputs, classes = made(build)
    try:
        found = diagonal_curvature(network, inputs, classes)
    except UnsupportedLayerError:
        return
    torch.testing.assert_close(found, true_diagonal(network, inputs), rtol=1e-4, atol=1e-5)


@pytest.mark.filterwarnings("ignore:.*weight_norm.* is deprecated:FutureWarning")
@pytest.mark.parametrize("build", [WeightAgain, TiedDecoder, Cosine, OneParameter])
def test_the_full_matrix_is_exact(true_diagonal, build):
    network, inputs, classes = made(build)
    found = gauss_newton_matrix(network, inputs, classes).diagonal()
    torch.testing.assert_close(
        found, true_diagonal(network, inputs).to(found), rtol=1e-4, atol=1e-5
    )


@pytest.mark.parametrize(
    "build",
    [
        plain,
        WeightAgain,
        TiedDecoder,
        Cosine,
        CalledTwice,
        OneParameter,
    ],
)
def test_kronecker_factors_of_one_sample_are_exact_or_refused(true_diagonal, build):
    """With one sample the factors of a layer that is used once multiply to its exact block."""
    network, inputs, classes = made(build, count=1)
    size = sum(p.numel() for p in network.parameters())
    prior = DiagonalGaussian(torch.zeros(size), torch.ones(size))
    try:
        fit = local_posterior_fit("laplace-kron").fit(network, inputs, classes, prior)
    except (UnsupportedFitError, UnsupportedLayerError):
        return
    expected = true_diagonal(network, inputs).to(fit.curvature)
    torch.testing.assert_close(fit.curvature, expected, rtol=1e-3, atol=1e-5)


@pytest.mark.parametrize("build", [plain, WeightAgain])
def test_the_precision_of_one_client_is_prior_plus_curvature(
    clients, mlp, federation, true_diagonal, build
):
    """One client, one cluster: curvature at its own trained model, at least 1e-3 a sample.

    A network that no rule covers is refused before any work, as a single curvature is.
    """
    (client,) = clients(1)
    model = mlp(build, num_outputs=3)
    try:
        run = federation([client], model, "bcfl-g", num_clusters=1).run(rounds=1)
    except UnsupportedLayerError:
        assert build is WeightAgain
        return
    (cluster,) = run.hypotheses.best.clusters
    network = build()
    nn.utils.vector_to_parameters(cluster.mean(model), network.parameters())
    samples = client.views["train"].inputs
    expected = 1 + true_diagonal(network, samples).clamp(min=1e-3 * len(samples))
    torch.testing.assert_close(cluster.precision(model), expected, rtol=1e-3, atol=1e-4)
