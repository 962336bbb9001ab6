"""What the check of layer rules refuses, and that it refuses nothing that is exact."""

import pytest
import torch
from torch import nn
from torch.nn import functional as F

from posteriors import UnsupportedLayerError, diagonal_curvature, gauss_newton_matrix
from posteriors.curvature.layers.rules import layers_with_parameters
from posteriors.curvature.recording import (
    recorded,
    require_exact_rules,
    require_separate_samples,
)


class Composed(nn.Module):
    """Two layers and a function that composes them."""

    def __init__(self, compose):
        super().__init__()
        self.compose = compose
        self.first, self.last = nn.Linear(4, 4), nn.Linear(4, 3)

    def forward(self, x):
        return self.compose(self, x)


@pytest.fixture(autouse=True)
def _restored_generator():
    with torch.random.fork_rng(devices=[]):
        torch.manual_seed(0)
        yield


def checked(module, inputs):
    require_exact_rules(module.eval(), layers_with_parameters(module), inputs)


ODD = {
    "weight in a penalty of outputs": lambda m, x: m.last(m.first(x)) * m.first.weight.sum(),
    "bias alone": lambda m, x: m.last(torch.tanh(m.first(x))) + m.first.bias.mean(),
    "result dropped": lambda m, x: (m.first(x), m.last(F.linear(x, m.first.weight)))[1],
    "weight of the other": lambda m, x: m.last(m.first(x) @ m.last.weight.t() @ m.last.weight),
    "ranks in the batch": lambda m, x: m.last(m.first(x)) + x[:, :1].argsort(0).float(),
    "first of the batch": lambda m, x: m.last(m.first(x) - x[:1]),
    "last of the batch": lambda m, x: m.last(m.first(x) - x[-1:].detach().mean()),
    "largest of the batch": lambda m, x: m.last(m.first(x) / x.detach().abs().max()),
    "draws": lambda m, x: m.last(F.dropout(m.first(x), 0.5, training=True)),
}  # fmt: skip


@pytest.mark.parametrize("dtype", [torch.float32, torch.float64])
@pytest.mark.parametrize("kind", ["ggn", "empirical_fisher", "mc_ggn"])
@pytest.mark.parametrize("name", ODD)
def test_what_the_rules_do_not_cover_is_refused(name, kind, dtype):
    module, inputs = Composed(ODD[name]).to(dtype), torch.randn(9, 4, dtype=dtype)
    draw = torch.Generator().manual_seed(0)
    with pytest.raises(UnsupportedLayerError):
        diagonal_curvature(module, inputs, torch.arange(9) % 3, kind=kind, generator=draw)


@pytest.mark.parametrize("name", ["ranks in the batch", "largest of the batch", "draws"])
def test_the_matrix_needs_separate_samples_too(name):
    module, inputs = Composed(ODD[name]), torch.randn(9, 4)
    with pytest.raises(UnsupportedLayerError):
        gauss_newton_matrix(module, inputs, torch.arange(9) % 3)


def cancelling():
    """The bias before group normalisation has no gradient but rounding errors."""
    norm = nn.GroupNorm(2, 4)
    return nn.Sequential(nn.Conv2d(1, 4, 3), norm, nn.Flatten(), nn.Linear(100, 3))


@pytest.mark.parametrize("scale", [1e-12, 1.0, 1e12])
def test_rounding_errors_are_not_refused(scale):
    checked(cancelling(), torch.randn(5, 1, 7, 7) * scale)


@pytest.mark.parametrize("value", [float("nan"), float("inf"), 1e30, 0.0])
def test_numbers_that_tell_nothing_are_not_refused(value):
    module = nn.Sequential(nn.Linear(4, 3), nn.ReLU(), nn.Linear(3, 2))
    checked(module, torch.full((3, 4), value))
    require_separate_samples(module, torch.full((3, 4), value))


@pytest.mark.parametrize("count", [1, 2, 3, 4, 50])
def test_any_number_of_samples_is_checked(count):
    module = nn.Sequential(nn.Linear(4, 3), nn.Tanh(), nn.Linear(3, 2))
    checked(module, torch.randn(count, 4))


def test_the_check_changes_nothing():
    module, inputs = cancelling(), torch.randn(5, 1, 7, 7)
    before, classes = inputs.clone(), torch.arange(5) % 3
    checked_first = diagonal_curvature(module, inputs, classes)
    assert torch.equal(checked_first, diagonal_curvature(module, inputs, classes, check=False))
    assert torch.equal(inputs, before)
    assert all(parameter.grad is None for parameter in module.parameters())
    assert not any(layer._forward_hooks for layer in module.modules())


def test_whole_numbers_are_taken():
    module = nn.Sequential(nn.Flatten(), nn.Linear(4, 3))
    module[0].forward = lambda x: x.float()
    checked(module, torch.randint(0, 9, (5, 4)))


def test_calls_are_noted_before_hooks_change_the_output():
    module = nn.Sequential(nn.Linear(4, 3))
    module[0].register_forward_hook(lambda layer, inputs, output: torch.cat([output, output]))
    outputs, calls = recorded(module, {module[0]: "0"}, torch.randn(5, 4))
    assert len(outputs) == 10
    assert [call.output_bytes for call in calls] == [5 * 3 * 4]
