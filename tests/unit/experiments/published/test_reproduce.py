import json
import re
import tomllib
from dataclasses import replace

import pytest
from typer.testing import CliRunner

from experiments.cli import app
from experiments.published import reading
from experiments.published.carry_out import Machine, Reporter, carry_out
from experiments.published.comparison import compare
from experiments.published.figures import draw
from experiments.published.overview import overview
from experiments.published.results import Results
from experiments.published.table import SCALES, overlaid
from experiments.published.units import seeds_of, units_of
from experiments.runs.runner import RunCallbacks

MINIATURE = """
paper = "A miniature"
item = "Table 1"
caption = "Digits"
small_scale = "two rounds"

[[metrics]]
name = "Acc"
measured = "accuracy"

[scenario]
seeds = [0, 1]
data.dataset = "optdigits"
partition = { kind = "two-stage-dirichlet", groups = 2, clients = 4, alpha = [0.1, 10] }
model = { name = "mlp", hidden = [8] }
training = { local_steps = 2, learning_rate = 0.1 }
federation = { rounds = 20, num_clusters = 2 }

[small]
federation.rounds = 2

[[columns]]
name = "label"
title = "Label skew"

[[columns]]
name = "absent"
title = "Absent"
scenario.data.dataset = "tissuemnist"

[[rows]]
name = "FedAvg"
method = "fedavg"

[[rows]]
name = "IFCA & more"
method = "ifca"
options = { num_clusters = 3 }

[[rows]]
name = "Unknown"
note = "no program is known"

[printed.label]
FedAvg = ["85.00 ± 0.24"]
"IFCA & more" = ["83"]
Unknown = ["80.1"]

[printed.absent]
FedAvg = ["50.0"]

[[broken]]
rows = ["IFCA & more"]
reason = "it is a typing error"

[[figures]]
kind = "curves"
metrics = ["accuracy"]
titles = ["accuracy, %"]

[[figures]]
kind = "bars"
metrics = ["accuracy"]
titles = ["accuracy, %"]
"""


@pytest.fixture
def miniature(tmp_path, monkeypatch):
    folder = tmp_path / "published"
    (folder / "tiny").mkdir(parents=True)
    (folder / "tiny" / "1.toml").write_text(MINIATURE)
    (folder / "tiny" / "fig-2.toml").write_text(
        'of = "tiny/1"\nitem = "Figure 2"\ncolumns = ["label"]\nrows = ["FedAvg"]\n'
    )
    monkeypatch.setattr(reading, "FOLDER", folder)
    return tmp_path / "results"


def invoke(*words):
    return CliRunner().invoke(app, ["reproduce", *map(str, words)])


@pytest.mark.parametrize("name", reading.names())
def test_a_table_of_a_paper_builds_all_its_scenarios_and_methods(name):
    table = reading.load(name)
    for unit in units_of(table, "paper", seeds=[0]):
        unit.scenario().build(unit.label)
    small = units_of(table, "small", seeds=[0])
    for unit in {unit.column.name: unit for unit in small}.values():
        unit.scenario()
    assert len({unit.name for unit in small}) == len(small)
    assert all(seeds_of(table, scale) for scale in SCALES)


