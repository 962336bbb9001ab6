"""Tables of one-shot clustering and of support, from tiny runs of handwritten digits."""

import json
import re

import networkx as nx
import numpy as np
import pytest
import tomli_w
from rich.console import Console

from experiments.runs.run_folder import RunFolder
from experiments.studies import one_shot, run_tables, support


def written(folder, name, partition, **federation):
    table = {
        "name": name,
        "methods": ["fedavg"],
        "data": {"dataset": "optdigits"},
        "partition": partition,
        "model": {"name": "mlp", "hidden": [16]},
        "training": {"local_steps": 10},
        "federation": {"num_clusters": 3, **federation},
    }
    path = folder / f"{name}.toml"
    path.write_text(tomli_w.dumps(table))
    return str(path)


def run_of(folder, name, partition, methods, **federation):
    sizes = run_tables.Sizes(methods, (0, 1), 4, folder / "runs")
    scenario = written(folder, name, partition, **federation)
    return run_tables.finished(scenario, sizes, Console(quiet=True))


@pytest.fixture(scope="module")
def clustered(tmp_path_factory):
    partition = {"kind": "ocfl", "clients": 6, "min_samples": 4}
    methods = ("fedavg", "ocfl-kmeans")
    return run_of(tmp_path_factory.mktemp("one-shot"), "tiny", partition, methods)


@pytest.fixture(scope="module")
def supported(tmp_path_factory):
    partition = {"kind": "noisy", "noise": [0.4, 0.7], "clients": 4, "samples_per_client": 80}
    methods = ("fedavg", "faacl")
    return run_of(tmp_path_factory.mktemp("support"), "tiny", partition, methods, epsilon=0.5)


def rows_of(run, method, seed):
    path = run.path / method / f"seed-{seed}" / "metrics.jsonl"
    return [json.loads(line) for line in path.read_text().splitlines()]


def test_a_finished_run_is_only_read(clustered):
    before = {path: path.stat().st_mtime_ns for path in clustered.path.rglob("*")}
    scenario = str(clustered.path.parent.parent / "tiny.toml")
    other = run_tables.Sizes(("wecfl",), (5,), 1, clustered.path.parent)
    again = run_tables.finished(scenario, other, Console(quiet=True))
    assert again.methods == clustered.methods
    assert {path: path.stat().st_mtime_ns for path in clustered.path.rglob("*")} == before


def test_temperatures_are_means_over_splits(clustered):
    one = clustered.facts("fedavg", "clustering_temperature")
    assert one.shape == (2, 4)
    assert np.isfinite(one).all()
    table = one_shot.temperatures([one, one + 0.1])
    middle = one.mean(axis=0)
    assert [row[0] for row in table] == ["1", "2", "3", "4"]
    assert table[2] == [
        "3",
        f"{middle[2] + 0.05:.3f}",
        f"{middle[2]:.3f} to {middle[2] + 0.1:.3f}",
    ]


def test_scores_are_means_over_all_rounds(clustered):
    found = one_shot.row(clustered, "ocfl-kmeans", "published")
    rows = [rows_of(clustered, "ocfl-kmeans", seed) for seed in (0, 1)]
    for cell, name in zip(found[1:5], one_shot.AGREEMENT, strict=True):
        assert cell == f"{np.mean([[row[name] for row in one] for one in rows]):.2f}"
    last = [one[-1]["clusters_used"] for one in rows]
    assert found[5] == f"[{last[0]}, {last[1]}]"
    first = [next(r["round"] for r in one if r["clusters_used"] > 1) for one in rows]
    assert found[6] == f"{first[0]}, {first[1]}"
    personal = 100 * np.mean([[row["macro_f1"] for row in one] for one in rows])
    assert found[7:] == [f"{personal:.1f}", "–", "–", "published"]
    assert one_shot.row(clustered, "fedavg", "")[5:7] == ["[1, 1]", "–, –"]


def test_published_scores_are_of_fifteen_clients():
    assert one_shot.published("scl", "overlapping-balanced", 15) == "0.21 / 0.31 / 0.57"
    assert one_shot.published("scl", "overlapping-balanced", 30) == "–"
    assert one_shot.published("fedavg", "overlapping-balanced", 15) == "–"


def test_bytes_are_those_of_rounds_with_tests_and_of_the_last(supported):
    found = support.row(supported, "faacl", {"faacl": (75.12, 4, "20.4")})
    rows = [rows_of(supported, "faacl", seed) for seed in (0, 1)]
    sent = [[(r["bytes_down"] + r["bytes_up"]) / 1e6 for r in one] for one in rows]
    tested = [
        [mb for r, mb in zip(one, mbs, strict=True) if r["facts"].get("support_tests", 0) > 0]
        for one, mbs in zip(rows, sent, strict=True)
    ]
    assert all(tested)
    parts = ([mbs[0] for mbs in tested], [np.mean(m) for m in tested], [max(m) for m in tested])
    assert found[4] == " / ".join(f"{np.mean(part):.1f}" for part in parts)
    assert found[5] == f"{np.mean([one[-1] for one in sent]):.1f}"
    assert (found[2], found[7]) == ("75.1 [4]", "20.4")
    accuracies = [100 * np.mean([r["accuracy"] for r in one[-3:]]) for one in rows]
    error = np.std(accuracies, ddof=1) / 2**0.5
    assert found[1].startswith(f"{np.mean(accuracies):.1f} ± {error:.1f} [")
    plain = support.row(supported, "fedavg", {})
    assert (plain[2], plain[4], plain[8]) == ("–", "–", "–")


def test_edges_are_counted_by_the_groups_of_their_clusters(supported):
    graph = nx.DiGraph()
    for client, cluster, group in (("a", "one", 0), ("b", "two", 1), ("c", "two", 1)):
        graph.add_node(client, kind="client", group=group)
        graph.add_edge(client, cluster, kind="member")
    graph.add_edge("one", "two", kind="support", p_value=0.05)
    for seed in (0, 1):
        path = supported.path / "faacl" / f"seed-{seed}" / "support.graphml"
        assert path.is_file()
        nx.write_graphml(graph, path)
    assert support.supports(supported, "faacl") == "1 / 0, 1 / 0"


def test_tables_are_markdown(clustered, supported, capsys, monkeypatch):
    for module, run in ((one_shot, clustered), (support, supported)):
        monkeypatch.setattr(module, "finished", lambda *_, run=run: RunFolder.read(run.path))
    one_shot.main(splits=("separate-balanced",))
    support.main(scenarios=("a1",))
    text = capsys.readouterr().out
    assert re.search(r"\*\*separate-balanced\*\*, 15 clients, 4 rounds, seeds 0, 1", text)
    assert re.search(r"\| ocfl-kmeans +\|.*\| 0\.96 / 0\.96 / 0\.96 +\|", text)
    assert re.search(r"\*\*A1\*\*, 4 rounds, seeds 0, 1, epsilon 0\.5, alpha 0\.1", text)
    assert re.search(r"\| faacl +\|.*\| 101\.1, then 20\.4 +\|", text)
