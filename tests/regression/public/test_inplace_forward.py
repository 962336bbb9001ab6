"""A network that normalises its input in place changes no sample of anybody else.

Reported to neighbouring projects: such a network eats its data set, more so in every epoch.
"""

import numpy as np
import pytest
import torch
from torch import nn

from bcfl.executors import ExecutorConfig
from posteriors import (
    DiagonalGaussian,
    Linearised,
    MonteCarlo,
    PlugIn,
    diagonal_curvature,
    find_mode,
    gauss_newton_matrix,
    local_posterior_fit,
    network_log_likelihood,
)
from posteriors.gaussians.covariance import StructuredGaussian

NUM_PARAMETERS = 10
PRIOR = DiagonalGaussian(torch.zeros(NUM_PARAMETERS), torch.ones(NUM_PARAMETERS))
CLASSES = torch.tensor([0, 1, 1, 0, 1, 0, 0, 1])


class InPlace(nn.Module):
    def __init__(self):
        super().__init__()
        self.layer = nn.Linear(4, 2)

    def forward(self, x):
        x -= 0.5
        x *= 0.5
        return self.layer(x)


class OutOfPlace(InPlace):
    def forward(self, x):
        return self.layer((x - 0.5) * 0.5)


def relu_first():
    return nn.Sequential(nn.ReLU(inplace=True), nn.Linear(4, 2))


def unchanged(clients, run):
    before = [{n: v.inputs.clone() for n, v in data.views.items()} for data in clients]
    run()
    return all(
        torch.equal(view.inputs, kept[name])
        for data, kept in zip(clients, before, strict=True)
        for name, view in data.views.items()
    )


@pytest.mark.parametrize("build", [InPlace, relu_first])
@pytest.mark.parametrize("executor", ["loop", "batched"])
@pytest.mark.parametrize("name", ["fedavg", "ifca", "bcfl-g"])
def test_a_run_leaves_the_clients_samples(clients, mlp, federation, build, executor, name):
    given = clients()
    prepared = federation(given, mlp(build), name, executor=executor)
    assert unchanged(given, lambda: prepared.run(rounds=2))


@pytest.mark.parametrize(
    "name",
    ["fedavg", "wecfl", "ifca", "bcfl-g"],
)
def test_models_are_those_of_the_same_network_out_of_place(
    clients, mlp, federation, parameters, name
):
    runs = [
        federation(clients(), mlp(build), name).run(rounds=3) for build in (InPlace, OutOfPlace)
    ]
    assert torch.equal(*map(parameters, runs))


@pytest.mark.parametrize(
    ("name", "executor"),
    [
        ("bcfl-g-cam", "processes"),
        *((name, "loop") for name in ("ifca-con-rep", "bcfl-g-cam", "bcfl-asym")),
        *((name, "loop") for name in ("bcfl-mht-4", "faacl", "fedsoft")),
    ],
)
def test_terms_blocks_and_workers_see_the_samples_too(
    clients, mlp, federation, parameters, name, executor
):
    choice = ExecutorConfig(executor, workers=1 if executor == "processes" else None)
    given = clients(4)
    runs = [
        federation(given, mlp(build), name, executor=choice).run(rounds=2)
        for build in (InPlace, OutOfPlace)
    ]
    assert torch.equal(*map(parameters, runs))


@pytest.mark.parametrize("first", [nn.ELU, nn.LeakyReLU, nn.SiLU])
@pytest.mark.parametrize("name", ["ifca", "bcfl-g"])
def test_a_first_activation_in_place_is_that_out_of_place(
    clients, mlp, federation, parameters, first, name
):
    """Several models score the same rows, one after another."""

    def build(inplace):
        return lambda: nn.Sequential(first(inplace=inplace), nn.Linear(4, 8), nn.Linear(8, 2))

    given = clients()
    runs = [
        federation(given, mlp(build(inplace)), name, executor="batched").run(rounds=2)
        for inplace in (False, True)
    ]
    assert torch.equal(*map(parameters, runs))
    assert runs[0].records[-1].evaluations.keys() == runs[1].records[-1].evaluations.keys()
    for client, sums in runs[0].records[-1].evaluations.items():
        assert runs[1].records[-1].evaluations[client].nll == sums.nll


