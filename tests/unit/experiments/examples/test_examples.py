"""The short scripts to start from, at quick sizes."""

import json
import re
from itertools import product

import numpy as np
import pytest
from PIL import Image

from bcfl import Run
from bcfl.methods import RECIPES
from experiments.examples import association_graph, posterior_over_associations
from experiments.studies import calibration, misspecified_clusters
from experiments.studies import memory as memory_example
from tests.recipes import built


def test_exact_and_kept_associations(capsys):
    found = posterior_over_associations.posteriors(0)
    exact = found["bcfl-exact"]
    assert len(exact.hypotheses) == 2**6
    weights = np.sort(exact.hypotheses.weights)[::-1]
    assert weights[0] < 0.9
    for kept in posterior_over_associations.KEPT:
        captured = np.exp(found[f"bcfl-mh-{kept}"].hypotheses.log_captured_mass)
        assert captured == pytest.approx(weights[:kept].sum(), rel=1e-6)
    posterior_over_associations.main()
    assert len(re.findall(r"client-\d", capsys.readouterr().out)) == 6


def test_calibration_of_plain_and_tuned_rules(tmp_path, capsys):
    words = ["2", "--scenario", "digits-rotated", "--rounds", "3", "--methods", "wecfl,bcfl-g-w"]
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
    assert list(nll)[:3] == ["plug-in", "plug-in, tuned", "monte-carlo, tuned"]
    for kind in ("plug-in", "probit"):
        assert nll[f"{kind}, tuned"] < nll[kind]
    text = (tmp_path / "digits-rotated.md").read_text()
    assert text.strip() == capsys.readouterr().out.strip()
    same = next(line for line in text.splitlines() if "wecfl | plug-in, tuned" in line)
    assert "+0.000 ± 0.000 | +0.000 ± 0.000" in same


def test_memories_differ_in_how_often_they_count(capsys, monkeypatch):
    names = [(memory, weight) for memory, weight, _ in memory_example.variants()]
    assert names[:3] == [(one, 0.0) for one in ("replace", "forget", "accumulate")]
    monkeypatch.setattr(memory_example, "METHOD", "bcfl-g")
    monkeypatch.setattr(memory_example, "WEIGHTS", (0.0,))
    memory_example.main([0], rounds=4, clients=8)
    text = capsys.readouterr().out
    rows = re.findall(r"\| 0 \| (\w+) \| (.*) \|", text)
    assert len(rows) == 6
    for kind in (rows[:3], rows[3:]):
        cells = {memory: [float(c.split()[0]) for c in line.split(" | ")] for memory, line in kind}
        assert cells["replace"][:4] == cells["forget"][:4] == cells["accumulate"][:4]
        assert cells["replace"][4] < 1.6
        assert cells["replace"][4] < cells["forget"][4] < cells["accumulate"][4]
        assert cells["accumulate"][4] > 2 * cells["replace"][4]


def test_communities_of_the_association_graph(tmp_path, capsys):
    path = tmp_path / "graph.png"
    association_graph.main(path, rounds=8)
    assert "4 communities, adjusted Rand index 1.00" in capsys.readouterr().out
    with Image.open(path) as picture:
        assert len(np.unique(np.asarray(picture.convert("L")))) > 10


def test_communities_of_a_run_are_those_of_its_groups():
    run = association_graph.trained(rounds=8)
    assert isinstance(run, Run)
    found = association_graph.communities(run.association_graph(0.05))
    groups = [{client for client, one in run.groups.items() if one == g} for g in range(4)]
    assert sorted(map(sorted, found)) == sorted(map(sorted, groups))


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


def test_a_method_runs_for_each_number_that_it_is_told():
    """One that begins with one cluster may still use the number, as `ocfl-kmeans` does."""
    scores = misspecified_clusters.Scores(0.5, 0.1, 0.0)
    run = []
    for name in ("fedavg", "ocfl-kmeans", "ifca"):
        found = misspecified_clusters.row(name, [2, 3], lambda m: run.append(m.name) or scores)
        assert found == [scores, scores]
    assert run == ["fedavg", *["ocfl-kmeans"] * 2, *["ifca"] * 2]


def test_every_method_that_must_be_told_the_number_is_compared():
    """But ensembles, which do not cluster, and the exact tracker, for tiny problems alone."""
    told = [
        name
        for name in [recipe.title.replace("-M", "-3") for recipe in RECIPES.values()]
        if len({built(name, num_clusters=k).policy for k in (2, 3)}) > 1
    ]
    listed = {re.sub(r"-\d(-w)?$", "-3", name) for name in misspecified_clusters.METHODS}
    apart = {"fedavg-plus", "fedprox-plus", "bcfl-exact"}
    assert {"ifca", "fedgroup", "bcfl-mht-3"} < set(told)
    assert set(told) - apart <= listed


def test_scores_are_averaged_one_by_one():
    parts = [misspecified_clusters.Scores(0.5, 0.1, 0.0), misspecified_clusters.Scores(1, 0.3, 1)]
    assert str(misspecified_clusters.Scores.mean(parts)) == "75.0 / 20.0 / 0.50"
