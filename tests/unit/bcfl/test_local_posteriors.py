"""Local posteriors by name inside a small federation."""

from dataclasses import replace

import numpy as np
import pytest
import torch

from bcfl import Federation, Model, Objective
from bcfl.methods import build
from bcfl.protocol.requests import Train
from posteriors import (
    LOCAL_POSTERIORS,
    DiagonalGaussian,
    UnsupportedFitError,
    diagonal_curvature,
    find_mode,
    local_posterior_fit,
)
from posteriors.local import NoUTurn, Variational
from tests.unit.bcfl.conftest import two_layers

QUICK = ("laplace-diag", "laplace-last-layer", "laplace-kron", "laplace-full", "laplace-subnetwork")
DRAWN = ("variational", "nuts")


def federation(clients, model, name, memory="replace", **changes):
    settings = dict(
        num_clusters=1,
        objective=Objective(local_steps=3, batch_size=4, curvature_samples=None),
        posterior=name,
        memory=memory,
        **changes,
    )
    return Federation(clients, model, build("bcfl-g", **settings), evaluate=False)


@pytest.fixture
def network():
    return Model(name="two-layers", build=two_layers, input_shape=(3,), num_outputs=2)


def reply_of(federation, client):
    """What a client reports of its first training, and the prior that it was sent."""
    cluster = federation.initial_state().hypotheses.best.clusters[0]
    request = Train(client, cluster.key, federation.method.policy.objective)
    answer = federation.engine.answer([request], {cluster.key: cluster}, 0)[request]
    precision = cluster.prior_precision(federation.model)
    return answer, DiagonalGaussian(cluster.mean(federation.model), precision)


def fitted(federation, name, answer, prior, client, **numbers):
    """The same local posterior, asked for outside the federation."""
    module = federation.model.module()
    torch.nn.utils.vector_to_parameters(answer.mean.clone(), module.parameters())
    view = client.views["train"]
    return replace(local_posterior_fit(name), **numbers).fit(
        module, view.inputs, view.targets, prior
    )


@pytest.mark.parametrize("name", QUICK)
def test_the_reported_diagonal_is_that_of_the_local_posterior(network, clients, name):
    fed = federation(clients, network, name)
    answer, prior = reply_of(fed, clients[0].client)
    fit = fitted(fed, name, answer, prior, clients[0])
    np.testing.assert_allclose(answer.curvature, fit.curvature, rtol=1e-4, atol=1e-7)
    np.testing.assert_allclose(answer.mean, fit.mean)


@pytest.mark.parametrize("name", QUICK)
def test_fused_precision_is_prior_and_sum_of_the_local_diagonals(network, clients, name):
    fed = federation(clients, network, name, prior_precision=2.0)
    run = fed.run(1)
    replies = [reply_of(fed, data.client)[0] for data in clients]
    floored = [
        torch.maximum(one.curvature, torch.tensor(1e-3 * one.num_samples)) for one in replies
    ]
    cluster = run.hypotheses.best.clusters[0]
    np.testing.assert_allclose(cluster.precision(network), 2 + sum(floored), rtol=1e-4)
    weighted = sum(f * one.mean for f, one in zip(floored, replies, strict=True)) / sum(floored)
    np.testing.assert_allclose(cluster.mean(network), weighted, rtol=1e-3, atol=1e-5)


def test_all_structures_have_the_exact_diagonal_of_what_they_cover(network, clients):
    """Full and diag cover all parameters, the last layer and subnetwork a part."""
    answers = {n: reply_of(federation(clients, network, n), clients[0].client)[0] for n in QUICK}
    exact = answers["laplace-diag"].curvature
    np.testing.assert_allclose(answers["laplace-full"].curvature, exact, rtol=1e-4)
    last = answers["laplace-last-layer"].curvature
    np.testing.assert_allclose(last[-10:], exact[-10:], rtol=1e-4)
    assert not last[:-10].any()
    np.testing.assert_allclose(answers["laplace-subnetwork"].curvature, exact, rtol=1e-4)


@pytest.mark.parametrize("name", [n for n in QUICK if n != "laplace-kron"])
@pytest.mark.parametrize("memory", ["accumulate", "forget"])
def test_later_rounds_have_the_server_posterior_as_prior(network, clients, name, memory):
    run = federation(clients, network, name, memory, prior_precision=3.0).run(2)
    again = federation(clients, network, name, prior_precision=3.0).run(2)
    ours, fresh = (r.hypotheses.best.clusters[0].precision(network) for r in (run, again))
    assert float((ours / fresh).max()) > 1.3


@pytest.mark.parametrize(
    ("name", "memory", "message"),
    [
        ("laplace-kron", "accumulate", "one prior precision per parameter tensor"),
        ("laplace-kron", "forget", "one prior precision per parameter tensor"),
    ],
)
def test_priors_that_a_method_cannot_take_are_refused_before_work(
    network, clients, name, memory, message
):
    with pytest.raises(UnsupportedFitError, match=message):
        federation(clients, network, name, memory)


@pytest.mark.parametrize(
    ("name", "message"),
    [
        ("nuts", "at most max_parameters=200"),
        ("laplace-full", "at most max_parameters=3000"),
        ("laplace-kron", "no rule for layer '1'"),
    ],
)
def test_networks_that_a_method_cannot_take_are_refused_before_work(clients, name, message):
    def large():
        return torch.nn.Sequential(
            torch.nn.Linear(3, 600), torch.nn.GroupNorm(1, 600), torch.nn.Linear(600, 2)
        )

    with pytest.raises(UnsupportedFitError, match=message):
        federation(clients, Model(name="large", build=large, input_shape=(3,), num_outputs=2), name)


def test_names_and_combinations_are_checked():
    with pytest.raises(ValueError, match=r"laplace-diag, .*got 'laplace-fool'"):
        Objective(posterior="laplace-fool")
    with pytest.raises(ValueError, match="curvature must be 'ggn' where posterior is 'nuts'"):
        Objective(curvature="mc_ggn", posterior="nuts")


@pytest.mark.parametrize("name", DRAWN)
def test_methods_that_move_the_mean_report_theirs(linear, clients, name, monkeypatch):
    """Both are near the exact diagonal Laplace posterior at the mode of logistic regression."""
    monkeypatch.setattr(
        "bcfl.executors.sequential.training.local_posterior_fit",
        lambda chosen, likelihood: LOCAL_POSTERIORS_QUICK[chosen],
    )
    fed = federation(clients, linear, name, prior_precision=5.0)
    answer, prior = reply_of(fed, clients[0].client)
    view, module = clients[0].views["train"], linear.module()
    mode = find_mode(module, view.inputs, view.targets, prior).parameters
    torch.nn.utils.vector_to_parameters(mode.float(), module.parameters())
    exact = diagonal_curvature(module, view.inputs, view.targets)
    deviation = (prior.precision + exact).rsqrt()
    assert float(((answer.mean - mode) / deviation).abs().max()) < 0.6
    ratio = (prior.precision + answer.curvature) / (prior.precision + exact)
    assert 0.5 < float(ratio.min()) <= float(ratio.max()) < 2


LOCAL_POSTERIORS_QUICK = {
    "variational": Variational(steps=600),
    "nuts": NoUTurn(draws=300, warmup=100),
}


def test_every_name_is_tried():
    assert {*QUICK, *DRAWN} == set(LOCAL_POSTERIORS)
