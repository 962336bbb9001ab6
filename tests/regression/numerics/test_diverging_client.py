"""A client whose training diverges is left out of the round and reported; the run goes on."""

import json
import warnings

import pytest
import torch
from torch import nn
from typer.testing import CliRunner

from bcfl import Federation
from bcfl.rounds import FailingClientWarning, UntrainedWarning
from experiments.cli import app
from posteriors import DiagonalGaussian, local_posterior_fit

SCENARIO = """
name = "diverging"
methods = ["bcfl-g"]
seeds = [0]
[data]
dataset = "optdigits"
[partition]
kind = "two-stage-dirichlet"
groups = 2
clients = 4
[model]
name = "mlp"
hidden = [4]
[training]
local_steps = 10
learning_rate = 1e20
[federation]
rounds = 2
num_clusters = 2
"""


@pytest.mark.parametrize("executor", ["loop", "batched"])
@pytest.mark.parametrize(
    "posterior",
    [
        "laplace-diag",
        "laplace-last-layer",
        "laplace-full",
        "laplace-subnetwork",
        "laplace-kron",
    ],
)
def test_client_is_left_out_and_reported(diverging, model, build_method, posterior, executor):
    recipe = build_method("bcfl-g", num_clusters=2, posterior=posterior, learning_rate=1.0)
    run = Federation(diverging, model, recipe, seed=0, executor=executor).run(2)
    assert len(run.records) == 2
    for record in run.records:
        assert any("c001" in failure for failure in record.ledger.failures)
    for cluster in run.hypotheses.best.clusters:
        assert cluster.mean(model).isfinite().all()


@pytest.mark.parametrize(
    "posterior",
    [
        "variational",
        "nuts",
    ],
)
def test_only_client_of_a_federation(diverging, model, build_method, posterior):
    recipe = build_method("bcfl-g", num_clusters=1, posterior=posterior, learning_rate=1.0)
    alone = Federation(diverging[1:2], model, recipe, seed=0, executor="loop")
    with pytest.warns(UntrainedWarning, match="no client sent a usable model.*c001"):
        run = alone.run(1)
    assert any("c001" in failure for failure in run.records[0].ledger.failures)


def test_a_client_that_fails_in_every_round_is_told(diverging, model, build_method):
    method = build_method("ifca", num_clusters=2)
    words = r"clients that failed in each round that they took part in: 'c001'; c001: "
    words += r".*\(invalid\); .*: scale inputs to about 0 to 1, or lower Objective"
    with pytest.warns(FailingClientWarning, match=words) as told:
        Federation(diverging, model, method, seed=0).run(2)
    (warning,) = told
    assert warning.filename == __file__
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        Federation(diverging[2:], model, method, seed=0).run(2)


def test_kronecker_fit_of_inputs_that_are_no_numbers():
    network = nn.Sequential(nn.Linear(3, 4), nn.Tanh(), nn.Linear(4, 2))
    size = sum(parameter.numel() for parameter in network.parameters())
    inputs = torch.linspace(-1, 1, 18).reshape(6, 3)
    inputs[0, 0] = float("nan")
    prior = DiagonalGaussian(torch.zeros(size), torch.tensor(1.0))
    with pytest.raises(ValueError, match="finite"):
        local_posterior_fit("laplace-kron").fit(network, inputs, torch.arange(6) % 2, prior)


@pytest.mark.parametrize(
    "posterior",
    [
        "laplace-diag",
        "laplace-kron",
    ],
)
def test_command_writes_all_rounds(tmp_path, posterior):
    scenario, folder = tmp_path / "diverging.toml", tmp_path / "out"
    scenario.write_text(SCENARIO)
    arguments = ["run", str(scenario), "--posterior", posterior, "--out", str(folder)]
    result = CliRunner().invoke(app, arguments)
    assert result.exit_code == 1, result.output
    assert "failed   8 requests of clients" in result.output
    assert "failed   all clients in all rounds of bcfl-g: no model was trained" in result.output
    with (folder / "bcfl-g" / "seed-0" / "metrics.jsonl").open() as lines:
        assert [json.loads(line)["round"] for line in lines] == [1, 2]
