"""Pages in headless Chromium: no message, no request, nothing that axe-core reports; they work.

Needs Chromium, Node, and the packages puppeteer-core and axe-core in the folder that
BCFL_NODE_MODULES names; skipped where one of them is missing.
"""

import json
import os
import re
import shutil
import subprocess
from collections import Counter
from pathlib import Path

import numpy as np
import pytest
from typer.testing import CliRunner

import experiments
from bcfl import Federation, methods
from experiments import datasets, models, partitions
from experiments.cli import app
from experiments.config.scenario import from_table
from experiments.launch import start
from experiments.reports.compare_page import render
from experiments.reports.page import render_page
from experiments.reports.report import write_report
from experiments.reports.results_table import results_table
from experiments.runs.plan import Plan
from experiments.runs.run_folder import RunFolder
from experiments.runs.runner import Experiment, RunCallbacks

MODULES = Path(os.environ.get("BCFL_NODE_MODULES", "node_modules")).resolve()
CHROMIUM = shutil.which("chromium") or shutil.which("google-chrome")
NODE = shutil.which("node")
SCRIPT = Path(__file__).with_name("check_page.mjs")
LEAST_TEXT = 11.95
"""CSS pixels: 9 pt."""
pytestmark = pytest.mark.skipif(
    not (CHROMIUM and NODE and (MODULES / "puppeteer-core").is_dir()),
    reason="needs chromium, node, and puppeteer-core and axe-core in BCFL_NODE_MODULES",
)


def seen(page):
    command = [NODE, SCRIPT, MODULES, CHROMIUM, page]
    done = subprocess.run(command, capture_output=True, text=True, check=True, timeout=600)
    found = json.loads(done.stdout)
    assert found["messages"] == []
    assert found["requests"] == []
    for layout in found["layouts"]:
        assert layout["violations"] == []
        assert layout["overflow"] <= 0
        assert layout["cut"] == [], "texts that the edge of their figure cuts"
        assert layout["black"] == [], "shapes that no theme colours"
        assert layout["silent"] == [], "texts that the middle of their shape does not show"
        assert layout["smallest"] is None or layout["smallest"][0] >= LEAST_TEXT, layout
        for table in layout["tables"]:
            assert layout["width"] < 1280 or table["wide"] <= table["room"], table
    backgrounds = {(each["scheme"], each["background"]) for each in found["layouts"]}
    assert len(backgrounds) == 2
    used = found["used"]
    assert used["contents"] == used["headings"]
    assert used["current"] == [used["first"]], "the section at the top of the window is marked"
    assert sorted(used["ascending"]) == sorted(used["unsorted"])
    numbers = [float(text.strip("▲ ").partition("±")[0]) for text in used["ascending"]]
    assert numbers == sorted(numbers)
    assert used["descending"] == used["ascending"][::-1]
    assert used["sort"] == "ascending", "the first click has sorted the best first"
    assert used["third"] == used["unsorted"], "the third click restores the order"
    assert used["thirdSort"] is None
    last = len(used["unsorted"]) - 1
    assert used["missing"] == [last, last, 0], "missing values are last in both directions"
    focused, escaped = used["focused"], used["escaped"]
    assert not focused["hidden"]
    assert focused["by"] == "tip"
    assert focused["text"] == focused["meaning"]
    assert escaped["hidden"]
    assert escaped["by"] is None
    for figure in used["figures"]:
        assert figure["name"] not in ("", "Figure")
        assert figure["stop"] == (figure["marks"] > 0 or figure["scrolls"])
        assert (figure["told"] is not None) == (figure["marks"] > 0), "arrow keys reach its marks"
        assert figure["reached"] == (figure["marks"] > 0)
    assert len({figure["name"] for figure in used["figures"]}) == len(used["figures"])
    for table in used["scrolled"]:
        assert abs(table["shift"]) < 1, "the names of rows stay where a table is scrolled"
        assert table["by"] == 0 or table["share"] < 0.5, table
    assert used["tapped"] == {"sort": 1, "hidden": True}
    assert all(used["touched"]), "a tap tells what it hits, in whichever figure the last one was"
    assert used["toggled"] == dict(backgrounds)["dark"]
    assert used["broken"] == [], "what pages of paper may divide, or a heading part from its text"
    return used


