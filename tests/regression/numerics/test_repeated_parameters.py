"""A curvature is right, or refused: also where a parameter is used twice, or samples mix."""

import pytest
import torch
from torch import nn
from torch.nn.functional import batch_norm, linear

from posteriors import UnsupportedLayerError, diagonal_curvature, gauss_newton_matrix


class Composed(nn.Module):
    """Named layers, and a function that composes them."""

    def __init__(self, compose, **layers):
        super().__init__()
        self.compose = compose
        for name, layer in layers.items():
            setattr(self, name, layer)

    def forward(self, x):
        return self.compose(self, x)


def one_after_another(module, inputs):
    """Diagonal of sum_n J_n^T (diag p_n - p_n p_n^T) J_n, each sample in a batch of its own."""
    parameters = tuple(module.parameters())
    diagonal = torch.zeros(sum(p.numel() for p in parameters), dtype=inputs.dtype)
    for sample in inputs:
        logits = module(sample[None])[0]
        rows = [
            torch.cat([g.flatten() for g in torch.autograd.grad(z, parameters, retain_graph=True)])
            for z in logits
        ]
        jacobian, p = torch.stack(rows), logits.detach().softmax(0)
        diagonal += ((torch.diag(p) - torch.outer(p, p)) @ jacobian * jacobian).sum(0)
    return diagonal


def right_or_refused(module, referee):
    """Compare with a referee unless the curvature is refused."""
    torch.manual_seed(3)
    inputs = torch.randn(7, 5, dtype=torch.float64)
    try:
        measured = diagonal_curvature(module, inputs, torch.arange(7) % 3)
    except UnsupportedLayerError:
        return
    torch.testing.assert_close(measured, referee(module, inputs), rtol=1e-8, atol=1e-10)


@pytest.fixture(autouse=True)
def _restored_generator():
    with torch.random.fork_rng():
        torch.manual_seed(0)
        yield


REPEATED = {
    "layer called twice": lambda: Composed(
        lambda m, x: m.b(torch.tanh(m.a(torch.tanh(m.a(x))))), a=nn.Linear(5, 5), b=nn.Linear(5, 3)
    ),
    "weight also read by a function": lambda: Composed(
        lambda m, x: linear(torch.tanh(m.a(x)), m.a.weight.t()), a=nn.Linear(5, 4)
    ),
    "bias also read as a factor": lambda: Composed(
        lambda m, x: m.a(x) * m.a.bias.sum(), a=nn.Linear(5, 3)
    ),
}


@pytest.mark.parametrize(
    "name",
    [
        "layer called twice",
        "weight also read by a function",
        "bias also read as a factor",
    ],
)
def test_parameter_used_twice(name):
    right_or_refused(REPEATED[name]().double(), one_after_another)


@pytest.mark.parametrize("name", list(REPEATED))
def test_matrix_of_a_parameter_used_twice(name):
    module = REPEATED[name]().double()
    inputs = torch.randn(7, 5, dtype=torch.float64)
    matrix = gauss_newton_matrix(module, inputs, torch.arange(7) % 3)
    torch.testing.assert_close(matrix.diagonal(), one_after_another(module, inputs))


def centred(x):
    return x - x.mean(0)


def normalised(x):
    return batch_norm(x, None, None, training=True) if len(x) > 1 else 0 * x


MIXING = {
    "centred over the batch": lambda m, x: m.b(torch.tanh(centred(m.a(x)))),
    "normalised over the batch": lambda m, x: m.b(normalised(m.a(x))),
    "gated by the batch": lambda m, x: m.b(torch.tanh(m.a(x)) * x.mean()),
}


@pytest.mark.parametrize("name", list(MIXING))
def test_samples_that_mix_are_refused(name):
    module = Composed(MIXING[name], a=nn.Linear(5, 4), b=nn.Linear(4, 3)).double()
    inputs = torch.randn(7, 5, dtype=torch.float64)
    with pytest.raises(UnsupportedLayerError):
        diagonal_curvature(module, inputs, torch.arange(7) % 3)
