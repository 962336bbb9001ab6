import pytest
import torch
from torch import nn
from torch.nn.utils import parameters_to_vector

from posteriors.networks.functional import (
    eval_mode,
    flat_parameters,
    free_indices,
    indices_of,
    jacobians,
    outputs_at,
    split,
)


@pytest.fixture
def network():
    with torch.random.fork_rng():
        torch.manual_seed(0)
        return nn.Sequential(
            nn.Conv2d(1, 2, 2), nn.GroupNorm(1, 2), nn.ReLU(inplace=True), nn.Dropout(0.5),
            nn.Flatten(), nn.Linear(8, 3),
        ).double()  # fmt: skip


@pytest.fixture
def inputs():
    generator = torch.Generator().manual_seed(1)
    return torch.randn(5, 1, 3, 3, generator=generator, dtype=torch.float64)


def test_flat_vector_has_the_order_of_the_parameters(network):
    vector = flat_parameters(network)
    assert torch.equal(vector, parameters_to_vector(network.parameters()))
    assert not vector.requires_grad
    parts = split(network, vector)
    assert all(torch.equal(parts[name], value) for name, value in network.named_parameters())


def test_outputs_at_the_own_parameters_are_the_networks_in_eval_mode(network, inputs):
    network.train()
    outputs = outputs_at(network, flat_parameters(network), inputs)
    assert network.training
    assert network[3].training
    torch.testing.assert_close(outputs, network.eval()(inputs))


def test_outputs_are_differentiable_in_the_vector(network, inputs):
    vector = flat_parameters(network).requires_grad_(True)
    (gradient,) = torch.autograd.grad(outputs_at(network, vector, inputs).sum(), vector)
    network.eval()(inputs).sum().backward()
    torch.testing.assert_close(
        gradient, torch.cat([p.grad.flatten() for p in network.parameters()])
    )


@pytest.mark.parametrize("chunk_bytes", [1, 2**20])
@pytest.mark.parametrize("indices", [None, torch.tensor([40, 2, 11, 38])])
def test_jacobians_equal_autograd_one_output_at_a_time(network, inputs, chunk_bytes, indices):
    vector = flat_parameters(network)
    chunks = list(jacobians(network, vector, inputs, indices, chunk_bytes))
    assert len(chunks) == (5 if chunk_bytes == 1 else 1)
    outputs, jacobian = (torch.cat(parts) for parts in zip(*chunks, strict=True))
    torch.testing.assert_close(outputs, outputs_at(network, vector, inputs))
    whole = torch.autograd.functional.jacobian(lambda v: outputs_at(network, v, inputs), vector)
    expected = whole if indices is None else whole[:, :, indices]
    torch.testing.assert_close(jacobian, expected)


def test_places_of_free_and_named_parameters(network):
    network[0].requires_grad_(False)
    assert free_indices(network).tolist() == list(range(10, 41))
    assert indices_of(network, {"0.bias", "5.bias"}).tolist() == [8, 9, 38, 39, 40]


def test_modes_are_restored_after_an_error(network):
    network.train()
    network[3].eval()
    with pytest.raises(RuntimeError), eval_mode(network):
        network(torch.zeros(1, 7, 3, 3).double())
    with eval_mode(network):
        assert not any(layer.training for layer in network.modules())
    assert [layer.training for layer in network] == [True, True, True, False, True, True]


def test_a_vector_of_another_length_is_named(network, inputs):
    with pytest.raises(ValueError, match=r"shape \(41,\) of the module's parameters, got \(3,\)"):
        outputs_at(network, torch.zeros(3), inputs)
