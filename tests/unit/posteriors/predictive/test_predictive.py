import pytest
import torch
from torch import nn
from torch.func import functional_call

from posteriors.gaussians.covariance import DenseCovariance, DiagonalCovariance, StructuredGaussian
from posteriors.networks.functional import flat_parameters, split
from posteriors.predictive import Draws, Linearised, MonteCarlo, OutputGaussian, PlugIn


@pytest.fixture
def network():
    with torch.random.fork_rng():
        torch.manual_seed(0)
        return nn.Sequential(nn.Linear(3, 5), nn.Dropout(0.5), nn.Tanh(), nn.Linear(5, 3)).double()


@pytest.fixture
def inputs():
    return torch.randn(6, 3, generator=torch.Generator().manual_seed(1), dtype=torch.float64)


def posterior_of(network, precision=400.0):
    mean = flat_parameters(network)
    return StructuredGaussian(mean, DiagonalCovariance(torch.full_like(mean, precision)))


def test_plug_in_is_the_softmax_in_eval_mode(network, inputs):
    predictive = PlugIn(network, flat_parameters(network))
    p = predictive.probabilities(inputs)
    assert network.training
    torch.testing.assert_close(p, network.eval()(inputs).softmax(1).detach())
    assert torch.equal(predictive.member_logits(inputs, 9, torch.Generator())[0].softmax(1), p)


def test_draws_average_given_members(network, inputs):
    draws = posterior_of(network, 2.0).sample(5, torch.Generator().manual_seed(0))
    network.eval()
    each = [functional_call(network, split(network, d), (inputs,)).softmax(1) for d in draws]
    predictive = Draws(network, draws)
    torch.testing.assert_close(predictive.probabilities(inputs), torch.stack(each).mean(0).detach())
    chosen = predictive.member_logits(inputs, 3, torch.Generator().manual_seed(1)).softmax(2)
    assert chosen.shape == (3, 6, 3)
    matches = [[torch.allclose(member, one) for one in each] for member in chosen]
    assert [sum(row) for row in matches] == [1, 1, 1]
    assert predictive.member_logits(inputs, 50, torch.Generator()).shape == (5, 6, 3)


def test_monte_carlo_repeats_and_tends_to_the_plug_in(network, inputs):
    sharp = MonteCarlo(network, posterior_of(network, 1e12), num_draws=3)
    plug_in = PlugIn(network, flat_parameters(network)).probabilities(inputs)
    torch.testing.assert_close(sharp.probabilities(inputs), plug_in, rtol=1e-4, atol=1e-5)
    wide = MonteCarlo(network, posterior_of(network, 1.0), num_draws=8, seed=3)
    assert torch.equal(wide.probabilities(inputs), wide.probabilities(inputs))
    assert not torch.allclose(wide.probabilities(inputs), plug_in, atol=1e-3)


def test_linear_model_agrees_with_monte_carlo_where_the_posterior_is_narrow(network, inputs):
    posterior = posterior_of(network, 400.0)
    outputs = Linearised(network, posterior).outputs(inputs)
    draws = posterior.sample(4000, torch.Generator().manual_seed(0))
    sampled = Draws(network, draws).outputs(inputs)
    torch.testing.assert_close(outputs.mean, sampled.mean(0), rtol=0, atol=0.02)
    centred = sampled - sampled.mean(0)
    covariance = torch.einsum("sni,snj->nij", centred, centred) / 4000
    torch.testing.assert_close(outputs.covariance, covariance, rtol=0.2, atol=0.003)


def test_a_linear_network_is_linearised_exactly(inputs):
    layer = nn.Linear(3, 2).double()
    posterior = posterior_of(layer, 3.0)
    outputs = Linearised(layer, posterior, chunk_bytes=1).outputs(inputs)
    variance = (inputs.square().sum(1) + 1) / 3
    expected = variance[:, None, None] * torch.eye(2).double()
    torch.testing.assert_close(outputs.covariance, expected)


def test_known_parameters_add_no_variance(network, inputs):
    indices = torch.arange(20, 38)
    precision = 5.0 * torch.eye(18, dtype=torch.float64)
    dense = DenseCovariance.from_precision(precision, indices)
    posterior = StructuredGaussian(flat_parameters(network), dense)
    outputs = Linearised(network, posterior).outputs(inputs)
    features = network.eval()[:3](inputs).detach()
    variance = (features.square().sum(1) + 1) / 5
    torch.testing.assert_close(outputs.covariance.diagonal(dim1=1, dim2=2)[:, 0], variance)


@pytest.mark.parametrize("link", ["probit", "bridge"])
def test_members_average_to_about_the_link(network, inputs, link):
    predictive = Linearised(network, posterior_of(network, 20.0), link)
    members = predictive.member_logits(inputs, 4000, torch.Generator().manual_seed(0)).softmax(2)
    assert members.shape == (4000, 6, 3)
    difference = members.mean(0) - predictive.probabilities(inputs)
    assert float(difference.abs().max()) < (0.03 if link == "probit" else 0.3)


def test_singular_output_covariances_can_be_sampled():
    one = torch.ones(1, 2, 2, dtype=torch.float64)
    draws = OutputGaussian(torch.zeros(1, 2).double(), one).sample(2000, torch.Generator())
    torch.testing.assert_close(draws[..., 0], draws[..., 1], rtol=0, atol=1e-7)
    assert float(draws[..., 0].std()) == pytest.approx(1.0, abs=0.06)


def test_float32_networks_predict_in_float64(network, inputs):
    single = network.float()
    posterior = posterior_of(single)
    for predictive in (PlugIn(single, posterior.mean), MonteCarlo(single, posterior),
                       Linearised(single, posterior)):  # fmt: skip
        assert predictive.probabilities(inputs.float()).dtype == torch.float64
