"""Tables are run, resumed and written beside what was printed."""

import json
import re
from dataclasses import replace

import pytest
from typer.testing import CliRunner

from experiments.cli import app
from experiments.published import figures, reading
from experiments.published.carry_out import Machine, Reporter, carry_out
from experiments.published.comparison import compare, part_of
from experiments.published.figures import draw
from experiments.published.formats import markdown, remarks
from experiments.published.overview import overview, paper_page, signed
from experiments.published.results import Results
from experiments.published.table import overlaid
from experiments.published.units import units_of
from experiments.runs.runner import RunCallbacks


def invoke(*words):
    return CliRunner().invoke(app, ["reproduce", *map(str, words)])


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
def test_columns_of_one_heading_share_a_panel(miniature, content, kind):
    both = [{**content["columns"][0], "name": name, "title": f"A, {name}"} for name in ("x", "y")]
    metrics = [{"name": name, "measured": name} for name in ("macro_f1", "accuracy")]
    figure = {"kind": kind, "metrics": ["macro_f1", "accuracy"], "titles": ["F1", "Acc"]}
    figure |= {"pooled": True} if kind == "curves" else {}
    changed = {"columns": both, "metrics": metrics, "figures": [figure], "printed": {}}
    table = reading.from_table("tiny/1", {**content, **changed, "broken": []})
    results, reporter = Results(miniature), Reporter(callbacks=quiet)
    carry_out(units_of(table, "small", [0], rows=["FedAvg"]), results, Machine(), reporter)
    comparison = compare(table, "small", results, {"optdigits": ""}, [0])
    (path,) = draw(comparison, results, miniature, [0])
    assert path.read_text().count(">A: ") == {"segments": 1, "curves": 2}[kind]


def test_a_column_whose_data_lack_a_domain_does_not_run(miniature, monkeypatch):
    gaps = {"optdigits": "domain dvd of optdigits"}
    monkeypatch.setattr("experiments.published.units.data_here", lambda folder: gaps)
    shown = invoke("tiny/1", "--results", miniature)
    assert shown.exit_code == 1
    assert "Data not here: domain dvd of optdigits (column `label`)" in shown.output
    assert "not here: domain dvd of optdigits, tissuemnist" in invoke().output


def test_what_a_method_logs_is_kept_as_a_curve(miniature):
    results, reporter = Results(miniature), Reporter(callbacks=quiet)
    (unit,) = units_of(reading.load("tiny/1"), "small", [0], ["label"], ["FedAvg"])
    carry_out([unit], results, Machine(), reporter)
    assert len(results.find(unit).curve("temperature")) == 2


def test_a_part_of_a_table_is_shown_and_the_whole_is_written(miniature):
    only = ["--write", "--columns", "label", "--rows", "FedAvg", "--results", miniature]
    assert invoke("tiny/1", "--results", miniature, "--seeds", "0").exit_code == 0
    shown = invoke("tiny/1", *only)
    assert shown.exit_code == 0
    lines = [line for line in shown.output.splitlines() if line.startswith("| ")]
    assert len(lines) == 2
    assert lines[1].startswith("| Label skew | FedAvg | 85.00 ± 0.24 | ")
    assert all(text not in shown.output for text in ("typing error", "no program", "not here"))
    whole = (miniature / "tiny" / "1" / "small.md").read_text()
    assert all(text in whole for text in ("typing error", "no program", "Data not here"))


def test_asking_for_a_seed_writes_the_table_with_all_its_seeds(miniature):
    only = ["--columns", "label", "--rows", "FedAvg", "--results", miniature]
    assert invoke("tiny/1", *only).exit_code == 0
    page = miniature / "tiny" / "1" / "small.md"
    before = page.read_text()
    assert "| Label skew | FedAvg | 85.00 ± 0.24 | " in before
    assert " | 2 |" in before
    shown = invoke("tiny/1", *only, "--seeds", "0")
    assert " | 1 |" in shown.output
    assert page.read_text() == before


def test_all_tables_are_written_at_each_scale_with_results(miniature):
    only = ["--columns", "label", "--rows", "FedAvg", "--seeds", "0", "--results", miniature]
    for scale in ("paper", "small"):
        assert invoke("tiny/1", *only, "--scale", scale).exit_code == 0
    page = miniature / "tiny" / "1" / "paper.md"
    page.unlink()
    assert invoke("--all", "--write", "--results", miniature).exit_code == 0
    assert page.is_file()
    overview = (miniature / "README.md").read_text()
    assert "2 of 2 tables and figures have results" in overview
    for link in re.findall(r"\]\(([\w./-]+)\)", overview):
        assert (miniature / link).is_file()


