"""Which networks have a last layer in which their outputs are linear, with all else known."""

import pytest
import torch
from torch import nn

from posteriors import DiagonalGaussian, UnsupportedLayerError, local_posterior_fit
from posteriors.local import LastLayerLaplace, UnsupportedFitError
from posteriors.networks.functional import flat_parameters

ROWS = torch.arange(12.0).view(4, 3)


def prior_of(network):
    return DiagonalGaussian.isotropic(torch.zeros_like(flat_parameters(network)), 2.0)


class Words(nn.Module):
    """A mean embedding and a Linear layer that has the weight of the embedding."""

    def __init__(self, bias=False, used=True):
        super().__init__()
        self.e, self.h = nn.Embedding(5, 4), nn.Linear(4, 5, bias=bias)
        self.h.weight, self.used = self.e.weight, used

    def forward(self, x):
        rows = x.long().remainder(5)
        fixed = rows.unsqueeze(2).expand(-1, -1, 4).to(self.h.weight.dtype) + 0.5
        features = self.e(rows) if self.used else fixed
        return self.h(features.mean(1).tanh())


@pytest.mark.parametrize("bias", [False, True])
@pytest.mark.parametrize(
    ("name", "message"),
    [
        ("last-layer", r"not depend on layer 'h' \(Linear\), which shares 'e\.weight' with what"),
        ("diag", "layers 'e' and 'h' share a parameter"),
        ("subnetwork", "layers 'e' and 'h' share a parameter"),
        ("kron", r"no rule for layer 'e' \(Embedding\)"),
    ],
)
def test_tied_embeddings_are_refused_by_name(name, message, bias):
    network, fits = Words(bias), local_posterior_fit(f"laplace-{name}")
    with pytest.raises((UnsupportedFitError, UnsupportedLayerError), match=message):
        fits.check(network, ROWS, prior_of(network))
    with pytest.raises((UnsupportedFitError, UnsupportedLayerError), match=message):
        fits.fit(network, ROWS, torch.arange(4), prior_of(network))


@pytest.mark.parametrize(
    ("name", "message"),
    [
        ("last-layer", r"layer '2' \(Linear\), which shares '0\.weight' with what comes before it"),
        ("diag", "layers '0' and '2' share a parameter"),
        ("subnetwork", "layers '0' and '2' share a parameter"),
        ("kron", "layers '0' and '2' share a parameter"),
    ],
)
def test_tied_linear_layers_are_refused_by_name(name, message):
    network = nn.Sequential(nn.Linear(3, 3), nn.Tanh(), nn.Linear(3, 3))
    network[2].weight = network[0].weight
    with pytest.raises((UnsupportedFitError, UnsupportedLayerError), match=message):
        local_posterior_fit(f"laplace-{name}").check(network, ROWS, prior_of(network))


def test_a_weight_that_no_other_layer_uses_is_that_of_the_last_layer():
    network, fits = Words(used=False), LastLayerLaplace()
    fits.check(network, ROWS, prior_of(network))
    fit = fits.fit(network, ROWS, torch.arange(4), prior_of(network))
    assert bool((fit.curvature > 0).all())


class Ways(nn.Module):
    """A network whose outputs may depend on parameters in several ways."""

    def __init__(self, way):
        super().__init__()
        self.body, self.head, self.skip = nn.Linear(3, 4), nn.Linear(4, 2), nn.Linear(3, 2)
        self.t, self.way = nn.Parameter(torch.ones(1)), way

    def forward(self, x):
        return self.way(self, self.body(x).tanh(), x)


@pytest.mark.parametrize(
    "way",
    [
        lambda net, h, x: net.head(h),
        lambda net, h, x: net.head(input=h * net.t),
        lambda net, h, x: net.head(h) + net.head(2 * h),
        lambda net, h, x: net.head(h) + x[:, :2],
        lambda net, h, x: net.head(h).log_softmax(1),
    ],
)
def test_features_may_reach_the_last_layer_in_any_way(way):
    network = Ways(way)
    LastLayerLaplace().check(network, ROWS, prior_of(network))


@pytest.mark.parametrize(
    ("way", "message"),
    [
        (
            lambda net, h, x: net.skip(x) + net.head(h),
            r"'skip' \(Linear\) uses its '(weight|bias)'",
        ),
        (lambda net, h, x: net.head(h) * net.t, r"itself \(Ways\) uses its 't' after or beside it"),
        (lambda net, h, x: net.head(h) + h[:, :2] * net.t, r"itself \(Ways\) uses its 't'"),
        (lambda net, h, x: net.head(h) + h[:, :2], r"'body' \(Linear\) uses its '(weight|bias)'"),
        (lambda net, h, x: net.head(h) + net.head.bias, r"'head' \(Linear\) uses its 'bias' after"),
        (lambda net, h, x: net.head(net.head(h).repeat(1, 2)), r"'head' .*, which shares 'head\."),
        (lambda net, h, x: net.head(h * net.head.weight[0]), "which shares 'head.weight' with"),
    ],
)
def test_other_ways_are_refused_by_the_nearest_parameter(way, message):
    network = Ways(way)
    with pytest.raises(UnsupportedFitError, match=message):
        LastLayerLaplace().check(network, ROWS, prior_of(network))


def test_a_reparameterised_last_layer_is_refused():
    network = nn.Sequential(nn.Linear(3, 2))
    network[0].scale = nn.Parameter(torch.ones(2))
    with pytest.raises(UnsupportedFitError, match=r"'0' \(Linear\) has weight, bias, scale"):
        LastLayerLaplace().check(network, ROWS, prior_of(network))
