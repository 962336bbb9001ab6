"""Local posteriors of logistic regression against a grid and against a Pyro program of its own."""

from functools import partial

import numpy as np
import pyro
import pyro.distributions as dist
import pytest
import torch
from pyro.infer import MCMC, NUTS
from scipy.special import log_expit, logsumexp
from torch import nn

from posteriors.gaussians.gaussian import DiagonalGaussian
from posteriors.local import DiagonalLaplace, FullLaplace, NoUTurn, Variational
from posteriors.local.mode import find_mode

PRIOR_MEAN, PRIOR_PRECISION = np.array([0.4, -0.3]), np.array([0.8, 2.0])


class TwoLogits(nn.Module):
    """Logits (0, w x): binary logistic regression as a two-class network."""

    def __init__(self):
        super().__init__()
        self.layer = nn.Linear(2, 1, bias=False, dtype=torch.float64)

    def forward(self, x):
        logit = self.layer(x)
        return torch.cat([torch.zeros_like(logit), logit], 1)


class OneLogit(TwoLogits):
    """The logit w x of one label."""

    def forward(self, x):
        return self.layer(x)


def data(size=25):
    random = np.random.default_rng(5)
    inputs = random.normal(size=(size, 2)) @ np.array([[1.0, 0.6], [0.0, 0.8]])
    classes = (random.random(size) < 1 / (1 + np.exp(-inputs @ [1.5, -1.0]))).astype(np.int64)
    return inputs, classes


def grid_posterior(inputs, classes):
    """Mean, deviations and log evidence by summing over a fine grid."""
    axis = np.linspace(-7, 7, 561)
    weights = np.stack(np.meshgrid(axis, axis, indexing="ij"), -1).reshape(-1, 2)
    signs = 2 * classes - 1
    logs = log_expit(weights @ (inputs * signs[:, None]).T).sum(1)
    deviations = (weights - PRIOR_MEAN) ** 2 * PRIOR_PRECISION
    logs += 0.5 * (np.log(PRIOR_PRECISION / (2 * np.pi)) - deviations).sum(1)
    evidence = logsumexp(logs) + 2 * np.log(axis[1] - axis[0])
    p = np.exp(logs - logsumexp(logs))
    mean = p @ weights
    return mean, np.sqrt(p @ (weights - mean) ** 2), evidence, (weights, p)


@pytest.fixture(params=["categorical", "bernoulli"])
def fit(request):
    return partial(fitted_by, likelihood=request.param)


def fitted_by(method, likelihood, **options):
    inputs, classes = data()
    tensors = torch.from_numpy(inputs), torch.from_numpy(classes)
    module = TwoLogits()
    if likelihood == "bernoulli":
        module, tensors = OneLogit(), (tensors[0], tensors[1].double()[:, None])
    prior = DiagonalGaussian(torch.from_numpy(PRIOR_MEAN), torch.from_numpy(PRIOR_PRECISION))
    nn.init.zeros_(module.layer.weight)
    mode = find_mode(module, *tensors, prior, likelihood)
    with torch.no_grad():
        module.layer.weight.copy_(mode.parameters[None])
    return method(**options, likelihood=likelihood).fit(module, *tensors, prior, seed=4)


def present(predictive, probes):
    """Probability of the second class, or of the label."""
    return predictive.probabilities(torch.from_numpy(probes))[..., 1].flatten()


def test_nuts_is_the_posterior(fit):
    """Means within 5 standard errors, deviations and predictions within 12 %."""
    mean, deviation, evidence, (weights, p) = grid_posterior(*data())
    fitted = fit(NoUTurn, draws=500, warmup=100)
    np.testing.assert_allclose((fitted.mean.numpy() - mean) / deviation, 0, atol=5 / np.sqrt(500))
    predictive = getattr(fitted.predictive, "logits", fitted.predictive)
    draws = predictive.draws.numpy()
    np.testing.assert_allclose(draws.std(0), deviation, rtol=0.12)
    np.testing.assert_allclose(fitted.curvature, deviation**-2 - PRIOR_PRECISION, rtol=0.35)
    assert fitted.log_evidence == pytest.approx(evidence, abs=0.05)
    probes = np.array([[1.0, 1.0], [2.0, -3.0]])
    expected = np.exp(log_expit(weights @ probes.T)).T @ p
    np.testing.assert_allclose(present(fitted.predictive, probes), expected, atol=0.03)


def test_nuts_agrees_with_an_independent_pyro_program():
    inputs, classes = (torch.from_numpy(part) for part in data())

    def program():
        weights = pyro.sample(
            "w", dist.Normal(torch.from_numpy(PRIOR_MEAN),
                             torch.from_numpy(PRIOR_PRECISION**-0.5)).to_event(1)
        )  # fmt: skip
        with pyro.plate("n", len(inputs)):
            pyro.sample("y", dist.Bernoulli(logits=inputs @ weights), obs=classes.double())

    with torch.random.fork_rng():
        torch.manual_seed(0)
        chain = MCMC(NUTS(program), num_samples=300, warmup_steps=100, disable_progbar=True)
        chain.run()
    reference = chain.get_samples()["w"]
    fitted = fitted_by(NoUTurn, "categorical", draws=500, warmup=100)
    distance = (fitted.mean - reference.mean(0)) / reference.std(0)
    assert float(distance.abs().max()) < 0.35
    ratio = fitted.predictive.draws.std(0) / reference.std(0)
    assert float((ratio - 1).abs().max()) < 0.2


def test_approximations_are_close(fit):
    mean, deviation, evidence, _ = grid_posterior(*data())
    full, diagonal = fit(FullLaplace), fit(DiagonalLaplace)
    assert full.log_evidence == pytest.approx(evidence, abs=0.15)
    assert abs(full.log_evidence - evidence) < abs(diagonal.log_evidence - evidence)
    variational = fit(Variational, steps=800)
    np.testing.assert_allclose((variational.mean.numpy() - mean) / deviation, 0, atol=0.2)
    assert evidence - 0.5 < variational.log_evidence < evidence