def test_notes_on_columns_stand_beside_these_columns(miniature, content):
    notes = ["on all", {"text": "on labels", "columns": ["label"]}]
    table = reading.from_table("tiny/1", content | {"notes": notes})
    whole = compare(table, "small", Results(miniature), {})
    for columns, texts in {(): notes_in(notes), ("absent",): ["on all"]}.items():
        found = list(remarks(part_of(whole, columns)))
        assert [text for text in found if text.startswith("on ")] == texts
    with pytest.raises(ValueError, match="columns of an entry of notes names 'lable'"):
        reading.from_table("tiny/1", content | {"notes": [{"text": "a", "columns": ["lable"]}]})


def notes_in(entries):
    return [entry if isinstance(entry, str) else entry["text"] for entry in entries]


def contents(folder):
    return {path: path.read_bytes() for path in folder.rglob("*") if path.is_file()}


def test_showing_writes_nothing_and_writing_runs_nothing(miniature):
    only = ["--results", miniature, "--seeds", "0", "--columns", "label", "--rows", "FedAvg"]
    assert invoke("tiny/1", *only).exit_code == 0
    (miniature / "tiny" / "1" / "small.md").unlink()
    before = contents(miniature)
    for names in (["tiny/1"], ["--all"]):
        shown = invoke(*names, "--show", "--results", miniature)
        assert shown.exit_code == 0
        assert "| Label skew | FedAvg | 85.00 ± 0.24 | " in shown.output
        assert contents(miniature) == before
    assert invoke("--all", "--write", "--results", miniature).exit_code == 0
    written = {path.name for path in contents(miniature)}
    assert {"small.md", "README.md", "tiny.md"} <= written
    assert len([name for name in written if "seed-" in name]) == 1
    assert "give --show or --write" in invoke("tiny/1", "--show", "--write").output


def test_rows_are_shown_by_their_method_and_a_part_may_be_empty(miniature, content):
    table = reading.from_table("tiny/1", content)
    whole = compare(table, "small", Results(miniature), {"optdigits": ""})
    part = part_of(whole, rows=["ifca"])
    assert [(line.column.name, line.name) for line in part.lines] == [
        ("label", "IFCA & more"),
        ("absent", "IFCA & more"),
    ]
    assert "- (a) known to be wrong in print" in markdown(part)
    assert part_of(whole) == whole
    columns = [{**content["columns"][0], "rows": ["FedAvg"]}, content["columns"][1]]
    fewer = reading.from_table("tiny/1", content | {"columns": columns, "printed": {}})
    nothing = compare(fewer, "small", Results(miniature), {"optdigits": ""})
    assert part_of(nothing, ["label"], ["Unknown"]).lines == ()


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
    assert first.splitlines()[2].startswith("2 of 2 tables and figures have results.")


def test_the_page_of_a_paper_opens_with_its_summary(miniature, content):
    comparison = compare(reading.load("tiny/1"), "small", Results(miniature), {"optdigits": ""})
    (miniature / "tiny").mkdir(parents=True)
    (miniature / "tiny" / "summary.md").write_text("All is well.\n")
    lines = paper_page([comparison], miniature).splitlines()
    assert lines[:5] == ["# A miniature", "", "[Overview](README.md)", "", "All is well."]
    assert lines[6].startswith("No value is in bold")


def test_a_table_without_printed_values_has_no_columns_for_them(miniature, content):
    content = content | {"printed": {}, "broken": [], "figures": []}
    nothing = compare(
        reading.from_table("tiny/1", content), "small", Results(miniature), {"optdigits": ""}
    )
    assert "| column | method | Acc ours | seeds |\n" in markdown(nothing)


def test_the_order_of_methods_leaves_out_misprints(miniature, content):
    rows = [{"name": f"m{i}", "method": "fedavg"} for i in range(6)]
    printed = {f"m{i}": [str(80 + i)] for i in range(6)}
    broken = [{"rows": ["m5"], "reason": "it is a typing error"}]
    content = content | {"rows": rows, "printed": {"label": printed}}
    table = reading.from_table("tiny/1", content | {"broken": broken, "figures": []})
    results = Results(miniature)
    for unit in units_of(table, "small", [0], ["label"]):
        accuracy = {"m0": 0.83, "m1": 0.82, "m2": 0.84, "m3": 0.85, "m4": 0.86, "m5": 0.1}
        content = {"setting": unit.setting, "seconds": 1.0, "seed": 0}
        results.write(unit, content | {"metrics": {"accuracy": accuracy[unit.row.name]}})
    comparison = compare(table, "small", results, {"optdigits": ""}, [0])
    page = overview([comparison, replace(comparison, table=replace(table, name="tiny/again"))])
    assert "| Acc | +2.00 | 0.90 | Digits |" in page
    assert "2 of 2 tables and figures have results." in page
    assert (
        "can be compared in 1 of their columns, where columns of the same runs count once" in page
    )
    assert "is 0.90 (median), from 0.90 to 0.90, and at least 0.7 in 1." in page
    alone = [
        line if line.row.name == "m0" else replace(line, seeds=()) for line in comparison.lines
    ]
    page = overview([replace(comparison, lines=tuple(alone))])
    assert f"| small | 0/{len(table.columns)} | 1 |" in page