@pytest.mark.parametrize(
    ("name", "column", "row", "metric", "text"),
    [
        ("bcfl/1", "fashion-mnist", "BCFL-MH-3", "F1", "93.70 ± 3.77"),
        ("bcfl/1", "cifar-10", "WeCFL", "Acc", "72.91 ± 0.25"),
        ("bcfl/1", "digits-five", "BCFL-MH-6-W", "Acc", "96.22 ± 0.00"),
        ("bcfl/7", "amazon-review", "BCFL-C-3", "F1", "88.3"),
        ("bcfl/8", "k2", "BCFL-MH-6", "Acc", "87.21"),
        ("bcfl/9", "k6", "BCFL-MH-3", "F1", "83.25"),
        ("ma2023/3.1", "cifar-10-3-2-class-k10", "WeCFL", "F1", "50.65 ± 2.15"),
        ("ma2023/3.4", "pathmnist-2-class-k5", "FeSEM", "Acc", "64.46 ± 6.12"),
        ("ma2023/4.3", "fashion-mnist-dirichlet-0.1-k10", "WeCFL-CON-para", "F1", "81.7 ± 1.02"),
        ("ma2023/5.2", "tissuemnist-dirichlet-0.1-10-k10", "IFCA-CKS", "Acc", "34.54 ± 26.08"),
        ("ma2023/6.4", "pathmnist-dirichlet-0.1-k5", "WeCFL-CON&CKS", "Acc", "76.45 ± 1.6"),
        ("ma2023/7.3", "fashion-mnist-dirichlet-0.1-k10", "IFCA-CAM", "Acc", "95.7 ± 1.19"),
        ("ma2023/7.5", "cifar-10", "FedAvg-Finetune+IFCA-Finetune", "F1", "39.51 ± 1.94"),
        ("ma2023/7.6", "cifar-10", "IFCA-CAM, 50+50", "Communication", "6x"),
        ("cam/2", "cifar-10-2-class-k10", "FeSEM-CAM", "Acc", "69.88 ± 1.7"),
        ("ocfl/1", "mnist-15-separate-balanced", "OCFL-AFF", "AMI", "0.27"),
        ("ocfl/1", "fashion-mnist-30-overlapping-imbalanced", "BCL", "COM", "0.0036"),
        ("ocfl/1", "cifar-10-30-separate-imbalanced", "OCFL-HDB", "RAND", "0.88"),
        ("faacl/3.1", "mnist", "FAACL", "Acc", "96.12 ± 0.99"),
        ("faacl/3.2", "sent140", "FedDrift", "Clusters", "14"),
        ("faacl/3.5", "cifar-10", "FedAvg", "Acc", "52.91 ± 0.41"),
        ("faacl/3.7", "a2", "FAACL", "Mean", "20.4"),
        ("faacl/4.4", "fashion-mnist-a2", "FedWeIT", "Acc", "64.28 ± 0.37"),
    ],
)
def test_values_are_as_printed(name, column, row, metric, text):
    assert reading.load(name).cell(column, row, metric).text == text


def test_a_table_is_run_resumed_and_written_in_three_formats(miniature):
    first = invoke("tiny/1", "--results", miniature, "--columns", "label", "--seeds", "0")
    assert first.exit_code == 0, first.output
    folder = miniature / "tiny" / "1"
    units = sorted((folder / "small").glob("*.json"))
    assert [path.name for path in units] == [
        "label--FedAvg--seed-0.json",
        "label--IFCA-more--seed-0.json",
    ]
    before = {path: path.read_bytes() for path in units}
    again = invoke("tiny/1", "--results", miniature)
    assert again.exit_code == 0
    assert {path: path.read_bytes() for path in units} == before
    assert len(list((folder / "small").glob("*.json"))) == 4
    unit = json.loads(before[units[0]])
    assert unit["command"].startswith("bcfl reproduce tiny/1 --scale small")
    assert str(miniature) not in units[0].read_text()
    assert len(unit["curves"]["accuracy"]) == 2
    text = (folder / "small.md").read_text()
    assert "| Label skew | FedAvg | 85.00 ± 0.24 | " in text
    assert "83<sup>a</sup>" in text
    assert "| Absent | FedAvg | 50.0 | data not here |" in text
    assert r"IFCA \& more & 83$^{a}$ & " in (folder / "small.tex").read_text()
    line = json.loads((folder / "small.json").read_text())["lines"][0]
    assert line["metrics"]["Acc"]["theirs"]["std"] == 0.24
    assert len(line["metrics"]["Acc"]["ours"]["values"]) == 2
    assert {path.name for path in folder.glob("*.svg")} == {
        "small-figure-1.svg",
        "small-figure-2.svg",
    }


@pytest.mark.parametrize("kind", ["segments", "curves"])
def test_columns_of_one_heading_share_a_panel(miniature, kind):
    content = tomllib.loads(MINIATURE)
    both = [{**content["columns"][0], "name": name, "title": f"A, {name}"} for name in ("x", "y")]
    metrics = [{"name": name, "measured": name} for name in ("macro_f1", "accuracy")]
    figure = {"kind": kind, "metrics": ["macro_f1", "accuracy"], "titles": ["F1", "Acc"]}
    figure |= {"pooled": True} if kind == "curves" else {}
    changed = {"columns": both, "metrics": metrics, "figures": [figure], "printed": {}}
    table = reading.from_table("tiny/1", {**content, **changed, "broken": []})
    results, reporter = Results(miniature), Reporter(callbacks=quiet)
    carry_out(units_of(table, "small", [0], rows=["FedAvg"]), results, Machine(), reporter)
    comparison = compare(table, "small", results, {"optdigits"}, [0])
    (path,) = draw(comparison, results, miniature, [0])
    assert path.read_text().count(">A: ") == {"segments": 1, "curves": 2}[kind]


