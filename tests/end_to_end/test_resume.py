"""Runs that are killed or interrupted, and go on to the same bits."""

import json
import os
import random
import shutil
import signal
import time

import pytest
from typer.testing import CliRunner

from experiments.cli import app

pytestmark = pytest.mark.usefixtures("plain_figures")

TOTAL = 12
DRAW = random.Random(2026)
MOMENTS = [0.0, round(DRAW.uniform(0.05, 0.95), 3)]


def rounds_done(folder):
    return sum(path.read_bytes().count(b"\n") for path in folder.glob("*/seed-*/metrics.jsonl"))


def wait_for(condition, process, seconds=240):
    until = time.monotonic() + seconds
    while not condition():
        assert process.poll() is None, process.stderr.read()
        assert time.monotonic() < until
        time.sleep(0.001)


def invoke(*arguments):
    return CliRunner().invoke(app, [str(argument) for argument in arguments])


def resume(folder, *options):
    return invoke("resume", folder, *options)


def snapshot(folder):
    return {
        path: (path.stat().st_mtime_ns, path.read_bytes())
        for path in folder.rglob("*")
        if path.is_file()
    }


@pytest.mark.parametrize("fraction", MOMENTS)
def test_a_killed_run_resumes_to_the_same_bits(fraction, tiny, whole, bcfl, read_metrics, tmp_path):
    folder = tmp_path / "run"
    process = bcfl.start("run", tiny, "--out", folder)
    if fraction == 0:
        wait_for((folder / "run.json").exists, process)
    else:
        wait_for(lambda: rounds_done(folder) >= int(fraction * TOTAL), process)
        time.sleep(random.Random(fraction).random() * 0.05)
    process.kill()
    process.communicate()
    assert process.returncode == -signal.SIGKILL
    assert rounds_done(folder) < TOTAL
    result = resume(folder)
    assert result.exit_code == 0, result.output
    assert read_metrics(folder) == read_metrics(whole[0])
    for path in whole[0].rglob("*.graphml"):
        assert (folder / path.relative_to(whole[0])).read_bytes() == path.read_bytes()


def test_killed_with_several_jobs_no_worker_survives(tiny, whole, bcfl, read_metrics, tmp_path):
    folder = tmp_path / "run"
    process = bcfl.start("run", tiny, "--out", folder, "--jobs", 2, start_new_session=True)
    wait_for(lambda: rounds_done(folder) >= 3, process)
    os.kill(process.pid, signal.SIGKILL)
    process.communicate()
    time.sleep(0.5)
    before = rounds_done(folder)
    time.sleep(0.5)
    assert rounds_done(folder) == before < TOTAL
    result = resume(folder, "--jobs", "1")
    assert result.exit_code == 0, result.output
    assert read_metrics(folder) == read_metrics(whole[0])


@pytest.mark.parametrize("jobs", [1, pytest.param(2, marks=pytest.mark.slow)])
def test_control_c_ends_the_round_and_names_the_command_to_resume(
    jobs, tiny, whole, bcfl, read_metrics, tmp_path
):
    folder = tmp_path / "run"
    process = bcfl.start("run", tiny, "--out", folder, "--jobs", jobs, start_new_session=True)
    wait_for(lambda: rounds_done(folder) >= 1, process)
    os.killpg(process.pid, signal.SIGINT)
    out, err = process.communicate(timeout=60)
    assert process.returncode == 130
    assert f"to resume: bcfl resume {folder}" in out
    assert "Traceback" not in out + err
    done = rounds_done(folder)
    assert 1 <= done < TOTAL
    for path in folder.glob("*/seed-*/metrics.jsonl"):
        last = path.read_text().splitlines()[-1]
        newest = max(path.parent.glob("checkpoints/round-*")).name
        assert newest == f"round-{json.loads(last)['round']:06d}"
    result = resume(folder, "--jobs", "1")
    assert result.exit_code == 0, result.output
    assert read_metrics(folder) == read_metrics(whole[0])


def test_resuming_a_finished_run_changes_no_file(whole):
    before = snapshot(whole[0])
    result = resume(whole[0])
    assert result.exit_code == 0, result.output
    assert "is finished; nothing to do" in result.output
    assert snapshot(whole[0]) == before


