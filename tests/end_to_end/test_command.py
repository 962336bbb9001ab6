"""Whole runs through the command line, and what they leave behind."""

import csv
import json
import math
import shlex
import shutil
import statistics
import tomllib

import networkx as nx
import pytest
from typer.testing import CliRunner

from experiments.cli import app

pytestmark = pytest.mark.usefixtures("plain_figures")


def invoke(*arguments):
    return CliRunner().invoke(app, [str(argument) for argument in arguments])


def test_a_run_ends_with_a_table_and_next_steps(whole):
    folder, out = whole
    lines = out.splitlines()
    assert lines[0].startswith("bcfl run tiny   optdigits · 8 clients · 2 hidden groups · rotated")
    assert any(line.startswith("bcfl-mht-4  round 6/6   acc") for line in lines)
    assert any(line.startswith("bcfl-mh-3") and " / " in line for line in lines)
    assert f"report   {folder / 'report.html'}" in lines
    assert not any(line.startswith("warning") for line in lines)
    assert "\x1b" not in out
    assert {path.name for path in folder.iterdir()} == {
        *("run.json", "summary.json", "rounds.csv", "report.html", "bcfl-mht-4", "bcfl-mh-3"),
    }


def test_priors_that_outweigh_all_data_are_a_warning(tiny, tmp_path):
    """The literal recursion ends, and says what happened; defaults have nothing to say."""
    literal = ("--set", "bcfl-g.fusion=literal", "--set", "bcfl-g.memory=accumulate")
    options = ("--methods", "bcfl-g", "--rounds", 15, "--out", tmp_path / "run")
    result = invoke("run", tiny, *options, *literal)
    assert result.exit_code == 0, result.output
    (warning,) = (line for line in result.output.splitlines() if line.startswith("warning: "))
    assert "that data no longer move" in warning


@pytest.mark.parametrize(("method", "status"), [("fedavg", 1), ("fedavg,local", 0)])
def test_a_run_in_which_no_model_was_trained_fails(tiny, tmp_path, method, status):
    """What else there is to see is written and printed all the same."""
    diverging = ("--set", "fedavg.objective.learning_rate=1e30")
    options = ("--methods", method, "--rounds", 2, "--out", tmp_path / "run")
    result = invoke("run", tiny, *options, *diverging)
    assert result.exit_code == status, result.output
    assert "failed   all clients in all rounds of fedavg: no model was trained" in result.output
    assert "lower Objective(learning_rate=...), which is learning_rate of" in result.output
    assert (tmp_path / "run/report.html").is_file()


def test_next_steps_work_as_they_are_printed(whole):
    lines = invoke("resume", whole[0]).output.splitlines()
    (line,) = [line for line in lines if line.startswith("clients  bcfl explain ")]
    assert invoke(*shlex.split(line)[2:]).exit_code == 0


def test_the_summary_follows_from_the_metrics(whole):
    folder, _ = whole
    summary = json.loads((folder / "summary.json").read_text())
    assert summary["scenario"] == "tiny"
    assert list(summary["methods"]) == ["bcfl-mht-4", "bcfl-mh-3"]
    for method, metrics in summary["methods"].items():
        text = (folder / method / "seed-3" / "metrics.jsonl").read_text()
        rounds = [json.loads(line) for line in text.splitlines()]
        assert [row["round"] for row in rounds] == [1, 2, 3, 4, 5, 6]
        for name in ("accuracy", "macro_f1", "ari", "ami", "nll", "ece"):
            value = statistics.fmean(row[name] for row in rounds[3:])
            assert metrics[name]["values"] == [pytest.approx(value, rel=1e-12)]
            assert metrics[name]["mean"] == metrics[name]["values"][0]
            assert metrics[name]["std"] == 0
        for name in ("trainings_requested", "trainings_run"):
            assert metrics[name]["values"] == [sum(row[name] for row in rounds)]
        phases = ("train", "score", "server", "evaluate")
        total = math.fsum(row["seconds"][phase] for row in rounds for phase in phases)
        assert metrics["seconds"]["mean"] == pytest.approx(total)


def test_the_table_of_rounds_agrees_with_the_metrics(whole):
    folder, _ = whole
    with (folder / "rounds.csv").open(newline="") as file:
        table = list(csv.DictReader(file))
    assert [(r["method"], r["seed"], r["round"]) for r in table] == [
        (method, "3", str(n)) for method in ("bcfl-mht-4", "bcfl-mh-3") for n in range(1, 7)
    ]
    for method in ("bcfl-mht-4", "bcfl-mh-3"):
        text = (folder / method / "seed-3" / "metrics.jsonl").read_text()
        for line, row in zip(
            text.splitlines(), [r for r in table if r["method"] == method], strict=True
        ):
            kept = json.loads(line)
            for name in ("accuracy", "macro_f1", "nll", "ari", "bytes_down", "participants"):
                assert float(row[name]) == kept[name]


def test_the_description_says_how_to_run_it_again(whole, tiny):
    folder, _ = whole
    described = json.loads((folder / "run.json").read_text())
    assert shlex.split(described["command"]) == ["bcfl", "run", str(tiny)]
    assert described["methods"] == ["bcfl-mht-4", "bcfl-mh-3"]
    assert described["seeds"] == [3]
    assert described["scenario"]["federation"]["rounds"] == 6
    assert {"python", "bcfl", "torch", "numpy"} <= set(described["versions"])
    assert described["machine"]["cpus"] >= 1
    assert (described["data"]["groups"], described["data"]["group_names"]) == (
        2,
        ["rotated by 0°", "rotated by 180°"],
    )
    config = tomllib.loads((folder / "bcfl-mht-4" / "seed-3" / "config.toml").read_text())
    assert config == described["scenario"] | {"methods": ["bcfl-mht-4"]}