def test_a_difference_that_rounds_to_zero_has_no_sign():
    assert [signed(value, 1) for value in (-0.04, 0.0, 0.06, -2)] == ["0.0", "0.0", "+0.1", "-2.0"]


def test_the_variant_of_a_grid_is_chosen_by_held_out_samples(miniature, content):
    content = content | {"grid": {"objective.learning_rate": [0.1, 0.2]}}
    table = reading.from_table("tiny/1", content)
    results = Results(miniature)
    for unit in units_of(table, "small", [0, 1], ["label"], ["FedAvg"]):
        rate = unit.row.options["objective"]["learning_rate"]
        metrics = {
            "accuracy": 0.9 - rate,
            "held_out_nll": {0.1: 0.7, 0.2: 0.6 + unit.seed / 10}[rate],
        }
        results.write(unit, {"setting": unit.setting, "seconds": 1.0, "metrics": metrics})
    first, second, *_ = compare(table, "small", results, {"optdigits": ""}, [0, 1]).lines
    assert first.row.name == "FedAvg, objective.learning_rate=0.2"
    assert first.cells[0].mean == pytest.approx(70)
    assert first.cells[0].printed.mean == 85
    assert (second.row.name, second.seeds) == ("IFCA & more", ())
    notes = list(remarks(compare(table, "small", results, {"optdigits": ""}, [0, 1])))
    assert "Grid of `objective.learning_rate`: 0.1, 0.2" in notes
    assert "Chose 0.2, so that a larger value may be better: FedAvg (Label skew)" in notes
    assert not any(note.startswith("Chose 0.1") for note in notes)
    named = reading.from_table("tiny/1", content | {"grid": {"linkage": ["average", "single"]}})
    notes = list(remarks(compare(named, "small", results, {"optdigits": ""}, [0])))
    assert "Grid of `linkage`: average, single" in notes


def test_samples_that_clients_hold_out_are_scored(miniature, content):
    content = content | {"grid": {"calibration": [0.2]}}
    results, reporter = Results(miniature), Reporter(callbacks=quiet)
    (unit,) = units_of(reading.from_table("tiny/1", content), "small", [0], ["label"], ["FedAvg"])
    carry_out([unit], results, Machine(), reporter)
    assert results.find(unit).value("held_out_nll") > 0


def test_units_of_one_data_set_read_it_once(miniature, monkeypatch):
    from experiments import datasets

    read, load = [], datasets.load
    monkeypatch.setattr(datasets, "load", lambda *of, **how: read.append(of) or load(*of, **how))
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
        (["tiny/1", "--seeds", "1,0,1"], "--seeds must differ from each other, got 1 more"),
        (["tiny/1", "--all"], "give --all or tiny/1"),
        (["tiny/fig-1"], "'tiny/fig-1' is not here (Figure 1): it is a drawing"),
    ],
)
def test_mistakes_are_named(miniature, words, message):
    shown = invoke(*words, "--results", miniature)
    assert shown.exit_code == 2
    assert message in shown.output


def test_names_are_read_in_upper_case_too():
    assert reading.chosen(["BCFL/Fig-2", "CAM/1"]) == ("bcfl/fig-2", "cam/1")


def test_the_overview_says_why_figures_are_left_out(miniature):
    comparison = compare(reading.load("tiny/1"), "small", Results(miniature), {"optdigits": ""})
    assert "Not here:\n\n- Figure 1: it is a drawing\n" in overview([comparison])


def test_the_list_says_what_can_run_and_what_is_done(miniature):
    shown = invoke("LIST", "--results", miniature)
    assert shown.output == invoke("--results", miniature).output
    assert shown.exit_code == 0
    assert "small 0/8, paper 0/8; columns that can run: 1/2; not here: tissuemnist" in shown.output