def test_missing_results_of_a_finished_run_are_rewritten(whole, tmp_path):
    folder = tmp_path / "copy"
    shutil.copytree(whole[0], folder)
    (folder / "summary.json").unlink()
    (folder / "report.html").unlink()
    assert resume(folder).exit_code == 0
    assert (folder / "summary.json").read_bytes() == (whole[0] / "summary.json").read_bytes()
    assert (folder / "report.html").is_file()


def test_a_damaged_checkpoint_ends_with_advice(whole, tmp_path):
    folder = tmp_path / "copy"
    shutil.copytree(whole[0], folder)
    pair = folder / "bcfl-mht-4" / "seed-3"
    (pair / "hypotheses.graphml").unlink()
    newest = max(pair.glob("checkpoints/round-*"))
    (newest / "state.json").write_text('{"version": 1, "sta')
    result = resume(folder)
    assert result.exit_code == 2
    assert str(newest) in result.output
    assert "delete this folder" in result.output
    assert "Traceback" not in result.output
    shutil.rmtree(newest)
    assert resume(folder).exit_code == 0


def change_first_line(pair):
    path = pair / "metrics.jsonl"
    path.write_text(path.read_text().replace('"round": 1', '"round": 7', 1))


@pytest.mark.parametrize(
    "damage",
    [
        change_first_line,
        pytest.param(
            lambda pair: (shutil.rmtree(pair / "checkpoints"), (pair / "metrics.jsonl").unlink()),
            marks=pytest.mark.slow,
        ),
    ],
    ids=["changed", "gone"],
)
def test_damaged_rounds_are_left_out_everywhere_and_resume_says_what_to_delete(
    damage, whole, tmp_path
):
    folder, page = shutil.copytree(whole[0], tmp_path / "run"), tmp_path / "page.html"
    pair = folder / "bcfl-mh-3" / "seed-3"
    damage(pair)
    remedy = f"delete {pair} to run this method and seed again from the beginning"
    result = resume(folder)
    assert (result.exit_code, "is finished" in result.output) == (2, False)
    assert remedy in result.stderr
    compared = invoke("compare", folder, "--html", page)
    assert compared.exit_code == 0
    assert [line.split()[0] for line in compared.stdout.splitlines()[1:3]] == [
        "bcfl-mht-4",
        "Scores",
    ]
    (warning,) = (line for line in compared.stderr.splitlines() if "warning" in line)
    assert warning.startswith("bcfl: warning: left out: ")
    assert warning.endswith(remedy)
    assert invoke("report", folder).exit_code == 0
    for written in (page, folder / "report.html"):
        assert f"{remedy}." in written.read_text()
    assert "bcfl-mht-4, seed 3" in invoke("explain", folder).stdout
    told = invoke("explain", folder, "--method", "bcfl-mh-3").stderr
    assert told.count(remedy) == 1
    shutil.rmtree(pair)
    assert resume(folder).exit_code == 0
    assert (folder / "bcfl-mh-3/seed-3/graph.graphml").is_file()


def test_a_missing_method_is_told_and_runs_again(whole, read_metrics, tmp_path):
    folder = shutil.copytree(whole[0], tmp_path / "run")
    shutil.rmtree(folder / "bcfl-mh-3")
    compared = invoke("compare", folder)
    assert f"bcfl-mh-3, seed 3 has 0 of 6 rounds in {folder}; to run" in compared.stderr
    assert "bcfl-mh-3" not in compared.stdout
    assert resume(folder).exit_code == 0
    assert read_metrics(folder) == read_metrics(whole[0])


@pytest.mark.parametrize("command", ["resume", "report", "compare"])
@pytest.mark.parametrize("text", ["nope", "[]", "{}", '{"scenario": "tiny"}'])
def test_a_changed_summary_is_told_with_its_remedy(command, text, whole, tmp_path):
    folder = shutil.copytree(whole[0], tmp_path / "run")
    (folder / "summary.json").write_text(text)
    result = invoke(command, folder)
    assert (result.exit_code, result.stdout) == (2, "")
    assert "summary.json isn't as it was written: " in result.stderr
    assert f"delete it, and `bcfl resume {folder}` writes it again" in result.stderr