@pytest.mark.parametrize("name", ["fedavg", "ifca"])
def test_test_scores_are_those_of_the_same_network_out_of_place(clients, mlp, federation, name):
    scores = [
        federation(clients(), mlp(build), name).run(rounds=3).records[-1].evaluations
        for build in (InPlace, OutOfPlace)
    ]
    for client, sums in scores[1].items():
        np.testing.assert_array_equal(scores[0][client].confusion, sums.confusion)
        assert scores[0][client].nll == pytest.approx(sums.nll)


@pytest.mark.parametrize("executor", ["loop", "batched"])
def test_a_federation_run_again_gives_the_same_bits(clients, mlp, federation, parameters, executor):
    prepared = federation(clients(), mlp(InPlace), "ifca", executor=executor)
    assert torch.equal(parameters(prepared.run(rounds=2)), parameters(prepared.run(rounds=2)))


@pytest.mark.parametrize("predictive", ["plug-in", "monte-carlo", "linearised"])
@pytest.mark.parametrize("kind", [np.asarray, torch.as_tensor])
def test_predict_leaves_the_callers_inputs(clients, mlp, federation, predictive, kind):
    run = federation(clients(), mlp(InPlace), "bcfl-g").run(rounds=1)
    inputs = kind(np.ones((3, 4), np.float32))
    first = run.predict("c0", inputs, predictive).mean
    assert bool((inputs == 1).all())
    np.testing.assert_array_equal(run.predict("c0", inputs, predictive).mean, first)


def test_predict_new_leaves_the_callers_inputs(clients, mlp, federation):
    run = federation(clients(), mlp(InPlace), "ifca").run(rounds=1)
    inputs, own = np.ones((3, 4), np.float32), np.ones((2, 4), np.float32)
    run.predict_new(inputs, (own, np.array([0, 1])))
    assert (inputs == 1).all()
    assert (own == 1).all()


def fitted(name):
    return lambda module, x: local_posterior_fit(name).fit(module, x, CLASSES, PRIOR)


def spread():
    return StructuredGaussian.from_diagonal(PRIOR)


@pytest.mark.parametrize("dtype", [torch.float32, torch.float64])
@pytest.mark.parametrize(
    "call",
    [
        lambda m, x: diagonal_curvature(m, x, CLASSES),
        lambda m, x: gauss_newton_matrix(m, x, CLASSES),
        lambda m, x: network_log_likelihood(m, x, CLASSES)(PRIOR.mean),
        fitted("laplace-diag"),
        fitted("laplace-last-layer"),
        lambda m, x: PlugIn(m, PRIOR.mean).probabilities(x),
        lambda m, x: MonteCarlo(m, spread()).probabilities(x),
        lambda m, x: Linearised(m, spread()).probabilities(x),
        fitted("laplace-full"),
        fitted("laplace-kron"),
        lambda m, x: find_mode(m, x, CLASSES, PRIOR),
    ],
    ids=[
        *("curvature", "gauss-newton", "log-likelihood", "laplace-diag", "laplace-last-layer"),
        *("plug-in", "monte-carlo", "linearised", "laplace-full", "laplace-kron", "mode"),
    ],
)
def test_posteriors_leave_the_callers_inputs(call, dtype):
    inputs = torch.linspace(-1, 1, 32, dtype=dtype).view(8, 4)
    before = inputs.clone()
    call(InPlace().to(dtype), inputs)
    assert torch.equal(inputs, before)


def test_samples_in_a_read_only_file_end_no_process(child, tmp_path):
    path = tmp_path / "inputs.npy"
    rows = np.linspace(-1, 1, 160).reshape(40, 4).astype(np.float32)
    np.save(path, rows)
    done = child(f"""
class InPlace(nn.Module):
    def __init__(self):
        super().__init__()
        self.layer = nn.Linear(4, 2)
    def forward(self, x):
        return self.layer(x.sub_(0.5))
x, y = np.load({str(path)!r}, mmap_mode="r"), np.arange(40) % 2
data = [ClientData.from_arrays(name, (x[:30], y[:30]), (x[30:], y[30:])) for name in "ab"]
print(federation_of(data, mlp_of(InPlace), "ifca").run(rounds=1).state.round)
""")
    assert (done.returncode, done.stdout.strip()) == (0, "1")
    np.testing.assert_array_equal(np.load(path), rows)