def test_what_a_method_logs_is_kept_as_a_curve(miniature):
    results, reporter = Results(miniature), Reporter(callbacks=quiet)
    (unit,) = units_of(reading.load("tiny/1"), "small", [0], ["label"], ["FedAvg"])
    carry_out([unit], results, Machine(), reporter)
    assert len(results.find(unit).curve("temperature")) == 2


def test_a_figure_shares_the_results_of_its_table(miniature):
    assert invoke("tiny/fig-2", "--results", miniature).exit_code == 0
    assert (miniature / "tiny" / "1" / "small" / "label--FedAvg--seed-0.json").is_file()
    assert (miniature / "tiny" / "fig-2" / "small.md").is_file()


def test_an_overview_and_a_page_for_each_paper_are_written(miniature):
    assert invoke("--all", "--columns", "label", "--results", miniature).exit_code == 0
    first = (miniature / "README.md").read_text()
    assert "[All tables with results](tiny.md)" in first
    summary = next(line for line in first.splitlines() if line.startswith("| [Table 1]"))
    assert summary.split(" | ")[1:5] == ["small", "1/2", "4", "Acc"]
    page = (miniature / "tiny.md").read_text()
    assert "![Digits](tiny/1/small-figure-1.svg)" in page
    assert "| Label skew | FedAvg | 85.00 ± 0.24 | " in page
    assert "Absent" not in page


def test_the_order_of_methods_leaves_out_misprints(miniature):
    rows = [{"name": f"m{i}", "method": "fedavg"} for i in range(6)]
    printed = {f"m{i}": [str(80 + i)] for i in range(6)}
    broken = [{"rows": ["m5"], "reason": "it is a typing error"}]
    content = tomllib.loads(MINIATURE) | {"rows": rows, "printed": {"label": printed}}
    table = reading.from_table("tiny/1", content | {"broken": broken, "figures": []})
    results = Results(miniature)
    for unit in units_of(table, "small", [0], ["label"]):
        accuracy = {"m0": 0.83, "m1": 0.82, "m2": 0.84, "m3": 0.85, "m4": 0.86, "m5": 0.1}
        content = {"setting": unit.setting, "seconds": 1.0, "seed": 0}
        results.write(unit, content | {"metrics": {"accuracy": accuracy[unit.row.name]}})
    comparison = compare(table, "small", results, {"optdigits"}, [0])
    assert "| Acc | +2.00 | 0.90 | Digits |" in overview([comparison])


def test_the_variant_of_a_grid_is_chosen_by_held_out_samples(miniature):
    content = tomllib.loads(MINIATURE) | {"grid": {"objective.learning_rate": [0.1, 0.2]}}
    table = reading.from_table("tiny/1", content)
    results = Results(miniature)
    for unit in units_of(table, "small", [0, 1], ["label"], ["FedAvg"]):
        rate = unit.row.options["objective"]["learning_rate"]
        metrics = {
            "accuracy": 0.9 - rate,
            "held_out_nll": {0.1: 0.7, 0.2: 0.6 + unit.seed / 10}[rate],
        }
        results.write(unit, {"setting": unit.setting, "seconds": 1.0, "metrics": metrics})
    first, second, *_ = compare(table, "small", results, {"optdigits"}, [0, 1]).lines
    assert first.row.name == "FedAvg, objective.learning_rate=0.2"
    assert first.cells[0].mean == pytest.approx(70)
    assert first.cells[0].printed.mean == 85
    assert (second.row.name, second.seeds) == ("IFCA & more", ())


def test_samples_that_clients_hold_out_are_scored(miniature):
    content = tomllib.loads(MINIATURE) | {"grid": {"calibration": [0.2]}}
    results, reporter = Results(miniature), Reporter(callbacks=quiet)
    (unit,) = units_of(reading.from_table("tiny/1", content), "small", [0], ["label"], ["FedAvg"])
    carry_out([unit], results, Machine(), reporter)
    assert results.find(unit).value("held_out_nll") > 0


