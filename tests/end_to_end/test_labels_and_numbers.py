"""Runs whose samples have several labels, or numbers, through the commands."""

import json

import numpy as np
import pytest
from typer.testing import CliRunner

import experiments
from bcfl import Federation
from experiments import datasets
from experiments.cli import app

pytestmark = pytest.mark.usefixtures("plain_figures")

SCENARIO = """
methods = ["fedavg", "bcfl-g"]
seeds = [0]
[data]
dataset = "digits.npz"
[partition]
kind = "rotated"
groups = 2
clients = 6
samples_per_client = 60
[model]
name = "mlp"
hidden = [16]
[training]
local_steps = 20
[federation]
rounds = 4
num_clusters = 2
calibration = 0.2
"""
NUMBERS = """
import numpy as np
import torch
from bcfl import ClientData, Federation, Objective, methods


def federation():
    random, clients = np.random.default_rng(0), []
    for index in range(6):
        x = random.normal(size=(60, 2))
        y = x @ ((1, 2) if index < 3 else (2, -1)) + random.normal(size=60)
        train, test = (x[:40], y[:40]), (x[40:], y[40:])
        clients.append(ClientData.from_arrays(f"c{index}", train, test, index // 3))
    training = Objective(learning_rate=0.05)
    method = methods.bcfl_g(num_clusters=2, objective=training)
    return Federation(clients, lambda: torch.nn.Linear(2, 1), method)
"""


def command(*arguments):
    done = CliRunner().invoke(app, [*map(str, arguments)])
    assert done.exit_code == 0, done.output
    return done.stdout


@pytest.fixture
def here(tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    monkeypatch.syspath_prepend(str(tmp_path))
    return tmp_path


def test_a_data_set_with_several_labels(here):
    digits = datasets.load("optdigits")
    one = np.arange(10)
    labels = np.stack([one % 2 == 0, one > 4, np.isin(one, (0, 6, 8, 9))], axis=1)
    np.savez("digits.npz", x_train=digits.inputs, y_train=labels[digits.targets])
    (here / "labels.toml").write_text(SCENARIO)
    command("run", "labels.toml", "--out", "run")
    rows = (here / "run/fedavg/seed-0/metrics.jsonl").read_text().splitlines()
    last = json.loads(rows[-1])
    assert 0.5 < last["micro_f1"] <= 1
    assert last["accuracy"] < last["micro_f1"]
    described = json.loads((here / "run/run.json").read_text())
    assert described["data"]["classes"] == 3
    assert "micro F1" in command("uncertainty", "run")
    scores = json.loads((here / "run/uncertainty.json").read_text())
    kinds = {(row["predictive"], row["tuned"]) for row in scores}
    assert kinds == {("plug-in", False), ("plug-in", True), ("linearised", True)}
    plain = next(r["scores"] for r in scores if r["method"] == "fedavg" and not r["tuned"])
    assert plain["nll"] == pytest.approx(last["nll"], rel=1e-4)
    assert 0 <= plain["noise_auroc"] <= 1
    assert plain["risk_at_80_coverage"] < 1 - plain["accuracy"]
    assert plain["wrong_auroc"] > 0.5
    assert "its 15 test samples" in command("explain", "run", "--method", "bcfl-g", "--client", 0)
    page = (here / "run/uncertainty.html").read_text()
    assert page.count("<svg") == 4


def test_numbers_saved_from_python(here):
    (here / "of_numbers.py").write_text(NUMBERS)
    federation = __import__("of_numbers").federation()
    assert isinstance(federation, Federation)
    run = federation.run(6)
    experiments.save(run, "run", name="bcfl-g", federation="of_numbers:federation")
    assert "RMSE" in command("compare", "run")
    assert ">RMSE" in (here / "run/report.html").read_text()
    shown = command("uncertainty", "run")
    assert "CRPS" in shown
    assert "other groups" in shown
    assert "tuned   bcfl-g plug-in: noise" in shown
    scores = json.loads((here / "run/uncertainty.json").read_text())
    assert [(r["predictive"], r["tuned"]) for r in scores] == [
        ("plug-in", False),
        ("plug-in", True),
        ("linearised", True),
    ]
    plain, tuned, linear = (row["scores"] for row in scores)
    assert plain["sharpness"] == pytest.approx(1, rel=0.02)
    assert plain["rmse"] == pytest.approx(tuned["rmse"]) == pytest.approx(linear["rmse"], rel=1e-3)
    assert 0 <= tuned["ood_auroc"] <= 1
    assert 0 < linear["rmse_at_80_coverage"] < 2
    assert set(scores[0]["association"]) >= {"association_nll", "association_auroc"}
    page = (here / "run/uncertainty.html").read_text()
    assert "Coverage of intervals" in page
    assert "NLL" in command("explain", "run", "--client", 0)
