"""Parameters that need no gradient stay as they were, in every method, and have no curvature.

Reported to neighbouring projects: a layer with frozen weights and a trainable bias breaks.
"""

from dataclasses import replace

import pytest
import torch
from torch import nn

from bcfl import BlockSpec
from posteriors import DiagonalGaussian, UnsupportedFitError, diagonal_curvature
from posteriors import local_posterior_fit as posterior_named

NAMES = [
    *("fedavg", "fedprox", "ifca", "wecfl", "ocfl-affinity", "scl", "bcl", "fedgroup", "faacl"),
    *("fedsoft", "ewc", "ssgd", "bcfl-g", "bcfl-c-2", "bcfl-mht-4", "bcfl-asym"),
    *("ifca-finetune", "bcfl-g-con-rep", "bcfl-g-cks", "bcfl-g-w", "local", "feddrift"),
]
BODY, WEIGHTS = torch.arange(30), torch.cat([torch.arange(24), torch.arange(30, 42)])
HEAD = torch.arange(30, 44)


def network(frozen):
    """4 -> 6 -> 2 with fixed first values; parameters are weights and biases of both layers."""

    def build():
        made = nn.Sequential(nn.Linear(4, 6), nn.Tanh(), nn.Linear(6, 2))
        with torch.no_grad():
            made[0].weight.copy_(torch.linspace(-0.5, 0.5, 24).view(6, 4))
            made[0].bias.zero_()
            made[2].weight.copy_(torch.linspace(-1, 1, 12).view(2, 6))
            made[2].bias.zero_()
        for name, parameter in made.named_parameters():
            parameter.requires_grad = not frozen(name)
        return made

    return build


def body(name):
    return name.startswith("0.")


def weights(name):
    return name.endswith("weight")


def head(name):
    return name.startswith("2.")


def flat(module):
    return torch.cat([p.detach().double().flatten() for p in module.parameters()])


def furthest(federation_run, parameters, build, places):
    """How far any of some parameters is from where it was, in any cluster."""
    before = flat(build())
    found = parameters(federation_run).view(-1, len(before))
    return float((found - before)[:, places].abs().max()), float((found - before).abs().max())


@pytest.mark.parametrize(
    "name",
    [*NAMES, "ifca-con-para", "wecfl-con-cks"],
)
def test_frozen_weights_stay_while_biases_train(clients, mlp, federation, parameters, name):
    build = network(weights)
    run = federation(clients(), mlp(build), name).run(rounds=2)
    frozen, any_of_all = furthest(run, parameters, build, WEIGHTS)
    assert any_of_all > 1e-3
    assert frozen < 1e-6


@pytest.mark.parametrize("name", ["fedavg", "bcfl-g", "ifca-con-para", "wecfl-con-cks"])
def test_a_frozen_body_stays(clients, mlp, federation, parameters, name):
    build = network(body)
    run = federation(clients(), mlp(build), name).run(rounds=2)
    frozen, any_of_all = furthest(run, parameters, build, BODY)
    assert any_of_all > 1e-3
    assert frozen < 1e-6


@pytest.mark.parametrize("executor", ["loop", "batched"])
@pytest.mark.parametrize(
    "name", ["fedavg", "fedprox", "ifca-cks", "ifca-con-rep", "ifca-con-para", "ifca-con-cks"]
)
def test_a_frozen_classifier_stays(clients, mlp, federation, parameters, name, executor):
    build = network(head)
    run = federation(clients(), mlp(build), name, executor=executor).run(rounds=2)
    assert furthest(run, parameters, build, HEAD)[0] < 1e-6


@pytest.mark.parametrize("name", ["apd", "fedweit"])
def test_a_frozen_body_is_not_decomposed(clients, mlp, federation, name):
    build = network(body)
    run = federation(clients(), mlp(build), name).run(rounds=2)
    start, model = dict(build().named_parameters()), run.model
    for slot in model.layout.parameters:
        for cluster in run.hypotheses.best.clusters if body(slot.name) else ():
            found = cluster.mean(model)[slot.start : slot.stop].view(slot.shape)
            torch.testing.assert_close(found, start[slot.name].detach(), rtol=0, atol=1e-6)
    with pytest.raises(ValueError, match="trained weights"):
        federation(clients(), mlp(network(weights)), name)


@pytest.mark.parametrize("executor", ["loop", "batched"])
@pytest.mark.parametrize("name", ["fedavg", "fedprox", "ifca-con-para", "wecfl-con-cks", "bcfl-g"])
def test_a_frozen_block_stays(clients, mlp, federation, parameters, name, executor):
    blocks = (BlockSpec("body", prefixes=("0.",), frozen=True), BlockSpec("head", prefixes=("2.",)))
    build = network(lambda _: False)
    model = replace(mlp(build), blocks=blocks)
    run = federation(clients(), model, name, executor=executor).run(rounds=2)
    frozen, any_of_all = furthest(run, parameters, build, BODY)
    assert any_of_all > 1e-3
    assert frozen < 1e-6


@pytest.mark.parametrize("affine_only", [True, False])
@pytest.mark.parametrize("name", ["fedavg", "bcfl-g", "ifca-con-para"])
def test_statistics_of_frozen_normalisation_stay(clients, mlp, federation, name, affine_only):
    def build():
        made = nn.Sequential(nn.Linear(4, 6), nn.BatchNorm1d(6), nn.ReLU(), nn.Linear(6, 2))
        for parameter in (made[1] if affine_only else made[:2]).parameters():
            parameter.requires_grad = False
        return made

    run = federation(clients(), mlp(build), name).run(rounds=2)
    for cluster in run.hypotheses.best.clusters:
        expected = torch.cat([torch.zeros(6), torch.ones(6)])
        torch.testing.assert_close(cluster.buffers(run.model), expected, rtol=0, atol=1e-6)


@pytest.mark.parametrize(("frozen", "places"), [(weights, WEIGHTS), (body, BODY)])
def test_frozen_parameters_have_no_curvature(frozen, places):
    module, inputs = network(frozen)(), torch.linspace(-2, 2, 36).view(9, 4)
    found = diagonal_curvature(module, inputs, torch.arange(9) % 2)
    assert not found[places].any()
    assert found.sum() > 0


@pytest.mark.parametrize(("frozen", "places"), [(weights, WEIGHTS), (body, BODY)])
@pytest.mark.parametrize(
    "name",
    ["laplace-diag", "laplace-full", "laplace-subnetwork", "laplace-last-layer", "laplace-kron"],
)
def test_posteriors_leave_frozen_parameters_at_their_prior_or_refuse_them(name, frozen, places):
    module, inputs = network(frozen)(), torch.linspace(-2, 2, 36).view(9, 4)
    prior = DiagonalGaussian(torch.zeros(44), torch.ones(44))
    try:
        fit = posterior_named(name).fit(module, inputs, torch.arange(9) % 2, prior)
    except UnsupportedFitError:
        return
    assert not fit.curvature[places].any()
    torch.testing.assert_close(fit.mean.double()[places], flat(module)[places])
