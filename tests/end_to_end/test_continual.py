"""The comparison on data in time steps, at a quick size, from its command to its tables."""

import re
from pathlib import Path

import pytest
from sklearn.metrics import adjusted_rand_score

from bcfl.analysis.rows import read
from bcfl.data.streams import Schedule
from experiments.config import scenario
from experiments.config.variants import Pair
from experiments.datasets import load
from experiments.partitions import stream
from experiments.runs.files import RunFiles
from experiments.runs.restore import restore
from experiments.studies import continual, run_tables

pytestmark = pytest.mark.usefixtures("plain_figures")

SMALL = """
name = "faacl-mnist-s2-sequential"
methods = ["fedavg"]
[data]
dataset = "optdigits"
[partition]
kind = "stream"
concept = "shifted-labels"
steps = 3
clients = 4
test_fraction = 0.2
[model]
name = "mlp"
hidden = [16]
[training]
local_steps = 10
batch_size = 10
momentum = 0.0
[federation]
rounds = 6
num_clusters = 2
epsilon = 0.5
"""


def test_last_rounds_of_time_steps():
    assert continual.last_rounds(Schedule(3, 7)) == [2, 4, 6]


def test_unknown_concepts_and_orders_are_named(tmp_path):
    sizes = run_tables.Sizes(("fedavg",), (0,), 6, tmp_path / "runs")
    for concept, order in (("S1", "sequential"), ("s2", "random")):
        with pytest.raises(ValueError, match=r"concepts must be among s1, s2, a1, a2, and orders"):
            continual.main(sizes, (order,), (concept,))


def test_tables_of_a_small_stream(tmp_path, monkeypatch, capsys):
    path = tmp_path / "small.toml"
    path.write_text(SMALL)
    monkeypatch.setattr(run_tables, "load", lambda name: scenario.load(path))
    sizes = run_tables.Sizes(("fedavg", "c-faacl", "fedweit"), (0,), 6, tmp_path / "runs")
    continual.main(sizes, ("sequential",), ("s2",))
    lines = capsys.readouterr().out.splitlines()
    assert "**S2, sequential**, 6 rounds" in "".join(lines)
    rows = {line.split("|")[1].strip(): line.split("|")[2:-1] for line in lines if "|" in line}
    accuracies = next(line for line in lines if line.startswith("| c-faacl"))
    values = [float(cell) for cell in accuracies.split("|")[2:5]]
    mean = float(accuracies.split("|")[5])
    assert mean == pytest.approx(sum(values) / 3, abs=0.1)
    assert accuracies.split("|")[6].strip() == "97.67"
    assert [cell.strip() for cell in rows["fedavg"]] == ["0x4"] * 3
    assert [cell.strip() for cell in rows["fedweit"]] == ["4 clusters"] * 3
    assert all(re.fullmatch(r"(\d+x\d+ ?)+|4 clusters", c.strip()) for c in rows["c-faacl"])
    report = Path(sizes.out, "faacl-mnist-s2-sequential", "report.html")
    assert "c-faacl" in report.read_text()


def test_clusters_are_scored_against_the_concepts_of_their_time_step(tmp_path, monkeypatch, capsys):
    path = tmp_path / "small.toml"
    words = SMALL.replace("sequential", "multi-task").replace(
        "steps = 3", "steps = 3\norder = 'multi-task'"
    )
    path.write_text(words)
    monkeypatch.setattr(run_tables, "load", lambda name: scenario.load(path))
    sizes = run_tables.Sizes(("bcfl-forget",), (0,), 6, tmp_path / "runs")
    continual.main(sizes, ("multi-task",), ("s2",))
    folder = sizes.out / "faacl-mnist-s2-multi-task"
    found = restore(folder, Pair("bcfl-forget", 0))
    rows = read(RunFiles(folder).of(Pair("bcfl-forget", 0)).metrics)
    concepts = stream(
        load("optdigits"), clients=4, steps=3, order="multi-task", test_fraction=0.2
    ).concepts
    assert len({seen for seen in concepts.values()}) > 1
    assert any(len(set(seen)) > 1 for seen in concepts.values())
    for row, snapshot in zip(rows, found.state.history, strict=True):
        step = (row["round"] - 1) // 2
        leading = snapshot.associations[0]
        truth = [concepts[client][step] for client in leading.clients]
        assert row["ari"] == pytest.approx(adjusted_rand_score(truth, leading.labels))
