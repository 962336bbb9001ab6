"""Diagonal curvature against laplace-torch, on its BackPACK and curvlinops backends."""

import copy

import pytest
import torch
from torch import nn
from torch.utils.data import DataLoader, TensorDataset

from posteriors.curvature.diagonal import diagonal_curvature

pytestmark = pytest.mark.filterwarnings("ignore")


def mlp():
    return nn.Sequential(nn.Linear(64, 32), nn.ReLU(), nn.Linear(32, 10)), (64,)


def cnn():
    return nn.Sequential(
        nn.Conv2d(1, 4, 5, padding=2), nn.ReLU(), nn.MaxPool2d(2), nn.Conv2d(4, 6, 3, stride=2),
        nn.ReLU(), nn.Flatten(), nn.Linear(54, 10),
    ), (1, 14, 14)  # fmt: skip


def cnn_with_batch_norm():
    return nn.Sequential(
        nn.Conv2d(1, 4, 5, padding=2), nn.BatchNorm2d(4), nn.ReLU(), nn.MaxPool2d(2),
        nn.Conv2d(4, 6, 3, stride=2), nn.BatchNorm2d(6), nn.ReLU(), nn.Flatten(),
        nn.Linear(54, 10),
    ), (1, 14, 14)  # fmt: skip


def build(make):
    with torch.random.fork_rng():
        torch.manual_seed(3)
        module, shape = make()
        for layer in module.modules():
            if isinstance(layer, nn.BatchNorm2d):
                layer.running_mean.normal_()
                layer.running_var.uniform_(0.5, 2.0)
                nn.init.normal_(layer.weight)
        inputs = torch.randn(40, *shape)
        classes = torch.randint(0, 10, (40,))
        values = torch.randn(40, 10)
    return module, inputs, classes, values


def diagonal_by_laplace(module, inputs, targets, likelihood, backend):
    import laplace
    import laplace.curvature

    fitted = laplace.Laplace(
        copy.deepcopy(module),
        likelihood,
        subset_of_weights="all",
        hessian_structure="diag",
        backend=getattr(laplace.curvature, backend),
    )
    fitted.fit(DataLoader(TensorDataset(inputs, targets), batch_size=16))
    return fitted.H


@pytest.mark.parametrize("make", [mlp, cnn, cnn_with_batch_norm])
@pytest.mark.parametrize(
    ("backend", "kind"),
    [
        ("BackPackGGN", "ggn"),
        ("CurvlinopsGGN", "ggn"),
        ("BackPackEF", "empirical_fisher"),
        ("CurvlinopsEF", "empirical_fisher"),
    ],
)
def test_classification(make, backend, kind):
    module, inputs, classes, _ = build(make)
    expected = diagonal_by_laplace(module, inputs, classes, "classification", backend)
    actual = diagonal_curvature(module, inputs, classes, kind=kind)
    torch.testing.assert_close(actual, expected, rtol=1e-5, atol=1e-7)
    assert float(expected.max()) > 0.1


@pytest.mark.parametrize("make", [mlp, cnn, cnn_with_batch_norm])
@pytest.mark.parametrize("backend", ["BackPackGGN", "CurvlinopsGGN"])
def test_regression(make, backend):
    """Laplace's empirical Fisher for regression halves the loss after squaring; not compared."""
    module, inputs, _, values = build(make)
    expected = diagonal_by_laplace(module, inputs, values, "regression", backend)
    actual = diagonal_curvature(module, inputs, values, likelihood="gaussian")
    torch.testing.assert_close(actual, expected, rtol=1e-5, atol=1e-7)
