import io
from dataclasses import replace

import numpy as np
import pandas
import pytest
import torch
from numpy.polynomial.hermite_e import hermegauss
from scipy.special import expit, softmax
from scipy.stats import entropy
from torch import nn

from bcfl import Federation, Model, Objective, PredictionRule
from bcfl.analysis.prediction.mixture import predict
from bcfl.hypotheses import Membership
from bcfl.methods import build
from tests.recipes import built

X = np.random.default_rng(0).normal(size=(7, 3)).astype(np.float32)
NAMES = ("plug-in", "monte-carlo", "linearised")


@pytest.mark.parametrize("name", NAMES)
def test_entropy_is_split_in_three(run, name):
    prediction = run.predict("c1", X, name)
    np.testing.assert_allclose(prediction.mean.sum(axis=1), 1)
    np.testing.assert_allclose(prediction.entropy, entropy(prediction.mean, axis=1))
    parts = (
        prediction.data_uncertainty,
        prediction.model_uncertainty,
        prediction.association_uncertainty,
    )
    assert all((part >= 0).all() for part in parts)
    np.testing.assert_allclose(prediction.entropy, sum(parts), rtol=1e-9)
    if name == "plug-in":
        np.testing.assert_allclose(prediction.model_uncertainty, 0, atol=1e-12)
    else:
        assert prediction.model_uncertainty.min() > 1e-4


def test_inputs_that_are_no_numbers_are_found(run):
    frame = pandas.DataFrame(X, columns=["a", "b", "c"])
    odd = X.copy()
    odd[2, 1] = np.nan
    place = r"got NaN or inf in 1 of 7 samples, the first of them nan in sample 2 "
    for inputs, what in ((odd, "inputs"), (frame.assign(b=odd[:, 1]), "column 'b' of the inputs")):
        with pytest.raises(ValueError, match=rf"^{what} must be finite, {place}"):
            run.predict("c1", inputs)
        with pytest.raises(ValueError, match=place):
            run.predict_new(inputs, (X, [0] * 7))
    with pytest.raises(ValueError, match=r"inputs must be finite in torch\.float32, got a larger"):
        run.predict("c1", X.astype(float) * 1e300)
    mixed = frame.assign(c=X[:, 2] > 0)
    np.testing.assert_array_equal(
        run.predict("c1", mixed).mean, run.predict("c1", mixed.to_numpy(float)).mean
    )


def test_plug_in_is_the_default_and_predictions_repeat(run):
    np.testing.assert_array_equal(run.predict("c1", X).mean, run.predict("c1", X, "plug-in").mean)
    for name in NAMES:
        again = run.predict("c1", X, PredictionRule(predictive=name))
        np.testing.assert_array_equal(run.predict("c1", X, name).mean, again.mean)


def expected_by_quadrature(run, linear, client, prior_precision, temperature):
    """Class 1 under Gaussian logits of a linear network, by Gauss-Hermite quadrature."""
    points, weights = hermegauss(80)
    wanted = np.zeros(len(X))
    inputs = np.concatenate([X, np.ones((len(X), 1))], axis=1)
    for posterior, share in Membership.of_client(run.hypotheses, client).mixture.items():
        block = posterior.blocks[0]
        mean = block.gaussian.mean.double().numpy()
        precision = (block.gaussian.precision - block.base.precision).double().numpy()
        variance = 1 / (precision + prior_precision)
        difference = np.concatenate([mean[3:6] - mean[:3], [mean[7] - mean[6]]])
        spread = np.concatenate([variance[3:6] + variance[:3], [variance[7] + variance[6]]])
        centre, deviation = inputs @ difference, np.sqrt(inputs**2 @ spread)
        logits = centre[:, None] + deviation[:, None] * points
        wanted += share * (expit(logits / temperature) @ weights) / weights.sum()
    return wanted


@pytest.mark.parametrize("name", NAMES[1:])
@pytest.mark.parametrize(("prior_precision", "temperature"), [(1.0, 1.0), (20.0, 1.5)])
def test_draws_agree_with_quadrature(run, linear, name, prior_precision, temperature):
    rule = PredictionRule(
        predictive=name, prior_precision=prior_precision, temperature=temperature, num_draws=4000
    )
    found = run.predict("c1", X, rule).mean[:, 1]
    wanted = expected_by_quadrature(run, linear, "c1", prior_precision, temperature)
    np.testing.assert_allclose(found, wanted, atol=0.02)


@pytest.mark.parametrize("name", NAMES[1:])
def test_a_posterior_that_is_certain_predicts_as_its_mean(run, name):
    certain = run.predict("c1", X, PredictionRule(predictive=name, prior_precision=1e12))
    np.testing.assert_allclose(certain.mean, run.predict("c1", X).mean, atol=1e-5)
    np.testing.assert_allclose(certain.model_uncertainty, 0, atol=1e-8)


