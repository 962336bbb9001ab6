"""Tests of predicted numbers against scipy, on every executor."""

from dataclasses import replace

import numpy as np
import pytest
import torch
from scipy.integrate import trapezoid
from scipy.optimize import brentq
from scipy.stats import norm
from torch import nn

from bcfl import ClientData, Federation, Model, Objective, PredictionRule, View, methods
from bcfl.analysis import NOISE_GRID, score_values
from bcfl.protocol.statistics.held_out import HeldOutLosses
from bcfl.protocol.statistics.regression import LEVELS, RegressionSums
from posteriors.predictive import TuningGrid

SLOPES = ([2.0, -1.0], [-2.0, 1.5])
ROUNDS = 12


@pytest.fixture
def samples():
    random, clients = np.random.default_rng(5), {}
    for index in range(6):
        x = random.normal(size=(70, 2)).astype(np.float32)
        values = np.column_stack([x @ SLOPES[index % 2], x[:, 0]])
        y = (values + random.normal(size=values.shape)).astype(np.float32)
        clients[f"c{index}"] = (x, y)
    return clients


@pytest.fixture
def federation(samples):
    def of(name="ifca", **arguments):
        clients = [
            ClientData.from_arrays(c, (x[:40], y[:40]), (x[40:], y[40:]), index % 2)
            for index, (c, (x, y)) in enumerate(samples.items())
        ]
        model = Model(
            name="line",
            build=lambda: nn.Linear(2, 2),
            input_shape=(2,),
            num_outputs=2,
            likelihood="gaussian",
        )
        training = Objective(local_steps=10, batch_size=10, learning_rate=0.05)
        method = methods.build(
            name, objective=training, **methods.applicable(name, {"num_clusters": 2})
        )
        return Federation(clients, model, method, seed=1, device="cpu", **arguments)

    return of


def test_sums_are_those_of_the_mixture(samples):
    _, y = samples["c0"]
    random = np.random.default_rng(0)
    means, weights = random.normal(size=(3, 20, 2)), np.array([0.5, 0.2, 0.3])
    sums = RegressionSums.of(means, weights, y[:20].astype(np.float64))
    densities = np.array([norm(m).pdf(y[:20]).prod(axis=1) for m in means])
    assert sums.nll == pytest.approx(-np.log(weights @ densities).sum())
    mean = np.tensordot(weights, means, axes=1)
    assert sums.squared_error == pytest.approx(((y[:20] - mean) ** 2).sum())
    assert (sums.num_samples, sums.num_values) == (20, 40)
    for level, covered in zip(LEVELS, sums.covered, strict=True):
        inside = 0
        for component, value in zip(means.reshape(3, -1).T, y[:20].ravel(), strict=True):
            low, high = (
                brentq(lambda t, c=component, p=p: weights @ norm(c).cdf(t) - p, -20, 20)
                for p in ((1 - level) / 2, (1 + level) / 2)
            )
            inside += low <= value <= high
        assert covered == inside


@pytest.mark.parametrize("name", ["fedavg", "ifca", "bcfl-g", "bcfl-mht-4", "wecfl"])
def test_metrics_are_those_of_the_predictions(name, federation, samples):
    run = federation(name).run(ROUNDS)
    served = [run.predict_values(c, x[40:], by="association") for c, (x, _) in samples.items()]
    errors = np.stack([y[40:] for _, y in samples.values()]) - np.stack([p.mean for p in served])
    scores = run.metrics()
    assert scores["rmse"] == pytest.approx(np.sqrt((errors**2).mean()), rel=1e-5)
    if len(run.hypotheses) == 1:
        assert scores["nll"] == pytest.approx(-norm.logpdf(errors).sum(axis=2).mean(), rel=1e-5)
        assert scores["coverage_90"] == pytest.approx((np.abs(errors) < norm.ppf(0.95)).mean())
    if name == "bcfl-g":
        assert scores["rmse"] < 1.15
        assert scores["coverage_error"] < 0.1
    assert "accuracy" not in scores


def test_the_variance_between_models_is_that_of_the_association(federation, samples):
    run = federation("bcfl-g").run(ROUNDS)
    x = samples["c0"][0]
    prediction = run.predict_values("c0", x)
    outputs = np.stack(
        [
            run.model.network(m.mean(run.model), m.buffers(run.model))(torch.tensor(x)).detach()
            for m in run.hypotheses.best.clusters
        ]
    )
    weights = prediction.association[:, None, None]
    mean = (weights * outputs).sum(axis=0)
    np.testing.assert_allclose(prediction.mean, mean, atol=1e-5)
    spread = (weights * (outputs - mean) ** 2).sum(axis=0)
    np.testing.assert_allclose(prediction.variance, 1 + spread, atol=1e-5)


