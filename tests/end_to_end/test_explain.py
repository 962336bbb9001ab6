"""`bcfl explain` on a small run."""

import json
import re
import shutil
from types import SimpleNamespace

import numpy as np
import pytest
from typer.testing import CliRunner

from experiments.cli import app
from experiments.commands.explain import _trains_with, spark
from experiments.reports.client_report import Peer


def explain(*arguments):
    return CliRunner().invoke(app, ["explain", *map(str, arguments)])


def rounds(folder, method):
    text = (folder / method / "seed-3" / "metrics.jsonl").read_text()
    return [json.loads(line) for line in text.splitlines()]


def test_a_client_report_has_all_its_parts(whole):
    folder, _ = whole
    result = explain(folder, "--client", 2, "--method", "bcfl-mht-4")
    assert result.exit_code == 0, result.output
    lines = result.stdout.splitlines()
    assert lines[0] == "bcfl-mht-4, seed 3, after 6 of 6 rounds"
    assert "client-02, true group" in result.stdout
    for part in ("data", "where", "how sure", "trains with", "gains"):
        assert sum(line.startswith(f"{part} ") for line in lines) == 1
    assert re.search(r"^data +30 train and 10 test samples", result.stdout, re.MULTILINE)
    assert re.search(r"what serves it +\d+\.\d +\d+\.\d{3}$", result.stdout, re.MULTILINE)
    assert "a run of fedavg beside it would show" in result.stdout
    assert "\x1b" not in result.stdout


def test_beliefs_of_peers_are_told_apart_from_their_share_of_all_rounds():
    peers = [Peer("client-10", 1, 0.784, 0.62), Peer("c", 1, 0.001, 0.0)]
    report = SimpleNamespace(peers=peers, group=None, filtered=np.ones((6, 2)), concepts="")
    assert _trains_with(report) == [
        "1 of 2 other clients",
        "             believed  all rounds",
        "  client-10      78%         62%   group 1",
        "  believed: probability after round 6; all rounds: mean weight of the kept hypotheses "
        "that join them",
    ]


def test_without_a_client_all_are_in_a_table_that_adds_up(whole):
    folder, _ = whole
    result = explain(folder, "--method", "bcfl-mht-4")
    found = re.findall(
        r"^client-\d+ +\d+ +(\d|–) +\d+ +\S+ +\S+ +(\d+\.\d) ", result.stdout, re.MULTILINE
    )
    last = rounds(folder, "bcfl-mht-4")[-1]
    assert len(found) == 8
    mean = sum(float(accuracy) for _, accuracy in found) / 8
    assert mean == pytest.approx(100 * last["accuracy"], abs=0.1)
    sizes = [sum(cluster == str(k) for cluster, _ in found) for k in range(2)]
    assert sizes == last["cluster_sizes"]
    table = [line.split() for line in result.stdout.splitlines() if line.startswith("client-")]
    entropies = [float(row[5]) for row in table]
    assert entropies == sorted(entropies, reverse=True)


def test_the_best_of_several_methods_is_shown_with_a_note(whole):
    result = explain(whole[0], "--client", "client-00")
    assert "note: best method of seed 3 by ARI and accuracy; --method shows bcfl-m" in result.stdout


@pytest.mark.parametrize(
    ("options", "message"),
    [
        (("--client", "client-8"), "unknown client 'client-8'. Did you mean 'client-0"),
        (("--client", "99"), "The run has 8 clients, client-00 to client-07"),
        (("--client", "1", "--method", "wecfl"), "unknown method of this run 'wecfl'"),
        (("--client", "1", "--seed", "0"), "the run has no seed 0; it has 3"),
    ],
)
def test_errors_are_one_sentence(whole, options, message):
    result = explain(whole[0], *options)
    assert result.exit_code == 2
    assert message in result.stderr
    assert "Traceback" not in result.output


def test_a_folder_without_checkpoints_names_the_command_for_them(whole, tmp_path):
    copy = tmp_path / "run"
    shutil.copytree(whole[0], copy, ignore=shutil.ignore_patterns("checkpoints"))
    result = explain(copy, "--client", 1)
    assert result.exit_code == 2
    assert f"no checkpoint of seed 3 in {copy}; run it with: bcfl resume {copy}" in result.stderr


def test_the_report_shows_hypotheses_and_uncertainty(whole):
    page = (whole[0] / "report.html").read_text()
    assert "Association uncertainty" in page
    assert 'id="tree-line-bcfl-mh-3-r0h0"' in page
    assert 'id="ribbons-ribbon-bcfl-mh-3-r0h0"' in page
    named = "No client is uncertain" in page
    assert named or 'id="uncertainty-membership-' in page


def test_a_spark_is_as_high_as_the_probability_and_fits_a_line():
    matrix = np.array([[0, 0], [0, 1], [0.5, 0.5], [1, 0]], dtype=float)
    assert spark(matrix, 0) == "·▁▅█"
    assert len(spark(np.tile(matrix, (100, 1)), 0)) <= 60