def test_temperature_divides_the_logits_of_each_model(run, linear):
    wanted = np.zeros((7, 2))
    for posterior, weight in Membership.of_client(run.hypotheses, "c1").mixture.items():
        mean = posterior.mean(linear).double().numpy()
        logits = X @ mean[:6].reshape(2, 3).T + mean[6:]
        wanted += weight * softmax(logits / 3, axis=1)
    found = run.predict("c1", X, PredictionRule(temperature=3.0)).mean
    np.testing.assert_allclose(found, wanted, rtol=1e-5)


def test_association_is_that_of_the_run(run):
    for row, client in enumerate(run.clients):
        found = run.predict(client, X).association
        np.testing.assert_allclose(found, run.association_probabilities()[row], atol=1e-12)


def test_each_posterior_has_its_own_running_statistics(batch_norm, clients):
    settings = dict(
        num_clusters=2, objective=Objective(local_steps=3, batch_size=4), temperature=4.0
    )
    run = Federation(clients, batch_norm, build("bcfl-c-3", **settings)).run(2)
    mixture = Membership.of_client(run.hypotheses, "c1").mixture
    assert len({tuple(p.buffers(batch_norm).tolist()) for p in mixture}) == len(mixture) > 1
    wanted = torch.zeros(7, 2, dtype=torch.float64)
    for posterior, weight in mixture.items():
        module = batch_norm.module().eval()
        torch.nn.utils.vector_to_parameters(posterior.mean(batch_norm), module.parameters())
        statistics = posterior.buffers(batch_norm)
        module[1].running_mean.copy_(statistics[:4])
        module[1].running_var.copy_(statistics[4:])
        wanted += weight * module(torch.from_numpy(X)).double().softmax(1).detach()
    np.testing.assert_allclose(run.predict("c1", X).mean, wanted, rtol=1e-5)


def test_a_prior_precision_is_exchanged_in_every_block(shared_body, clients):
    settings = dict(
        num_clusters=2, objective=Objective(local_steps=3, batch_size=4), prior_precision=3.0
    )
    run = Federation(clients, shared_body, build("bcfl-g", **settings)).run(1)
    posterior = run.hypotheses.best.clusters[0]
    rule = PredictionRule(predictive="monte-carlo", prior_precision=50.0)
    component = rule.untempered(shared_body, posterior)
    precision = component.posterior.covariance.precision
    wanted = posterior.precision(shared_body) - 3.0 + 50.0
    torch.testing.assert_close(precision, wanted)


def test_a_cluster_that_nobody_trained_is_predicted_under_its_prior(linear, clients, newborn):
    settings = dict(num_clusters=1, objective=Objective(local_steps=3, batch_size=4))
    run = Federation(clients, linear, build("bcfl-g", **settings)).run(1)
    trained, dormant = run.hypotheses.best.clusters[0], newborn(linear, precision=3.0)
    rule = PredictionRule(predictive="linearised")
    precision = rule.untempered(linear, dormant).posterior.covariance.precision
    torch.testing.assert_close(precision, torch.full_like(precision, 3.0))
    mixture = {trained: 0.9, dormant: 0.1}
    mean = predict(linear, mixture, np.ones(1), torch.from_numpy(X), rule).mean
    np.testing.assert_allclose(mean.sum(axis=1), 1)
    with pytest.raises(ValueError, match="needs curvature"):
        predict(linear, {dormant: 1.0}, np.ones(1), torch.from_numpy(X), rule)


@pytest.mark.parametrize("name", NAMES[1:])
def test_methods_without_curvature_have_no_posterior_to_draw_from(linear, clients, name):
    run = Federation(
        clients,
        linear,
        build("wecfl", num_clusters=2, objective=Objective(local_steps=2, batch_size=4)),
    ).run(1)
    with pytest.raises(ValueError, match=f"predictive '{name}' needs curvature"):
        run.predict("c0", X, name)


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        ({"predictive": "softmax"}, "predictive must be one of plug-in, .*, got 'softmax'"),
        ({"prior_precision": 0.0}, "prior_precision must be positive and finite, got 0"),
        ({"temperature": float("inf")}, "temperature must be positive and finite, got inf"),
        ({"num_draws": 0}, "num_draws must be a whole number of at least 1, got 0"),
    ],
)
def test_rules_refuse_what_means_nothing(arguments, message):
    with pytest.raises(ValueError, match=message):
        replace(PredictionRule(), **arguments)


