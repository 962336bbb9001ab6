"""`bcfl uncertainty` on a small run."""

import json
import re
import shutil
import xml.etree.ElementTree as ET

import pytest
from typer.testing import CliRunner

from experiments.cli import app
from experiments.reports.report import write_report

pytestmark = pytest.mark.usefixtures("plain_figures")


@pytest.fixture(scope="module")
def folder(whole, tmp_path_factory):
    copy = tmp_path_factory.mktemp("uncertainty") / "run"
    shutil.copytree(whole[0], copy)
    return copy


def uncertainty(*arguments):
    return CliRunner().invoke(app, ["uncertainty", *map(str, arguments)])


def test_tables_numbers_and_page_agree(folder):
    before = write_report(folder).read_text()
    result = uncertainty(folder)
    assert result.exit_code == 0, result.output
    rows = json.loads((folder / "uncertainty.json").read_text())
    kinds = [(row["method"], row["predictive"], row["tuned"]) for row in rows]
    expected = [("plug-in", False), ("plug-in", True), ("linearised", True)]
    assert kinds == [(m, *kind) for m in ("bcfl-mht-4", "bcfl-mh-3") for kind in expected]
    page = (folder / "uncertainty.html").read_text()
    for row in rows:
        label = f"{row['predictive']}{', tuned' if row['tuned'] else ''}"
        assert (row["prior_precision"] is None) == (row["predictive"] == "plug-in")
        scores = row["scores"]
        shown = f"{100 * scores['accuracy']:.1f} +{scores['nll']:.3f} +{scores['brier']:.3f}"
        assert re.search(rf"^{row['method']} +{label} +{shown} ", result.stdout, re.MULTILINE)
        assert f"<td>{scores['ece']:.3f}</td>" in page
        assert f"<td>{scores['noise_auroc']:.3f}</td>" in page
    assert "bcfl uncertainty --no-tune shows the other predictions untuned" in page
    assert "± half a 95 % interval" in page
    pictures = re.findall(r"<svg.*?</svg>", page, re.DOTALL)
    assert len(pictures) == 4
    for picture in pictures:
        ET.fromstring(picture.replace("xlink:href", "href"))
    after, link = write_report(folder).read_text(), 'href="uncertainty.html"'
    assert (link in before, "<code>bcfl uncertainty</code>" in before) == (False, True)
    assert (link in after, "<code>bcfl uncertainty</code>" in after) == (True, False)
    assert "tuned   bcfl-mh-3 linearised: prior " in result.stdout
    assert "\x1b" not in result.stdout


def test_clients_can_be_scored_one_by_one(folder):
    result = uncertainty(
        folder, "--method", "bcfl-mh-3", "--predictive", "plug-in", "--by", "client", "--no-tune"
    )
    assert result.exit_code == 0, result.output
    rows = json.loads((folder / "uncertainty.json").read_text())
    assert "The rows called tuned" not in (folder / "uncertainty.html").read_text()
    assert [row["part"] for row in rows] == [f"client-0{i}" for i in range(8)]
    assert {(row["method"], row["tuned"]) for row in rows} == {("bcfl-mh-3", False)}
    assert len(re.findall(r"^bcfl-mh-3 +plug-in +client-0\d ", result.stdout, re.MULTILINE)) == 16


def test_a_run_whose_rounds_are_not_all_done_is_noted(folder, tmp_path):
    unfinished = tmp_path / "run"
    shutil.copytree(folder, unfinished)
    (unfinished / "bcfl-mh-3" / "seed-3" / "hypotheses.graphml").unlink()
    result = uncertainty(
        unfinished, "--method", "bcfl-mh-3", "--predictive", "plug-in", "--no-tune"
    )
    note = "bcfl-mh-3, seed 3: not all of its rounds are done; the newest is scored"
    assert f"note: {note}" in result.stdout
    assert note in (unfinished / "uncertainty.html").read_text()


@pytest.mark.figures
def test_the_same_folder_gives_the_same_files(folder):
    options = (folder, "--method", "bcfl-mh-3", "--predictive", "monte-carlo", "--no-tune")
    before = []
    for _ in range(2):
        assert uncertainty(*options).exit_code == 0
        before.append([(folder / f"uncertainty.{end}").read_bytes() for end in ("json", "html")])
    assert before[0] == before[1]


def test_errors_are_one_sentence(folder, tmp_path):
    result = uncertainty(folder, "--method", "wecfl")
    assert result.exit_code == 2
    assert "unknown method of this run 'wecfl'" in result.stderr
    empty = tmp_path / "run"
    shutil.copytree(folder, empty, ignore=shutil.ignore_patterns("checkpoints"))
    result = uncertainty(empty)
    assert result.exit_code == 2
    assert f"there is no checkpoint of bcfl-mht-4, bcfl-mh-3 in {empty}" in result.stderr


def test_a_damaged_method_is_left_out_and_told(folder, tmp_path):
    damaged = shutil.copytree(folder, tmp_path / "run")
    options = ("--predictive", "plug-in", "--no-tune")
    for method in ("bcfl-mh-3", "bcfl-mht-4"):
        rounds = damaged / method / "seed-3" / "metrics.jsonl"
        rounds.write_text(rounds.read_text().replace('"round": 1', '"round": 7', 1))
        result = uncertainty(damaged, *options)
        if method == "bcfl-mh-3":
            assert result.exit_code == 0, result.output
            assert "warning: left out: " in result.stderr
            rows = json.loads((damaged / "uncertainty.json").read_text())
            assert {row["method"] for row in rows} == {"bcfl-mht-4"}
    assert result.exit_code == 2
    assert str(rounds) in result.stderr
    assert f"delete {rounds.parent} to run this method and seed again" in result.stderr


def test_a_value_at_the_end_of_those_tried_is_told_as_on_the_page(folder, monkeypatch):
    from experiments.reports import uncertainty_page

    monkeypatch.setattr(uncertainty_page, "edge_warnings", lambda results: ["at an end"])
    assert "warning: at an end" in uncertainty(folder).stdout.splitlines()
    assert "at an end" in (folder / "uncertainty.html").read_text()