@pytest.mark.parametrize(("num_seeds", "marked"), [(5, False), (6, True)])
def test_a_best_value_is_bold_where_seeds_can_tell(miniature, num_seeds, marked):
    table, results, seeds = reading.load("tiny/1"), Results(miniature), range(num_seeds)
    for unit in units_of(table, "small", seeds, ["label"]):
        accuracy = {"FedAvg": 0.8, "IFCA & more": 0.9}[unit.row.name] + unit.seed / 100
        content = {"setting": unit.setting, "seconds": 1.0, "seed": unit.seed}
        results.write(unit, content | {"metrics": {"accuracy": accuracy}})
    comparison = compare(table, "small", results, {"optdigits": ""}, seeds)
    assert [line.cells[0].best for line in comparison.lines[:3]] == [False, marked, False]
    assert ("**92.50 ± 1.87**" in markdown(comparison)) == marked
    assert any(note.startswith("Bold: ") for note in remarks(comparison)) == marked
    assert ("No value is in bold" in paper_page([comparison], miniature)) != marked


def with_seeds(folder, of_fedavg, of_ifca):
    """A table whose methods have results with some seeds, accuracies of 50 % and the seed."""
    table, results = reading.load("tiny/1"), Results(folder)
    for unit in units_of(table, "small", range(9), ["label"]):
        if unit.seed in (of_fedavg if unit.row.name == "FedAvg" else of_ifca):
            content = {"setting": unit.setting, "seconds": 1.0, "seed": unit.seed}
            scores = {"metrics": {"accuracy": 0.5 + unit.seed / 100}, "curves": {"accuracy": [0.5]}}
            results.write(unit, content | scores)
    return table, results


@pytest.mark.parametrize(
    ("of_fedavg", "of_ifca", "kept", "left_out"),
    [
        ([0, 1, 2], [1, 2, 3], ([1, 2], [1, 2]), 2),
        ([0, 1, 2], [], ([0, 1, 2], []), 0),
        ([0, 1], [2, 3], ([0, 1], [2, 3]), 0),
    ],
)
def test_methods_are_compared_by_the_seeds_that_all_have(
    miniature, of_fedavg, of_ifca, kept, left_out
):
    table, results = with_seeds(miniature, of_fedavg, of_ifca)
    comparison = compare(table, "small", results, {"optdigits": ""}, range(9))
    fedavg, ifca, *_ = comparison.lines
    assert (list(fedavg.seeds), list(ifca.seeds)) == kept
    assert fedavg.cells[0].values == pytest.approx([50 + seed for seed in kept[0]])
    told = f"Left out: {left_out} results with seeds that not all measured methods" in markdown(
        comparison
    )
    assert (comparison.left_out, told) == (left_out, left_out > 0)


def test_rows_that_are_asked_for_are_shown_with_their_own_seeds(miniature):
    table, results = with_seeds(miniature, [0, 1, 2], [1])
    found = {"optdigits": ""}
    comparison = compare(table, "small", results, found, range(9), ["FedAvg"])
    assert (comparison.lines[0].seeds, comparison.left_out) == ((0, 1, 2), 0)
    assert compare(table, "small", results, found, range(9)).lines[0].seeds == (1,)


def test_curves_are_of_the_seeds_that_are_compared(miniature, monkeypatch):
    table, results = with_seeds(miniature, [0, 1, 2], [1, 2, 3])
    comparison = compare(table, "small", results, {"optdigits": ""}, range(9))
    drawn, line = [], figures._line

    def counted(axes, values, *rest):
        drawn.append(len(values))
        line(axes, values, *rest)

    monkeypatch.setattr(figures, "_line", counted)
    draw(comparison, results, miniature, range(9))
    assert drawn == [2, 2]


@pytest.mark.parametrize(("most", "note"), [(6, "bands of"), (1, "the table has")])
def test_curves_have_one_legend_and_bands_where_there_are_few(miniature, monkeypatch, most, note):
    table, results = with_seeds(miniature, [0, 1, 2], [1, 2, 3])
    comparison = compare(table, "small", results, {"optdigits": ""}, range(9))
    monkeypatch.setattr(figures, "MOST_BANDS", most)
    (path, *_) = draw(comparison, results, miniature, range(9))
    text = path.read_text()
    assert [text.count(f">{name}<") for name in ("FedAvg", "round")] == [1, 1]
    assert f">means over seeds; {note} one standard deviation<" in text
    assert ("FillBetween" in text) == (most == 6)


def test_a_comparison_keeps_the_order_of_its_table(miniature):
    table = reading.load("tiny/1")
    comparison = compare(table, "small", Results(miniature), {"optdigits": ""})
    assert [line.row.name for line in comparison.lines][:3] == ["FedAvg", "IFCA & more", "Unknown"]
    assert not comparison.has_results


def quiet(scenario):
    from contextlib import nullcontext

    return nullcontext(RunCallbacks())
