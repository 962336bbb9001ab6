import pytest
import torch
from scipy.stats import norm
from torch import nn

from posteriors.curvature.likelihood import log_likelihood, network_log_likelihood
from posteriors.networks.functional import flat_parameters


def test_categorical_by_hand():
    outputs = torch.tensor([[0.0, 0.0], [0.0, 1000.0]])
    value = log_likelihood(outputs, torch.tensor([1, 1]), "categorical")
    assert value.dtype == torch.float64
    assert float(value) == pytest.approx(-0.69314718, abs=1e-8)


def test_gaussian_has_its_normaliser():
    outputs, targets = torch.tensor([[0.5, -1.0]]), torch.tensor([[2.0, 0.0]])
    expected = norm.logpdf([1.5, 1.0]).sum()
    assert float(log_likelihood(outputs, targets, "gaussian")) == pytest.approx(expected)


def test_small_differences_survive_long_sums():
    logits = torch.zeros(100_000, 2)
    logits[0, 0] = 0.001
    zeros = torch.zeros(100_000, dtype=torch.int64)
    base = log_likelihood(torch.zeros(100_000, 2), zeros, "categorical")
    assert float(log_likelihood(logits, zeros, "categorical") - base) == pytest.approx(
        0.0005, rel=1e-3
    )


def test_function_of_the_vector():
    layer = nn.Linear(2, 1, bias=False)
    inputs, targets = torch.tensor([[1.0, 2.0], [0.0, 1.0]]), torch.tensor([[1.0], [3.0]])
    function = network_log_likelihood(layer, inputs, targets, "gaussian")
    expected = norm.logpdf([1.0 - 5.0, 3.0 - 2.0]).sum()
    assert float(function(torch.tensor([1.0, 2.0]))) == pytest.approx(expected)
    own = float(function(flat_parameters(layer)))
    outputs = layer(inputs).detach()
    assert own == pytest.approx(float(log_likelihood(outputs, targets, "gaussian")))


@pytest.mark.parametrize(
    ("inputs", "targets", "likelihood", "message"),
    [
        (torch.zeros(0, 2), torch.zeros(0, 1), "gaussian", "at least one"),
        (torch.zeros(3, 2), torch.zeros(2, 1), "gaussian", "same number of samples"),
        (torch.zeros(3, 2), torch.zeros(3, 2), "gaussian", "targets must have the outputs' shape"),
        (torch.zeros(3, 2), torch.tensor([0, 1, 0]), "categorical", "targets must lie in 0 to 0"),
    ],
)
def test_bad_data_are_named(inputs, targets, likelihood, message):
    with pytest.raises(ValueError, match=message):
        network_log_likelihood(nn.Linear(2, 1), inputs, targets, likelihood)