def are_seen(told):
    """A client is marked in all figures that have clients, above its own colour and outline."""
    kinds = Counter((mark["figure"], mark["kind"]) for mark in told["marks"])
    assert kinds["graph", "ring"] == kinds["moves", "edge"] == kinds["moves", "line"] == 2
    assert kinds["partition", "ring"] > 0
    for mark in told["marks"]:
        assert mark["width"] >= 2, mark
    others = [mark["stroke"] for mark in told["marks"] if mark["kind"] != "line"]
    assert Counter(others)[told["ink"]] == len(others) - 1, "all but the one that is pointed at"


def test_a_report_can_be_used(whole):
    used = seen(write_report(whole[0]))
    last, first, middle = used["rounds"]
    assert last["text"] == "6 of 6"
    assert last["layers"] == 0
    assert first["layers"] == middle["layers"] == 2, "one graph for each method"
    assert first["now"] > 0
    assert "as believed after the last round" in last["caption"]
    assert "in the kept hypotheses after round" in first["caption"]
    assert [each["picked"] for each in used["rounds"]] == ["believed", "kept", "kept"]
    kept = used["kept"]
    assert (kept["picked"], kept["layers"]) == ("kept", 2), "the last round shows the same quantity"
    assert all("round 6: cluster" in tip for tip in kept["tips"]), "so do the texts of clients"
    assert all(re.search(r"cluster \d.*, probability", tip) for tip in used["believedTips"])
    method, rank = used["picked"]["value"].split("/")
    alone = f"of {method} in the hypothesis of rank {int(rank) + 1} alone"
    assert alone in used["picked"]["caption"], "the other panels show all kept hypotheses"
    assert used["paper"][0] > 0
    assert used["paper"][1] == 0, "the round of the slider is marked on the screen alone"
    assert used["restored"] == {"round": True, "layers": 0, "others": 0, "now": 0}
    assert used["client"]["text"].startswith("client-")
    assert used["client"]["same"] == 2, "the client in each graph"
    are_seen(used["client"])
    assert used["line"]["text"].startswith("client-")
    are_seen(used["line"])
    assert used["round"]["text"].startswith("round 1, accuracy")
    for name in ("client", "line", "round", "cell"):
        assert used[name]["seen"], "at the lower edge of the window, texts are above the pointer"
    row, column, value = used["cell"]["text"].split("\n")
    assert ", cluster " in row
    assert ", cluster " in column
    assert -1 <= float(value.removeprefix("cosine ").replace("−", "-")) <= 1


STREAM = {
    "name": "drift",
    "methods": ["fedavg", "ifca"],
    "seeds": [1],
    "data": {"dataset": "optdigits"},
    "partition": {"kind": "stream", "clients": 6, "steps": 3, "order": "multi-task"},
    "model": {"name": "mlp", "hidden": [8]},
    "training": {"local_steps": 8},
    "federation": {"rounds": 6, "num_clusters": 2},
}


def test_a_stream_shows_the_concepts_of_the_round_and_marks_leave_digits_free(tmp_path):
    scenario = from_table(STREAM)
    plan = Plan(scenario=scenario, device="cpu", threads=1, jobs=1, command="bcfl run drift")
    setup = Experiment(scenario=scenario, device="cpu")
    start(plan, tmp_path / "run", setup, RunCallbacks())
    used = seen(write_report(tmp_path / "run"))
    assert used["tile"]["digits"] == 18
    assert used["tile"]["covered"] == 0, "frames leave the digits on tiles free"
    frames = [mark["stroke"] for mark in used["tile"]["marks"] if mark["kind"] == "frame"]
    assert Counter(frames)[used["tile"]["ink"]] == 2, "all but the one that is pointed at"
    last, first, middle = used["rounds"]
    steps = {"6 of 6, time step 2": last, "1 of 6, time step 0": first}
    for text, shown in (steps | {"3 of 6, time step 1": middle}).items():
        assert shown["text"] == text
        concepts = setup.partition(1).groups_at(int(text[-1]))
        for drawn in shown["clients"]:
            concept = concepts[drawn["client"]]
            assert drawn["tip"].endswith(f"\nconcept {concept}")
            legend = shown["legend"][f"graph-concept-{concept}"]
            assert {key: drawn[key] for key in legend} == legend
    assert {"round 1: cluster" in drawn["tip"] for drawn in first["clients"]} == {True}


