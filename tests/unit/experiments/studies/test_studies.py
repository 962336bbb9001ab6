"""The studies at reduced sizes."""

import json
import re
from itertools import product

import pytest

from bcfl.methods import RECIPES
from experiments.studies import calibration, misspecified_clusters
from experiments.studies import memory as memory_study
from tests.recipes import built


@pytest.mark.slow
def test_calibration_of_plain_and_tuned_rules(tmp_path, capsys):
    words = ["2", "--scenario", "digits-rotated", "--rounds", "3", "--methods", "wecfl,bcfl-g-w"]
    words += ["--predictives", "plug-in,probit"]
    calibration.main([*words, "--out", str(tmp_path)])
    rows = json.loads((tmp_path / "digits-rotated.json").read_text())
    assert {(row["seed"], row["method"]) for row in rows} == set(
        product((0, 1), ("wecfl", "bcfl-g-w"))
    )
    nll = {
        row["prediction"]: row["nll"]
        for row in rows
        if row["method"] == "bcfl-g-w" and row["seed"] == 0
    }
    assert list(nll) == ["plug-in", "plug-in, tuned", "probit", "probit, tuned"]
    for kind in ("plug-in", "probit"):
        assert nll[f"{kind}, tuned"] < nll[kind]
    text = (tmp_path / "digits-rotated.md").read_text()
    assert text.strip() == capsys.readouterr().out.strip()
    same = next(line for line in text.splitlines() if "wecfl | plug-in, tuned" in line)
    assert "+0.000 ± 0.000 | +0.000 ± 0.000" in same


@pytest.mark.slow
def test_memories_differ_in_their_counts(capsys, monkeypatch):
    names = [(memory, weight) for memory, weight, _ in memory_study.variants()]
    assert names[:3] == [(one, 0.0) for one in ("replace", "forget", "accumulate")]
    monkeypatch.setattr(memory_study, "METHOD", "bcfl-g")
    monkeypatch.setattr(memory_study, "WEIGHTS", (0.0,))
    memory_study.main([0], rounds=4, clients=8)
    text = capsys.readouterr().out
    rows = re.findall(r"\| 0 \| (\w+) \| (.*) \|", text)
    assert len(rows) == 6
    for kind in (rows[:3], rows[3:]):
        cells = {memory: [float(c.split()[0]) for c in line.split(" | ")] for memory, line in kind}
        assert cells["replace"][:4] == cells["forget"][:4] == cells["accumulate"][:4]
        assert cells["replace"][4] < 1.6
        assert cells["replace"][4] < cells["forget"][4] < cells["accumulate"][4]
        assert cells["accumulate"][4] > 2 * cells["replace"][4]


def test_every_number_of_clusters_has_a_column(capsys):
    misspecified_clusters.main([0], "rotated", ["fedavg", "ifca"], [2, 3], rounds=2)
    text = capsys.readouterr().out
    assert "K = 2" in text
    assert "K = 3" in text
    rows = {
        name: re.findall(r"(\d+\.\d) / (\d+\.\d) / (-?\d\.\d+)", text.split(name)[1])[:2]
        for name in ("fedavg", "ifca")
    }
    assert rows["fedavg"][0] == rows["fedavg"][1]
    assert rows["fedavg"][0][2] == "0.00"
    assert rows["ifca"][0] != rows["ifca"][1]


def test_a_method_runs_for_each_number_that_it_accepts():
    """One that begins with one cluster may still use the number, as `ocfl-kmeans` does."""
    scores = misspecified_clusters.Scores(0.5, 0.1, 0.0)
    run = []
    for name in ("fedavg", "ocfl-kmeans", "ifca"):
        found = misspecified_clusters.row(name, [2, 3], lambda m: run.append(m.name) or scores)
        assert found == [scores, scores]
    assert run == ["fedavg", *["ocfl-kmeans"] * 2, *["ifca"] * 2]


def test_all_methods_with_a_given_number_are_compared():
    """But ensembles, which do not cluster, the exact tracker, for tiny problems alone, and weights
    of histories, which count data again that rounds revisit.
    """
    told = [
        name
        for name in [recipe.title.replace("-M", "-3") for recipe in RECIPES.values()]
        if len({built(name, num_clusters=k).policy for k in (2, 3)}) > 1
    ]
    listed = {re.sub(r"-\d(-w)?$", "-3", name) for name in misspecified_clusters.METHODS}
    apart = {"fedavg-plus", "fedprox-plus", "bcfl-exact", "bcfl-histories-3"}
    assert {"ifca", "fedgroup", "bcfl-mht-3"} < set(told)
    assert set(told) - apart <= listed


def test_scores_are_averaged_one_by_one():
    parts = [misspecified_clusters.Scores(0.5, 0.1, 0.0), misspecified_clusters.Scores(1, 0.3, 1)]
    assert str(misspecified_clusters.Scores.mean(parts)) == "75.0 / 20.0 / 0.50"
