"""Recurrent networks and attention: which local posteriors take them, and Jacobians by hand."""

import pytest
import torch
from torch import nn

from posteriors import DiagonalGaussian, UnsupportedLayerError, local_posterior_fit
from posteriors.local import UnsupportedFitError
from posteriors.networks.functional import flat_parameters, jacobians

LABELS = torch.arange(8) % 2


class Recurrent(nn.Module):
    def __init__(self, kind):
        super().__init__()
        self.recurrent, self.classifier = kind(3, 2, batch_first=True), nn.Linear(2, 2)

    def forward(self, x):
        return self.classifier(self.recurrent(x)[0][:, -1])


class Attention(nn.Module):
    def __init__(self):
        super().__init__()
        self.attention = nn.MultiheadAttention(3, 1, batch_first=True)
        self.classifier = nn.Linear(3, 2)

    def forward(self, x):
        return self.classifier(self.attention(x, x, x, need_weights=False)[0].mean(1))


class Transformer(nn.Module):
    def __init__(self):
        super().__init__()
        self.encoder = nn.TransformerEncoderLayer(3, 1, 4, batch_first=True)
        self.classifier = nn.Linear(3, 2)

    def forward(self, x):
        return self.classifier(self.encoder(x).mean(1))


NETWORKS = {
    "lstm": lambda: Recurrent(nn.LSTM),
    "gru": lambda: Recurrent(nn.GRU),
    "rnn": lambda: Recurrent(nn.RNN),
    "attention": Attention,
    "transformer": Transformer,
}


@pytest.fixture(params=NETWORKS)
def problem(request):
    with torch.random.fork_rng(devices=[]):
        torch.manual_seed(0)
        module, inputs = NETWORKS[request.param]().eval(), torch.randn(8, 4, 3)
    size = sum(parameter.numel() for parameter in module.parameters())
    return module, inputs, DiagonalGaussian.isotropic(torch.zeros(size), 1.0)


def test_jacobians_are_those_of_each_output_in_turn(problem):
    module, inputs, prior = problem
    module, inputs = module.double(), inputs.double()
    chosen = torch.tensor([0, 5, len(prior.mean) - 1])
    found = [*jacobians(module, flat_parameters(module), inputs, chosen, chunk_bytes=1)]
    outputs, derivatives = (torch.cat(parts) for parts in zip(*found, strict=True))
    torch.testing.assert_close(outputs, module(inputs).detach())
    for sample in (0, 7):
        for output in (0, 1):
            gradients = torch.autograd.grad(
                module(inputs[sample : sample + 1])[0, output], [*module.parameters()]
            )
            right = torch.cat([gradient.flatten() for gradient in gradients])[chosen]
            torch.testing.assert_close(derivatives[sample, output], right)


@pytest.mark.parametrize("name", ["laplace-last-layer", "laplace-full"])
def test_fits_that_need_no_rule(problem, name):
    module, inputs, prior = problem
    method = local_posterior_fit(name)
    method.check(module, inputs, prior)
    fit = method.fit(module, inputs, LABELS, prior)
    assert fit.curvature.shape == prior.mean.shape
    assert bool((fit.curvature >= 0).all())
    assert bool((fit.curvature[-6:] > 0).all())
    probabilities = fit.predictive.probabilities(inputs)
    torch.testing.assert_close(probabilities.sum(1), torch.ones(8).to(probabilities))


@pytest.mark.parametrize("name", ["laplace-diag", "laplace-subnetwork", "laplace-kron"])
def test_fits_that_need_a_rule_name_those_that_do_not(problem, name):
    module, inputs, prior = problem
    with pytest.raises(
        (UnsupportedFitError, UnsupportedLayerError),
        match=r"that need no rule are laplace-last-layer, laplace-full .*, variational .* and nuts",
    ):
        local_posterior_fit(name).check(module, inputs, prior)


class Scaled(nn.Module):
    def __init__(self):
        super().__init__()
        self.scale, self.classifier = nn.Parameter(torch.ones(3)), nn.Linear(3, 2)

    def forward(self, x):
        return self.classifier(x * self.scale)


@pytest.mark.parametrize("name", ["laplace-diag", "laplace-kron"])
def test_a_parameter_of_the_network_itself_is_told_as_such(name):
    prior = DiagonalGaussian.isotropic(torch.zeros(11), 1.0)
    with pytest.raises(
        (UnsupportedFitError, UnsupportedLayerError), match=r"the network itself \(Scaled\)"
    ):
        local_posterior_fit(name).check(Scaled(), torch.ones(4, 3), prior)