def test_the_configuration_of_one_method_runs_it_again(whole, tmp_path, read_metrics):
    folder, _ = whole
    result = invoke(
        "run", folder / "bcfl-mht-4" / "seed-3" / "config.toml", "--out", tmp_path / "again"
    )
    assert result.exit_code == 0, result.output
    again = read_metrics(tmp_path / "again")
    assert again == {"bcfl-mht-4/seed-3": read_metrics(folder)["bcfl-mht-4/seed-3"]}


def test_jobs_change_no_bit(tiny, whole, tmp_path, read_metrics):
    folder = tmp_path / "run"
    result = invoke("run", tiny, "--jobs", 2, "--out", folder)
    assert result.exit_code == 0, result.output
    assert len(read_metrics(folder)) == 2
    assert read_metrics(folder) == read_metrics(whole[0])


def test_a_second_run_into_the_folder_is_refused(whole, tiny):
    result = invoke("run", tiny, "--out", whole[0])
    assert result.exit_code == 2
    assert result.output == (
        f"bcfl: {whole[0]} holds a run already; to resume it: bcfl resume {whole[0]}; to start "
        "another, give a new folder\n"
    )


@pytest.mark.parametrize("kind", ["clients", "clusters", "hypotheses"])
def test_graphs_in_every_format(whole, tmp_path, kind):
    pair = ("--method", "bcfl-mh-3", "--kind", kind)
    stored = invoke("graph", whole[0], *pair, "--format", "graphml")
    graph = nx.parse_graphml(stored.output)
    as_json = json.loads(invoke("graph", whole[0], *pair, "--format", "json").output)
    assert set(nx.node_link_graph(as_json, edges="edges").nodes) == set(graph.nodes)
    gexf = tmp_path / "graph.gexf"
    result = invoke("graph", whole[0], *pair, "--format", "gexf", "--out", gexf)
    assert f"{graph.number_of_nodes()} nodes, {graph.number_of_edges()} edges" in result.output
    again = nx.read_gexf(gexf)
    assert dict(again.degree) == dict(graph.degree)


def test_weak_edges_are_left_out(whole):
    def edges(least):
        pair = ("--method", "bcfl-mh-3", "--min-probability", least)
        return nx.parse_graphml(invoke("graph", whole[0], *pair).output).edges(data="probability")

    every = list(edges(0))
    assert len(list(edges(0.6))) == sum(p >= 0.6 for _, _, p in every) < len(every)


def test_the_graph_is_that_of_the_best_method_and_its_standard_output_the_graph_alone(whole):
    chosen = invoke("graph", whole[0])
    assert chosen.exit_code == 0, chosen.output
    best = chosen.stderr.removeprefix("note: ").split(",")[0]
    assert best in ("bcfl-mht-4", "bcfl-mh-3")
    assert "--method shows" in chosen.stderr
    named = invoke("graph", whole[0], "--method", best)
    assert chosen.stdout == named.stdout
    assert not named.stderr


def test_a_graph_of_no_seed_or_method_of_the_run_is_refused(whole):
    wrong = invoke("graph", whole[0], "--method", "bcfl-mht-4", "--seed", 9)
    assert wrong.exit_code == 2
    assert "the run has no seed 9; it has 3" in wrong.output
    misspelt = invoke("graph", whole[0], "--method", "bcfl-mh-4")
    assert misspelt.exit_code == 2
    assert "did you mean" in misspelt.output.lower()


def test_runs_are_compared_in_one_table(whole, tmp_path):
    other = shutil.copytree(whole[0], tmp_path / "other")
    result = invoke("compare", whole[0], other)
    assert result.exit_code == 0, result.output
    names = [line.split()[0] for line in result.output.splitlines()]
    methods = ["bcfl-mht-4", "bcfl-mh-3"]
    rows = [f"{letter}/{method}" for letter in "AB" for method in methods]
    assert names[:9] == ["A:", "B:", "method", *rows, "Scores", "No"]
    latex = invoke("compare", whole[0], "--latex").stdout
    assert latex.startswith(r"\begin{tabular}")
    assert latex.rstrip().endswith(r"\end{tabular}")
    (other / "summary.json").unlink()
    unfinished = invoke("compare", whole[0], other)
    assert unfinished.exit_code == 2
    assert f"bcfl resume {other}" in unfinished.output


def test_the_report_is_written_again(whole, tmp_path):
    import shutil

    folder = tmp_path / "copy"
    shutil.copytree(whole[0], folder)
    (folder / "report.html").unlink()
    result = invoke("report", folder)
    assert result.exit_code == 0, result.output
    assert result.output.strip() == str(folder / "report.html")
    assert (folder / "report.html").is_file()


def test_runs_of_unequal_length_are_told(tiny, whole, tmp_path):
    short, page = tmp_path / "short", tmp_path / "new" / "page.html"
    assert invoke("run", tiny, "--rounds", 2, "--out", short).exit_code == 0
    result = invoke("compare", whole[0], short, "--html", page)
    told = "The runs differ in their number of rounds (A 6, B 2), and so in scores and costs."
    assert told in result.stdout.splitlines()
    assert told in page.read_text()
