"""Every local posterior through the same laws."""

import random

import numpy as np
import pytest
import torch
from torch import nn

from posteriors.gaussians.fusion import fuse
from posteriors.gaussians.gaussian import DiagonalGaussian
from posteriors.local import (
    LOCAL_POSTERIORS,
    FullLaplace,
    KroneckerLaplace,
    LastLayerLaplace,
    NoUTurn,
    SubnetworkLaplace,
    UnsupportedFitError,
    Variational,
    local_posterior_fit,
)
from posteriors.networks.functional import flat_parameters, indices_of

QUICK = {
    "laplace-subnetwork": SubnetworkLaplace(5),
    "variational": Variational(steps=10, evidence_draws=20),
    "nuts": NoUTurn(draws=60, warmup=20, evidence_draws=20),
}
LAPLACE = [name for name in LOCAL_POSTERIORS if name.startswith("laplace")]


def method(name):
    return QUICK.get(name) or local_posterior_fit(name)


@pytest.fixture
def network():
    with torch.random.fork_rng():
        torch.manual_seed(0)
        return nn.Sequential(nn.Linear(3, 4), nn.Dropout(0.5), nn.Tanh(), nn.Linear(4, 2))


@pytest.fixture
def data():
    generator = torch.Generator().manual_seed(1)
    inputs = torch.randn(12, 3, generator=generator)
    return inputs, (inputs[:, 0] > 0).long()


def prior_of(network, precision=2.0):
    vector = flat_parameters(network)
    return DiagonalGaussian.isotropic(torch.full_like(vector, 0.1), precision)


@pytest.mark.parametrize("name", LOCAL_POSTERIORS)
def test_nothing_outside_the_fit_changes(network, data, name):
    import pyro

    pyro.get_param_store().clear()
    pyro.param("mine", torch.ones(2))
    network[0].eval()
    network[0].weight.grad = torch.ones(4, 3)
    before = {key: value.clone() for key, value in network.state_dict().items()}
    states = torch.random.get_rng_state(), np.random.get_state()[1].copy(), random.getstate()  # noqa: NPY002
    method(name).fit(network, *data, prior_of(network))
    assert all(torch.equal(value, before[key]) for key, value in network.state_dict().items())
    assert [layer.training for layer in network] == [False, True, True, True]
    assert bool((network[0].weight.grad == 1).all())
    assert network[3].weight.grad is None
    assert not network[0]._forward_hooks
    assert torch.equal(states[0], torch.random.get_rng_state())
    assert (states[1] == np.random.get_state()[1]).all()  # noqa: NPY002
    assert states[2] == random.getstate()
    assert list(pyro.get_param_store().keys()) == ["mine"]
    pyro.get_param_store().clear()


@pytest.mark.parametrize("name", LOCAL_POSTERIORS)
def test_a_fit_can_be_fused_predicts_and_repeats(network, data, name):
    prior = prior_of(network)
    fits = [method(name).fit(network, *data, prior, seed=5) for _ in range(2)]
    assert torch.equal(fits[0].mean, fits[1].mean)
    assert torch.equal(fits[0].curvature, fits[1].curvature)
    assert fits[0].log_evidence == fits[1].log_evidence
    fit = fits[0]
    assert fit.method == name
    assert fit.mean.shape == fit.curvature.shape == prior.mean.shape
    assert fit.mean.dtype == fit.curvature.dtype == torch.float32
    assert bool((fit.curvature >= 0).all())
    fused = fuse("exact", prior, [fit.local_posterior(12)]).posterior
    torch.testing.assert_close(fused.mean, fit.mean, rtol=1e-4, atol=1e-5)
    probabilities = fit.predictive.probabilities(data[0].to(fit_dtype(fit)))
    assert probabilities.shape == (12, 2)
    assert probabilities.dtype == torch.float64
    torch.testing.assert_close(probabilities.sum(1), torch.ones(12).double())
    members = fit.predictive.member_logits(data[0].to(fit_dtype(fit)), 7, torch.Generator())
    assert members.shape == (7, 12, 2)