def test_nothing_is_rounded_to_tf32(clients, monkeypatch):
    """Torch lets a GPU round the factors of convolutions unless it is told not to."""
    monkeypatch.setattr(torch.backends.cudnn, "allow_tf32", True)
    seen = set()

    class Watching(nn.Module):
        def forward(self, inputs):
            seen.add(torch.backends.cudnn.allow_tf32)
            return inputs

    model = Model(
        name="watched",
        build=lambda: nn.Sequential(Watching(), nn.Linear(3, 2)),
        input_shape=(3,),
        num_outputs=2,
    )
    held_out = dict(
        num_clusters=2, objective=Objective(local_steps=2, batch_size=4), calibration=0.3
    )
    run = Federation(clients, model, build("bcfl-g", **held_out), device="cpu").run(1)
    seen.clear()
    inputs = np.zeros((2, 3), dtype=np.float32)
    run.predict("c0", inputs, "monte-carlo")
    run.predict_new(inputs, (inputs, np.array([0, 1])))
    run.tuned("plug-in")
    assert seen == {False}
    assert torch.backends.cudnn.allow_tf32


def test_a_new_client_shares_clusters_with_those_that_are_believed_to_be_in_them(run):
    y = np.array([0, 1, 1, 0])
    prediction = run.predict_new(X, (X[:4], y))
    expected = np.zeros(len(run.clients))
    weights, total = [], 0.0
    for hypothesis in run.hypotheses:
        for cluster, posterior in enumerate(hypothesis.clusters):
            network = run.model.network(posterior.mean(run.model), posterior.buffers(run.model))
            with torch.no_grad():
                logits = network(torch.as_tensor(X[:4], dtype=torch.float32))
                loss = torch.nn.functional.cross_entropy(
                    logits, torch.as_tensor(y), reduction="sum"
                )
            prior = np.exp(hypothesis.log_weight) / len(hypothesis.clusters)
            weights.append((prior * np.exp(-float(loss)), hypothesis.membership[:, cluster]))
            total += weights[-1][0]
    for weight, column in weights:
        expected += weight / total * column
    np.testing.assert_allclose(prediction.co_association, expected, rtol=1e-5)
    assert run.predict("c0", X).co_association is None


def test_predictions_by_association_are_by_who_trains_where(run):
    for client in run.clients:
        found = run.predict(client, X, by="association").association
        served = Membership.by_association(run.hypotheses, client)
        np.testing.assert_allclose(found, served.association)
    with pytest.raises(ValueError, match="by must be 'belief' or 'association', got 'hope'"):
        run.predict("c0", X, by="hope")


@pytest.mark.parametrize(
    ("model", "name"),
    [("linear", "bcfl-mh-3"), ("batch_norm", "bcfl-mh-3"), ("shared_body", "bcfl-g")]
    + [("linear", name) for name in ("fedavg", "local", "apd", "fedweit", "ssgd")],
)
def test_the_network_of_a_client_is_one_of_the_class_that_the_federation_was_given(
    model, name, clients, request
):
    given = request.getfixturevalue(model)
    settings = dict(objective=Objective(local_steps=3, batch_size=4))
    run = Federation(clients, given, built(name, **settings)).run(2)
    x = np.random.default_rng(3).normal(size=(5, 3)).astype(np.float32)
    for client in run.clients:
        mixture = Membership.of_client(run.hypotheses, client).mixture
        best = max(mixture, key=mixture.get)
        found = run.network(client)
        assert not found.training
        file = io.BytesIO()
        torch.save(found.state_dict(), file)
        file.seek(0)
        own = given.build().eval()
        own.load_state_dict(torch.load(file, weights_only=True))
        theirs = run.model.network(best.mean(run.model), best.buffers(run.model))
        with torch.no_grad():
            outputs = own(torch.as_tensor(x))
            torch.testing.assert_close(outputs, theirs(torch.as_tensor(x)))
        if len(mixture) == 1:
            predicted = run.predict(client, x).mean
            np.testing.assert_allclose(outputs.softmax(dim=1).numpy(), predicted, atol=1e-6)


def test_the_network_of_a_client_is_a_copy(run):
    before = run.predict("c0", np.ones((1, 3))).mean
    with torch.no_grad():
        for parameter in run.network("c0").parameters():
            parameter.zero_()
    np.testing.assert_array_equal(run.predict("c0", np.ones((1, 3))).mean, before)
    with pytest.raises(ValueError, match=r"client must be one of 'c0', .*, got 'c9'"):
        run.network("c9")


def test_targets_in_the_place_of_a_predictive_are_refused(run):
    with pytest.raises(TypeError, match=r"predictive must be a name .* got ndarray.*adaptation="):
        run.predict("c1", X, np.zeros(len(X)))
