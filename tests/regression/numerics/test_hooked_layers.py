"""A layer with a hook, or with a forward of its own, is the same network everywhere."""

import pytest
import torch
from torch import nn

from bcfl import Federation, Model
from posteriors import UnsupportedLayerError, diagonal_curvature, gauss_newton_matrix


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


NETWORKS = {
    "hook": with_hook,
    "forward of the network": with_own_forward,
    "forward of a layer": with_forward_of_a_layer,
}


@pytest.mark.parametrize("name", list(NETWORKS))
def test_executors_train_the_same_network(make_clients, build_method, name):
    model = Model(name="hooked", build=NETWORKS[name], input_shape=(6,), num_outputs=3)
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


@pytest.mark.parametrize(
    "name",
    [
        "forward of the network",
        "hook",
        "forward of a layer",
    ],
)
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
