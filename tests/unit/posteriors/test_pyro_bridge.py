import numpy as np
import pyro
import pyro.poutine
import pytest
import torch
from pyro.infer import MCMC, NUTS
from scipy.special import logsumexp
from scipy.stats import multivariate_normal, norm
from torch import nn

from posteriors.gaussians.gaussian import DiagonalGaussian
from posteriors.pyro_bridge import mixture_to_pyro, network_program, to_pyro


def gaussian(mean, precision):
    return DiagonalGaussian(
        torch.tensor(mean, dtype=torch.float64), torch.tensor(precision, dtype=torch.float64)
    )


COMPONENTS = [gaussian([-2.0, 0.0], [4.0, 1.0]), gaussian([1.0, 3.0], 0.25)]
LOGS = np.log([0.3, 0.7]) + 50.0


def test_a_gaussian_is_scored_and_sampled():
    one = COMPONENTS[0]
    distribution = to_pyro(one)
    points = torch.randn(5, 2, generator=torch.Generator().manual_seed(0), dtype=torch.float64)
    torch.testing.assert_close(distribution.log_prob(points), one.log_density(points))
    assert distribution.event_shape == (2,)
    with pytest.raises(ValueError, match="precision is zero"):
        to_pyro(gaussian([0.0], [0.0]))


def test_a_mixture_is_scored_and_sampled():
    mixture = mixture_to_pyro(COMPONENTS, LOGS)
    points = np.random.default_rng(0).normal(size=(6, 2))
    terms = [
        np.log(weight) + multivariate_normal(mean, cov).logpdf(points)
        for weight, mean, cov in ((0.3, [-2, 0], np.diag([0.25, 1])), (0.7, [1, 3], 4 * np.eye(2)))
    ]
    expected = torch.from_numpy(logsumexp(terms, axis=0))
    torch.testing.assert_close(mixture.log_prob(torch.from_numpy(points)), expected)
    with torch.random.fork_rng():
        torch.manual_seed(0)
        draws = mixture.sample((20_000,))
    np.testing.assert_allclose(draws.mean(0), [0.1, 2.1], atol=0.06)
    assert mixture.event_shape == (2,)


def test_components_of_weight_zero_are_left_out_even_if_flat():
    flat = gaussian([0.0, 0.0], [0.0, 1.0])
    mixture = mixture_to_pyro([*COMPONENTS, flat], [*LOGS, -np.inf])
    point = torch.tensor([0.2, 0.4], dtype=torch.float64)
    alone = mixture_to_pyro(COMPONENTS, LOGS)
    torch.testing.assert_close(mixture.log_prob(point), alone.log_prob(point))


def test_tuples_of_models_that_belong_together():
    """Two hypotheses over two models each: the models of a draw come from one hypothesis."""
    hypotheses = [gaussian([[0.0], [10.0]], 1e4), gaussian([[5.0], [-5.0]], 1e4)]
    mixture = mixture_to_pyro(hypotheses, [0.0, 0.0])
    assert mixture.event_shape == (2, 1)
    with torch.random.fork_rng():
        torch.manual_seed(0)
        draws = mixture.sample((200,)).round()
    assert {tuple(draw.flatten().tolist()) for draw in draws} == {(0.0, 10.0), (5.0, -5.0)}


def regression():
    random = np.random.default_rng(3)
    inputs = random.normal(size=(8, 2))
    return inputs, inputs @ [0.6, 2.2] + random.normal(size=8)


def exact_mixture_posterior(inputs, values):
    """Posterior mean and component weights of linear regression under the mixture prior."""
    logs, means = [], []
    for log_weight, one in zip(LOGS, COMPONENTS, strict=True):
        precision = one.precision.expand(2).numpy()
        joint = np.diag(precision) + inputs.T @ inputs
        right = precision * one.mean.numpy() + inputs.T @ values
        means.append(np.linalg.solve(joint, right))
        covariance = np.eye(8) + inputs / precision @ inputs.T
        logs.append(
            log_weight + multivariate_normal(inputs @ one.mean.numpy(), covariance).logpdf(values)
        )
    weights = np.exp(logs - logsumexp(logs))
    return weights @ np.array(means), weights


def test_a_pyro_program_takes_the_mixture_as_its_prior():
    inputs, values = regression()
    layer = nn.Linear(2, 1, bias=False).double()
    program = network_program(layer, mixture_to_pyro(COMPONENTS, LOGS), "gaussian")
    with torch.random.fork_rng():
        torch.manual_seed(0)
        chain = MCMC(NUTS(program), num_samples=300, warmup_steps=100, disable_progbar=True)
        chain.run(torch.from_numpy(inputs), torch.from_numpy(values)[:, None])
    draws = chain.get_samples()["parameters"]
    mean, _ = exact_mixture_posterior(inputs, values)
    np.testing.assert_allclose((draws.mean(0).numpy() - mean) / draws.std(0).numpy(), 0, atol=0.35)


def test_weighing_draws_of_the_program_gives_the_evidence_of_the_mixture():
    """Log joint of the program = log prior + log likelihood, against scipy."""
    inputs, values = regression()
    layer = nn.Linear(2, 1, bias=False).double()
    mixture = mixture_to_pyro(COMPONENTS, LOGS)
    program = network_program(layer, mixture, "gaussian")
    point = torch.tensor([0.3, -0.4], dtype=torch.float64)
    conditioned = pyro.poutine.condition(program, data={"parameters": point})
    trace = pyro.poutine.trace(conditioned).get_trace(
        torch.from_numpy(inputs), torch.from_numpy(values)[:, None]
    )
    likelihood = norm.logpdf(values, inputs @ point.numpy()).sum()
    expected = float(mixture.log_prob(point)) + likelihood
    assert float(trace.log_prob_sum()) == pytest.approx(expected)


def test_programs_can_sample_classes_and_map_their_latent_variable():
    layer = nn.Linear(2, 3)
    prior = to_pyro(DiagonalGaussian.isotropic(torch.zeros(9), 1.0))
    program = network_program(layer, prior, to_parameters=lambda latent: 0.0 * latent)
    with torch.random.fork_rng():
        torch.manual_seed(0)
        trace = pyro.poutine.trace(program).get_trace(torch.zeros(300, 2), None)
    drawn = torch.bincount(trace.nodes["targets"]["value"], minlength=3)
    assert bool((drawn > 60).all())
    assert torch.equal(trace.nodes["_RETURN"]["value"], torch.zeros(300, 3))


@pytest.mark.parametrize(
    ("components", "logs", "message"),
    [
        (COMPONENTS, [0.0], r"one number per Gaussian .* got shape \(1,\) for 2"),
        ([], [], "at least one"),
        (COMPONENTS, [0.0, float("nan")], "not NaN"),
        (COMPONENTS, [-np.inf, -np.inf], "not all -inf"),
        ([COMPONENTS[0], gaussian([0.0], 1.0)], [0.0, 0.0], "equal shapes"),
        ([COMPONENTS[0], gaussian([0.0, 0.0], 0.0)], [0.0, 0.0], "precision is zero"),
    ],
)
def test_bad_mixtures_are_named(components, logs, message):
    with pytest.raises(ValueError, match=message):
        mixture_to_pyro(components, logs)