def test_an_uncertainty_page_can_be_used(whole, tmp_path):
    folder = shutil.copytree(whole[0], tmp_path / "run")  # others read the run without the page
    command = ["uncertainty", str(folder), "--predictive", "plug-in", "--predictive", "probit"]
    done = CliRunner().invoke(app, command)
    assert done.exit_code == 0, done.output
    assert "client" not in seen(folder / "uncertainty.html")


def test_a_comparison_can_be_used(whole, tmp_path):
    page = tmp_path / "compare.html"
    page.write_text(render([whole[0], whole[0]]), encoding="utf-8")
    assert "client" not in seen(page)


def test_a_report_of_runs_from_python_can_be_used(tmp_path):
    clients = partitions.two_stage_dirichlet(
        datasets.load("optdigits"), groups=3, clients=10, alpha=(0.1, 10), seed=0
    )
    model, names = models.mlp(64, 8, 10), ("fedavg", "ifca", "bcfl-mh-3")
    runs = {
        name: Federation(clients, model=model, method=methods.build(name), seed=0).run(rounds=2)
        for name in names
    }
    assert "client" in seen(experiments.report(runs, tmp_path / "report.html"))


METHODS = (
    "fedavg",
    "centralised-groups",
    "wecfl@num_clusters=2",
    "bcfl-g-fedopt",
    "bcfl-mh-6",
    "bcfl-mht-8",
    "fedavg-finetune",
)
SCORES = {"accuracy": 0.87, "macro_f1": 0.73, "weighted_f1": 0.8, "ari": 0.9, "ami": 0.9}
ERRORS = {"nll": 0.49, "ece": 0.13}
COSTS = {
    "seconds": 1234.5,
    "trainings_requested": 12345.0,
    "trainings_run": 11234.0,
    "communication": 11.2,
    "storage": 15.7,
    "computation": 11.3,
    "bytes_down": 123.4e6,
    "bytes_up": 123.4e6,
}


def test_a_table_with_marks_spreads_and_long_names_fits(tmp_path):
    random = np.random.default_rng(0)
    summary = {}
    for place, method in enumerate(METHODS):
        factor = 1.1 if method == "bcfl-g-fedopt" else 0.9 + place / 100
        middles = {k: v * factor for k, v in SCORES.items()} | COSTS
        middles |= {k: v / factor for k, v in ERRORS.items()}
        values = {k: v * random.uniform(0.999, 1.001, 10) for k, v in middles.items()}
        summary[method] = {
            k: {"mean": float(v.mean()), "std": float(v.std()), "values": v.tolist()}
            for k, v in values.items()
        }
    rounds = {method: {seed: [] for seed in range(10)} for method in METHODS}
    run = RunFolder(path=tmp_path, description={}, summary=summary, rounds=rounds)
    table = results_table(run)
    assert sum(cell.best for cell in table.rows["bcfl-g-fedopt"]) == len(SCORES) + len(ERRORS)
    values = {"scenarios": [], "warnings": [], "notes": [], "runs": [("A", "wide", "")]}
    values |= {"table": table, "agreement": None, "styled": False}
    values |= {"group": "true group", "averaged": "Scores are means."}
    values["pictures"] = dict.fromkeys(("curves", "scores", "cost"))
    page = tmp_path / "page.html"
    page.write_text(render_page("compare.html.jinja", "wide", **values), encoding="utf-8")
    seen(page)
