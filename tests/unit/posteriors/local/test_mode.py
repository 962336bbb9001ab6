import numpy as np
import pytest
import torch
from sklearn.linear_model import LogisticRegression
from torch import nn

from posteriors.gaussians.gaussian import DiagonalGaussian
from posteriors.local.mode import find_mode
from posteriors.networks.functional import flat_parameters


def logistic_data():
    random = np.random.default_rng(0)
    inputs = random.normal(size=(60, 3))
    return inputs, (inputs @ [1.0, -2.0, 0.5] + random.normal(size=60) > 0).astype(np.int64)


def test_mode_of_multinomial_regression_is_that_of_scikit_learn():
    """With a zero-mean isotropic prior on the weights of a two-class softmax, w_1 = -w_0."""
    inputs, classes = logistic_data()
    layer = nn.Linear(3, 2, bias=False).double()
    prior = DiagonalGaussian.isotropic(torch.zeros(6, dtype=torch.float64), 2.0)
    mode = find_mode(layer, torch.from_numpy(inputs), torch.from_numpy(classes), prior)
    reference = LogisticRegression(C=1.0, fit_intercept=False, tol=1e-12, max_iter=10_000)
    reference.fit(inputs, classes)
    weights = mode.parameters.view(2, 3)
    np.testing.assert_allclose(weights[1] - weights[0], reference.coef_[0], atol=1e-6)
    assert mode.gradient < 1e-5


def test_frozen_parameters_stay_and_the_module_is_left_alone():
    inputs, classes = (torch.from_numpy(part) for part in logistic_data())
    with torch.random.fork_rng():
        torch.manual_seed(1)
        module = nn.Sequential(nn.Linear(3, 4), nn.Dropout(0.5), nn.Tanh(), nn.Linear(4, 2))
    module[0].requires_grad_(False)
    before = flat_parameters(module)
    prior = DiagonalGaussian.isotropic(torch.zeros(26), 1.0)
    mode = find_mode(module, inputs.float(), classes, prior)
    assert torch.equal(flat_parameters(module), before)
    assert module.training
    assert all(value.grad is None for value in module.parameters())
    assert torch.equal(mode.parameters[:16], before[:16].double())
    assert mode.gradient < 1e-4
    assert float((mode.parameters[16:] - before[16:]).abs().max()) > 0.1
    with torch.inference_mode():
        again = find_mode(module, inputs.float(), classes, prior)
    assert torch.equal(again.parameters, mode.parameters)


def test_flat_priors_are_refused():
    inputs, classes = (torch.from_numpy(part) for part in logistic_data())
    prior = DiagonalGaussian.isotropic(torch.zeros(8), 0.0)
    with pytest.raises(ValueError, match="precision is zero for 8 parameters"):
        find_mode(nn.Linear(3, 2), inputs.float(), classes, prior)
