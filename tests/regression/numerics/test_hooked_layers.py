"""A layer with a hook, or with a forward of its own, is the same network everywhere."""

import pytest
import torch
from torch import nn

from bcfl import Federation, Model
from posteriors import (
    DiagonalGaussian,
    UnsupportedFitError,
    UnsupportedLayerError,
    diagonal_curvature,
    gauss_newton_matrix,
    local_posterior_fit,
)


def with_hook():
    network = nn.Sequential(nn.Linear(6, 8), nn.ReLU(), nn.Linear(8, 3))
    network[0].register_forward_hook(lambda layer, inputs, output: 2 * output)
    return network


def with_own_forward():
    network = nn.Sequential(nn.Linear(6, 8), nn.ReLU(), nn.Linear(8, 3))
    network.forward = lambda x: network[2](network[1](network[0](x))) * 2
    return network


def with_forward_of_a_layer():
    network = nn.Sequential(nn.Linear(6, 8), nn.ReLU(), nn.Linear(8, 3))
    plain = network[0].forward
    network[0].forward = lambda x: 2 * plain(x)
    return network


def with_pre_hook():
    network = nn.Sequential(nn.Linear(6, 8), nn.ReLU(), nn.Linear(8, 3))
    network[2].register_forward_pre_hook(lambda layer, inputs: (inputs[0] + 1,))
    return network


def with_hook_on_an_activation():
    network = nn.Sequential(nn.Linear(6, 8), nn.ReLU(), nn.Linear(8, 3))
    network[1].register_forward_hook(lambda layer, inputs, output: output.square())
    return network


class Reversed(nn.Flatten):
    def forward(self, x):
        return x.flatten(1).flip(1)


class Halved(nn.Linear):
    def forward(self, x):
        return super().forward(x) / 2


def with_classes_of_its_own():
    return nn.Sequential(Reversed(), nn.Linear(6, 8), nn.ReLU(), Halved(8, 3))


NETWORKS = {
    "hook": with_hook,
    "pre-hook": with_pre_hook,
    "hook on an activation": with_hook_on_an_activation,
    "forward of the network": with_own_forward,
    "forward of a layer": with_forward_of_a_layer,
    "subclasses": with_classes_of_its_own,
}


def with_gradient_hook():
    network = nn.Sequential(nn.Linear(6, 8), nn.ReLU(), nn.Linear(8, 3))
    network[0].weight.register_hook(lambda gradient: gradient / 2)
    return network


def with_backward_hook():
    network = nn.Sequential(nn.Linear(6, 8), nn.ReLU(), nn.Linear(8, 3))
    network[1].register_full_backward_hook(lambda layer, into, out: (into[0] / 2,))
    return network


def with_statistics_kept():
    network = nn.Sequential(nn.Linear(6, 8), nn.BatchNorm1d(8), nn.ReLU(), nn.Linear(8, 3))
    network[1].eval()
    network[1].train = lambda mode=True: network[1]
    return network


IN_TRAINING = {
    "gradient hook": with_gradient_hook,
    "backward hook": with_backward_hook,
    "train of a layer": with_statistics_kept,
}


@pytest.mark.parametrize("name", [*NETWORKS, *IN_TRAINING])
def test_executors_train_the_same_network(make_clients, build_method, name):
    build = (NETWORKS | IN_TRAINING)[name]
    model = Model(name="hooked", build=build, input_shape=(6,), num_outputs=3)
    means = {}
    for executor in ("loop", "batched"):
        federation = Federation(
            make_clients(4),
            model,
            build_method("fedavg"),
            seed=0,
            executor=executor,
            dtype=torch.float64,
        )
        means[executor] = federation.run(2).hypotheses.best.clusters[0].mean(model)
    torch.testing.assert_close(means["batched"], means["loop"], rtol=1e-9, atol=1e-12)


@pytest.mark.parametrize("name", list(NETWORKS))
def test_curvature_is_of_the_network_that_runs(name):
    with torch.random.fork_rng():
        torch.manual_seed(0)
        network = NETWORKS[name]().double()
        inputs = torch.randn(5, 6, dtype=torch.float64)
    targets = torch.arange(5) % 3
    right = gauss_newton_matrix(network, inputs, targets).diagonal()
    try:
        measured = diagonal_curvature(network, inputs, targets)
    except UnsupportedLayerError:
        return
    torch.testing.assert_close(measured, right, rtol=1e-9, atol=1e-12)


@pytest.mark.parametrize("name", list(NETWORKS))
@pytest.mark.parametrize(
    "posterior", ["laplace-full", "laplace-last-layer", "laplace-subnetwork", "laplace-kron"]
)
def test_posteriors_are_of_the_network_that_runs(name, posterior):
    """Fits work on a copy, whose hooks and functions may still compute with the original."""
    with torch.random.fork_rng():
        torch.manual_seed(0)
        network = NETWORKS[name]().double()
        inputs = torch.randn(1, 6, dtype=torch.float64)
    targets = torch.tensor([1])
    size = sum(parameter.numel() for parameter in network.parameters())
    prior = DiagonalGaussian.isotropic(torch.zeros(size, dtype=torch.float64), 1.0)
    try:
        fit = local_posterior_fit(posterior).fit(network, inputs, targets, prior)
    except (UnsupportedLayerError, UnsupportedFitError):
        return
    right = gauss_newton_matrix(network, inputs, targets).diagonal()
    known = fit.curvature == 0
    torch.testing.assert_close(fit.curvature[~known], right[~known], rtol=1e-6, atol=1e-9)
    torch.testing.assert_close(
        fit.predictive.outputs(inputs).mean, network(inputs).detach(), rtol=1e-9, atol=1e-12
    )


@pytest.mark.parametrize("dtype", [torch.float32, torch.float64])
def test_copies_that_compute_with_the_original_are_refused(dtype):
    network = with_own_forward().to(dtype)
    size = sum(parameter.numel() for parameter in network.parameters())
    prior = DiagonalGaussian.isotropic(torch.zeros(size, dtype=dtype), 1.0)
    for name in ("laplace-diag", "laplace-full", "variational", "nuts"):
        with pytest.raises(UnsupportedFitError, match="copy"):
            local_posterior_fit(name).fit(
                network, torch.ones(2, 6, dtype=dtype), torch.tensor([0, 1]), prior
            )
