"""Data, partition, network and method of one's own, from a scenario and the command line."""

import re
import subprocess
import sys

import pytest
from typer.testing import CliRunner

import experiments
from experiments.cli import app

pytestmark = pytest.mark.usefixtures("plain_figures")

SOURCE = """
from dataclasses import dataclass

import numpy as np
import torch
from bcfl import ClientData, Objective
from bcfl.policies import FedAvg
from experiments import datasets


def samples():
    random = np.random.default_rng(0)
    x = random.random((120, 4), dtype=np.float32)
    return datasets.from_numpy(x, (x.sum(axis=1) > 2).astype(int), name="sums")


def halves(dataset, parts: int = 2):
    rows = np.arange(len(dataset)) % parts
    return [
        ClientData.from_arrays(
            f"part {part}",
            (dataset.inputs[rows == part][:20], dataset.targets[rows == part][:20]),
            test=(dataset.inputs[rows == part][20:], dataset.targets[rows == part][20:]),
        )
        for part in range(parts)
    ]


def fours(dataset, parts: int = 1):
    return [4] * parts


def fails(*_, parts: int = 1, hidden: int = 1):
    raise KeyError("age")


class Network(torch.nn.Sequential):
    def __init__(self, inputs, classes, hidden: int = 8):
        super().__init__(
            torch.nn.Linear(inputs, hidden), torch.nn.ReLU(), torch.nn.Linear(hidden, classes)
        )


@dataclass(frozen=True)
class Alone:
    num_clusters: int = 1
    objective: Objective = Objective()

    def associate(self, hypothesis, context):
        return (yield from FedAvg(self.objective).associate(hypothesis, context))
"""
SCENARIO = """
methods = ["fedavg", "own_things:Alone"]
[data]
dataset = "own_things:samples"
[partition]
kind = "own_things:halves"
parts = 3
[model]
name = "own_things:Network"
hidden = 5
[federation]
rounds = 2
"""


@pytest.fixture
def scenario(tmp_path, monkeypatch):
    (tmp_path / "own_things.py").write_text(SOURCE)
    (tmp_path / "own.toml").write_text(SCENARIO)
    monkeypatch.chdir(tmp_path)
    monkeypatch.syspath_prepend(tmp_path)
    yield tmp_path / "own.toml"
    sys.modules.pop("own_things", None)


def run(*arguments):
    return CliRunner().invoke(app, [str(word) for word in arguments])


def test_a_scenario_of_own_things_has_all_commands(scenario):
    folder = scenario.parent / "run"
    done = run("run", scenario, "--out", folder, "--set", "own_things:Alone.objective.momentum=0")
    assert done.exit_code == 0, done.output
    assert "own_things:Alone" in done.output
    for command in (
        ("compare", folder),
        ("explain", folder, "--method", "own_things:Alone", "--client", "1"),
        ("uncertainty", folder, "--predictive", "plug-in"),
        ("graph", folder, "--method", "own_things:Alone"),
        ("report", folder),
        ("resume", folder),
        ("preview", scenario),
    ):
        result = run(*command)
        assert result.exit_code == 0, (command, result.output)
    model = experiments.open(folder)["own_things:Alone", 0].run.model
    assert (model.name, model.num_outputs) == ("own_things:Network", 2)


@pytest.mark.parametrize(
    ("old", "new", "message"),
    [
        ("own_things:samples", "own_things:sample", "dataset 'own_things:sample'.*no object"),
        ("own_things:samples", "own_things:np", "'own_things:np' is of type module, expected a D"),
        ("own_things:halves", "own_things:halve", "partition 'own_things:halve'.*no object"),
        ("parts = 3", "part = 3", "has no option 'part'. Did you mean 'parts'"),
        ("parts = 3", "parts = 'x'", "parts must be a whole number"),
        ("own_things:halves", "own_things:samples", "samples"),
        (
            "own_things:halves",
            "own_things:fours",
            "sequence with something of type int, expected c",
        ),
        ("own_things:Network", "own_things:Netwerk", "Did you mean 'Network'"),
        (
            'own_things:Network"\nhidden = 5',
            'own_things:samples"',
            "is of type Dataset, expected a bcfl.Model",
        ),
        ("own_things:Alone", "own_things:Alonee", "Did you mean 'Alone'"),
        ("own_things:Alone", "own_things.py:Alone", "must name a module, no file: own_things:Al"),
        (
            "own_things:samples",
            "own_things:fails",
            "'own_things:fails' raised KeyError: 'age', at own",
        ),
        ("own_things:halves", "own_things:fails", "partition 'own_things:fails' raised KeyError"),
        ("own_things:Network", "own_things:fails", "model 'own_things:fails' raised KeyError"),
        ("own_things:Alone", "own_things:fails", "method 'own_things:fails' raised KeyError"),
    ],
)
def test_errors_of_own_things_are_one_sentence(scenario, old, new, message):
    scenario.write_text(SCENARIO.replace(old, new))
    result = run("run", scenario, "--out", scenario.parent / "run")
    assert result.exit_code == 2
    assert re.search(message, result.output.replace("\n", " ")), result.output


def test_the_command_finds_modules_in_its_folder(scenario):
    code = "from experiments.cli import app; app(['list', 'options', 'own_things:Alone'])"
    done = subprocess.run(
        [sys.executable, "-c", code], cwd=scenario.parent, capture_output=True, text=True
    )
    assert "num_clusters=1" in done.stdout, done.stderr


def test_names_of_packages_are_listed_without_importing_them(scenario):
    info = scenario.parent / "package-1.0.dist-info"
    info.mkdir()
    (info / "METADATA").write_text("Metadata-Version: 2.1\nName: package\nVersion: 1.0\n")
    entries = "[bcfl.methods]\nalone = not_there:X\nifca = own_things:Alone\n"
    (info / "entry_points.txt").write_text(f"{entries}[bcfl.datasets]\nsums = not_there:Y\n")
    lines = run("list", "methods").output.splitlines()
    ours = [line.split(maxsplit=1) for line in lines if "of a package" in line]
    taken = "not available, its name is that of a method above; of a package: own_things:Alone"
    assert ours == [["alone", "of a package: not_there:X"], ["ifca", taken]]
    assert re.search("sums +of a package: not_there:Y", run("list", "datasets").output)