def fit_dtype(fit):
    return next(fit.predictive.module.parameters()).dtype


@pytest.mark.parametrize("name", LOCAL_POSTERIORS)
def test_later_training_does_not_change_a_fit(network, data, name):
    fit = method(name).fit(network, *data, prior_of(network))
    inputs = data[0].to(fit_dtype(fit))
    before = fit.predictive.probabilities(inputs)
    with torch.no_grad():
        for value in network.parameters():
            value.add_(1.0)
    assert torch.equal(fit.predictive.probabilities(inputs), before)


@pytest.mark.parametrize("name", LOCAL_POSTERIORS)
def test_priors_of_another_shape_or_flat_are_refused(network, data, name):
    with pytest.raises(ValueError, match=r"prior must have the shape \(26,\)"):
        method(name).fit(network, *data, DiagonalGaussian.isotropic(torch.zeros(5), 1.0))
    with pytest.raises(ValueError, match="precision is zero for 26 parameters"):
        method(name).fit(network, *data, prior_of(network, 0.0))


@pytest.mark.parametrize("name", LOCAL_POSTERIORS)
def test_a_server_posterior_as_prior(network, data, name):
    vector = flat_parameters(network)
    prior = DiagonalGaussian(vector + 0.1, torch.linspace(0.5, 3.0, len(vector)))
    if name == "laplace-kron":
        with pytest.raises(UnsupportedFitError, match="laplace-kron needs one prior precision per"):
            method(name).fit(network, *data, prior)
        return
    fit = method(name).fit(network, *data, prior)
    other = method(name).fit(network, *data, DiagonalGaussian(vector - 2.0, prior.precision))
    assert fit.log_evidence != other.log_evidence


def test_kron_takes_a_precision_per_tensor(network, data):
    sizes = [value.numel() for value in network.parameters()]
    precision = torch.cat([torch.full((n,), 1.0 + i) for i, n in enumerate(sizes)])
    vector = flat_parameters(network)
    fit = KroneckerLaplace().fit(network, *data, DiagonalGaussian(vector * 0, precision))
    alone = KroneckerLaplace().fit(network, *data, prior_of(network, 1.0))
    torch.testing.assert_close(fit.curvature, alone.curvature)
    assert fit.log_evidence != alone.log_evidence


@pytest.mark.parametrize("name", LOCAL_POSTERIORS)
def test_frozen_parameters_are_known_or_refused(network, data, name):
    network[0].requires_grad_(False)
    if name in ("laplace-kron", "variational", "nuts"):
        with pytest.raises(UnsupportedFitError, match=f"{name} needs all parameters"):
            method(name).fit(network, *data, prior_of(network))
        return
    fit = method(name).fit(network, *data, prior_of(network))
    assert float(fit.curvature[:16].abs().max()) == 0
    draws = fit.predictive.posterior.sample(3, torch.Generator())
    torch.testing.assert_close(draws[:, :16].float(), fit.mean[:16].expand(3, -1))
    assert bool((draws[0] != draws[1]).any())


@pytest.mark.parametrize("name", LAPLACE)
@pytest.mark.parametrize("layer", [nn.BatchNorm1d(4), nn.GroupNorm(2, 4), nn.LayerNorm(4)])
def test_normalisation_layers(data, name, layer):
    network = nn.Sequential(nn.Linear(3, 4), layer, nn.ReLU(inplace=True), nn.Linear(4, 2))
    if name == "laplace-kron":
        with pytest.raises(UnsupportedFitError, match=r"no rule for layer '1' \(.*Norm"):
            method(name).fit(network, *data, prior_of(network))
        return
    fit = method(name).fit(network, *data, prior_of(network))
    assert torch.isfinite(fit.predictive.probabilities(data[0].to(fit_dtype(fit)))).all()