def test_the_variance_of_a_linear_model_is_that_of_its_posterior(federation, samples):
    run = federation("bcfl-g").run(ROUNDS)
    x = samples["c0"][0][:8].astype(np.float64)
    plain, linear, drawn = (
        run.predict_values("c0", x, kind)
        for kind in (
            "plug-in",
            "linearised",
            PredictionRule(predictive="monte-carlo", num_draws=4000),
        )
    )
    assert not plain.model_variance.any()
    wanted = np.zeros((8, 2))
    for share, model in zip(plain.association, run.hypotheses.best.clusters, strict=True):
        of_weight, of_bias = np.split(1 / model.precision(run.model).double().numpy(), [4])
        wanted += share * (x**2 @ of_weight.reshape(2, 2).T + of_bias)
    np.testing.assert_allclose(linear.model_variance, wanted, rtol=1e-4)
    np.testing.assert_allclose(drawn.model_variance, wanted, rtol=0.15)
    np.testing.assert_allclose(linear.mean, plain.mean, atol=1e-5)
    np.testing.assert_allclose(linear.variance, plain.variance + wanted, rtol=1e-4)
    with pytest.raises(ValueError, match="'probit' is of classes, not of numbers"):
        run.predict_values("c0", x, "probit")


def test_the_noise_variance_is_that_of_held_out_residuals(samples, federation):
    noisy = {name: (x, x @ [[2, 1], [-1, 0]] + 0.2 * y) for name, (x, y) in samples.items()}
    samples.update(noisy)
    run = federation("fedavg").run(60)
    rule = run.tuned("plug-in", view="test")
    mean = {name: run.predict_values(name, x[40:]).mean for name, (x, _) in samples.items()}
    residuals = np.stack([samples[name][1][40:] - mean[name] for name in samples])
    grid = np.array(NOISE_GRID.temperatures)
    losses = [-norm(0, np.sqrt(noise)).logpdf(residuals).sum() for noise in grid]
    assert rule.temperature == grid[np.argmin(losses)]
    assert rule.temperature == pytest.approx((residuals**2).mean(), rel=0.2)
    tuned = run.predict_values("c0", samples["c0"][0], rule)
    np.testing.assert_allclose(tuned.variance, rule.temperature, atol=1e-9)
    np.testing.assert_allclose(tuned.entropy, 2 * norm(0, np.sqrt(rule.temperature)).entropy())
    assert not tuned.epistemic.any()


def test_prior_precision_and_noise_are_tuned_together(federation, samples):
    run = federation("bcfl-g").run(ROUNDS)
    grid = TuningGrid((1.0, 100.0), (0.5, 1.0, 2.0))
    rule = PredictionRule(predictive="linearised")
    asked = HeldOutLosses((1.0,), rule, grid)
    (leading, *_), x = run.hypotheses.best.clusters, samples["c0"][0]
    view = View.from_arrays(*samples["c0"])
    found = asked.of_posteriors([leading], run.model, view)
    for row, precision in enumerate(grid.prior_precisions):
        chosen = replace(rule, prior_precision=precision)
        moments = chosen.moments(run.model, {leading: 1.0}, torch.tensor(x))
        for column, noise in enumerate(grid.temperatures):
            spread = np.sqrt(noise + moments.model_variance.numpy())
            wanted = -norm(moments.mean.numpy(), spread).logpdf(samples["c0"][1]).sum()
            assert found.log_loss[row, column] == pytest.approx(wanted, rel=1e-5)
    assert run.tuned("linearised", view="test", grid=grid).prior_precision in (1.0, 100.0)


def test_samples_far_away_have_high_ood_scores(federation, samples):
    run = federation("bcfl-g").run(ROUNDS)
    x = samples["c0"][0]
    own, far = (run.predict_values("c0", inputs).ood_score for inputs in (x, x + 20))
    assert far.min() > own.max()


def test_scores_of_values_are_those_of_their_definitions():
    """CRPS by integrating the squared distance of the distribution function and the step at y."""
    random = np.random.default_rng(1)
    mean, variance = random.normal(size=(30, 2)), random.uniform(0.2, 3, size=(30, 2))
    targets = mean + 1.5 * random.normal(size=(30, 2))
    scores, spread = score_values(mean, variance, targets), np.sqrt(variance)
    grid = np.linspace(-25, 25, 40_001)
    of_each = [
        trapezoid((norm(m, s).cdf(grid) - (grid >= y)) ** 2, grid)
        for m, s, y in zip(mean.ravel(), spread.ravel(), targets.ravel(), strict=True)
    ]
    assert scores["crps"] == pytest.approx(np.mean(of_each), rel=1e-3)
    assert scores["nll"] == pytest.approx(-norm(mean, spread).logpdf(targets).mean())
    low, high = norm(mean, spread).interval(0.9)
    assert scores["coverage_90"] == pytest.approx(((targets > low) & (targets < high)).mean())
    assert scores["sharpness"] == pytest.approx(spread.mean())
    assert all(np.isnan(value) for value in score_values(*np.zeros((3, 0, 2))).values())


def test_executors_agree(loop_and_other):
    loop, other = loop_and_other
    assert loop.metrics() == pytest.approx(other.metrics(), rel=1e-5, nan_ok=True)
    assert not any(record.ledger.failures for record in other.records)


def test_wrong_targets_and_classifiers_are_refused(federation):
    right = federation()
    with pytest.raises(ValueError, match="predict_values"):
        right.run(1).predict("c0", np.zeros((1, 2)))
    x = np.zeros((4, 2), dtype=np.float32)
    wrong = ClientData.from_arrays("c9", (x, np.zeros((4, 3), dtype=np.float32)), None)
    with pytest.raises(ValueError, match=r"client 'c9'.*targets must be 2 numbers per"):
        Federation([*right.clients, wrong], right.model, right.method)