def test_units_of_one_data_set_read_it_once(miniature, monkeypatch):
    from experiments import datasets

    read, load = [], datasets.load
    monkeypatch.setattr(datasets, "load", lambda *of: read.append(of) or load(*of))
    units = units_of(reading.load("tiny/1"), "small", [0], ["label"])
    carry_out(units, Results(miniature), Machine(), Reporter(callbacks=quiet))
    assert read == [("optdigits", None)]


def test_methods_without_an_option_are_run_once_for_all_its_values(miniature):
    table = reading.load("tiny/1")
    results, reporter = Results(miniature), Reporter(callbacks=quiet)
    carry_out(units_of(table, "small", [0], ["label"], ["FedAvg"]), results, Machine(), reporter)
    other = replace(
        table, name="tiny/2", small=overlaid(table.small, {"federation": {"num_clusters": 3}})
    )
    fedavg, ifca = units_of(other, "small", [0], ["label"])
    assert results.is_done(fedavg)
    assert not results.is_done(ifca)


def test_a_unit_that_fails_is_recorded_and_the_others_go_on(miniature, monkeypatch):
    from experiments.published import carry_out as work

    def failing(setup, pair, *rest):
        if pair.method == "fedavg":
            raise RuntimeError("no memory at /home/anna/data")
        return run_pair(setup, pair, *rest)

    run_pair = work.run_pair
    monkeypatch.setattr(work, "run_pair", failing)
    shown = invoke("tiny/1", "--results", miniature, "--columns", "label", "--seeds", "0")
    assert shown.exit_code == 0
    unit = json.loads((miniature / "tiny/1/small/label--FedAvg--seed-0.json").read_text())
    assert unit["error"] == "RuntimeError: no memory at PATH"
    assert "| failed |" in (miniature / "tiny/1/small.md").read_text()


def test_nothing_made_is_an_exit_status(miniature):
    shown = invoke("tiny/1", "--results", miniature, "--columns", "absent")
    assert shown.exit_code == 1
    assert "data not here" in shown.output


@pytest.mark.parametrize(
    ("words", "message"),
    [
        (["tny/1"], "Did you mean 'tiny/1'?"),
        (["tiny/1", "--scale", "papr"], "Did you mean 'paper'?"),
        (["tiny/1", "--columns", "labl"], "Did you mean 'label'?"),
        (["tiny/1", "--rows", "FedAv"], "Did you mean 'FedAvg'?"),
        (["tiny/1", "--seeds", "x"], "--seeds must be whole numbers"),
    ],
)
def test_mistakes_are_named(miniature, words, message):
    shown = invoke(*words, "--results", miniature)
    assert shown.exit_code == 2
    assert message in shown.output


def test_the_list_says_what_can_run_and_what_is_done(miniature):
    shown = invoke("--results", miniature)
    assert shown.exit_code == 0
    assert "small 0/8, paper 0/8; columns that can run: 1/2; not here: tissuemnist" in shown.output


@pytest.mark.parametrize(
    ("change", "message"),
    [
        ({"colums": []}, "Did you mean 'columns'?"),
        ({"grid": {"mu": 0.1}}, "[grid] needs a list of values of 'mu', got 0.1"),
        ({"printed": {"lable": {}}}, "Did you mean 'label'?"),
        ({"printed": {"label": {"FedAvg": ["1", "2"]}}}, "needs 1 values, got 2"),
        ({"broken": [{"reason": "r", "rows": ["FedAv"]}]}, "Did you mean 'FedAvg'?"),
        (
            {"figures": [{"kind": "pie", "metrics": [], "titles": []}]},
            "must be curves, bars, segments",
        ),
        (
            {"figures": [{"kind": "segments", "metrics": ["ari"], "titles": ["ARI"]}]},
            "segments have two ends",
        ),
    ],
)
def test_a_file_with_a_mistake_is_refused(change, message):
    with pytest.raises(ValueError, match=re.escape(message)):
        reading.from_table("tiny/1", tomllib.loads(MINIATURE) | change)


def test_a_comparison_marks_the_best_and_keeps_the_order(miniature):
    table = reading.load("tiny/1")
    comparison = compare(table, "small", Results(miniature), {"optdigits"})
    assert [line.row.name for line in comparison.lines][:3] == ["FedAvg", "IFCA & more", "Unknown"]
    assert not comparison.has_results


def quiet(scenario):
    from contextlib import nullcontext

    return nullcontext(RunCallbacks())