def test_sizes_above_the_stated_ones_are_refused(network, data):
    prior = prior_of(network)
    with pytest.raises(UnsupportedFitError, match="nuts samples at most max_parameters=25"):
        NoUTurn(max_parameters=25).fit(network, *data, prior)
    with pytest.raises(UnsupportedFitError, match="nuts needs more draws than the 26 parameters"):
        NoUTurn(draws=26).fit(network, *data, prior)
    with pytest.raises(UnsupportedFitError, match="laplace-full fits at most max_parameters=25"):
        FullLaplace(max_parameters=25).fit(network, *data, prior)
    with pytest.raises(UnsupportedFitError, match="laplace-last-layer fits at most max_param"):
        LastLayerLaplace(max_parameters=9).fit(network, *data, prior)


def test_last_layer_is_found_where_it_is_called(data):
    class Named(nn.Module):
        def __init__(self):
            super().__init__()
            self.head = nn.Linear(4, 2)
            self.body = nn.Linear(3, 4)

        def forward(self, x):
            return self.head(self.body(x).tanh())

    network = Named()
    fit = LastLayerLaplace().fit(network, *data, prior_of(network))
    assert bool((fit.curvature[:10] > 0).all())
    assert fit.curvature[10:].tolist() == [0.0] * 16


def test_last_layer_must_be_linear(data):
    network = nn.Sequential(nn.Linear(3, 2), nn.LayerNorm(2))
    with pytest.raises(UnsupportedFitError, match=r"needs a Linear layer .*, found LayerNorm"):
        LastLayerLaplace().fit(network, *data, prior_of(network))


class Rooted(nn.Module):
    """Parameters of the network itself, before or after its last layer."""

    def __init__(self, after):
        super().__init__()
        self.after = after
        self.shift = nn.Parameter(torch.full((3,), 0.5))
        self.scale = nn.Parameter(torch.ones(2), requires_grad=after != "frozen")
        self.body, self.head = nn.Linear(3, 4), nn.Linear(4, 2)

    def forward(self, x):
        outputs = self.head(self.body(x + self.shift).tanh())
        return outputs * self.scale if self.after else outputs


@pytest.mark.parametrize("after", ["", "frozen", "used"])
def test_parameters_of_the_network_itself_may_stand_before_the_last_layer(after, data):
    network = Rooted(after)
    fits = LastLayerLaplace()
    if after == "used":
        message = r"the network itself \(Rooted\) uses its 'scale' after or beside it"
        with pytest.raises(UnsupportedFitError, match=message):
            fits.check(network, data[0], prior_of(network))
    else:
        fits.check(network, data[0], prior_of(network))
        places = indices_of(network, {"head.weight", "head.bias"})
        curvature = fits.fit(network, *data, prior_of(network)).curvature
        assert places.tolist() == curvature.nonzero()[:, 0].tolist()


def test_changing_the_prior_precision_afterwards(network, data):
    fit = method("laplace-diag").fit(network, *data, prior_of(network, 2.0))
    same = fit.under_prior_precision(2.0).probabilities(data[0])
    torch.testing.assert_close(same, fit.predictive.probabilities(data[0]))
    sharp = fit.under_prior_precision(1e9).probabilities(data[0])
    plug_in = network.eval()(data[0]).double().softmax(1)
    torch.testing.assert_close(sharp, plug_in, rtol=1e-4, atol=1e-5)
    with pytest.raises(ValueError, match=r"precision must be positive, got 0"):
        fit.under_prior_precision(0.0)
    with pytest.raises(UnsupportedFitError, match="nuts can't change its prior precision"):
        method("nuts").fit(network, *data, prior_of(network)).under_prior_precision(1.0)


def test_unknown_names_are_named():
    with pytest.raises(ValueError, match="name must be one of laplace-diag, laplace-last-layer"):
        local_posterior_fit("laplace")
    with pytest.raises(ValueError, match="size must be at least 1, got 0"):
        SubnetworkLaplace(0)
