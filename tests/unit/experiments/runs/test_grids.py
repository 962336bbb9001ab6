"""Grids: all variants run, one is chosen by held-out samples, and the files say so."""

import json
import tomllib

import pytest
import tomli_w
from typer.testing import CliRunner

from experiments.cli import app
from experiments.runs.grids import choices

pytestmark = pytest.mark.usefixtures("plain_figures")

TABLE = {
    "methods": ["fedavg", "ifca"],
    "data": {"dataset": "optdigits"},
    "partition": {"kind": "rotated", "clients": 8, "groups": 2, "samples_per_client": 30},
    "model": {"name": "linear"},
    "training": {"local_steps": 5},
    "federation": {"rounds": 2},
}
VARIANTS = ("ifca@num_clusters=1", "ifca@num_clusters=2")


@pytest.fixture(scope="module")
def ran(tmp_path_factory):
    folder = tmp_path_factory.mktemp("grid")
    (folder / "own.toml").write_text(tomli_w.dumps(TABLE))
    arguments = ["run", folder / "own.toml", "--grid", "ifca.num_clusters=1,2", "--device", "cpu"]
    out = folder / "run"
    result = CliRunner().invoke(app, [*map(str, arguments), "--out", str(out)])
    assert result.exit_code == 0, result.output
    return out, result.output


def test_every_variant_is_a_run_of_its_own_that_can_be_done_again(ran):
    out, _ = ran
    summary = json.loads((out / "summary.json").read_text())
    assert list(summary["methods"]) == ["fedavg", *VARIANTS]
    for name in VARIANTS:
        config = tomllib.loads((out / name / "seed-0" / "config.toml").read_text())
        assert config["methods"] == {name: {"calibration": 0.2}}
        assert (out / name / "seed-0" / "held_out.json").is_file()
    assert not (out / "fedavg" / "seed-0" / "held_out.json").exists()


def test_the_chosen_variant_is_that_of_least_held_out_loss_and_is_reported(ran):
    out, output = ran
    summary = json.loads((out / "summary.json").read_text())
    scores = {name: summary["methods"][name]["held_out_nll"]["mean"] for name in VARIANTS}
    best = min(VARIANTS, key=lambda name: scores[name])
    chosen = summary["chosen"]["ifca"]
    assert (chosen["variant"], chosen["scores"]) == (best, scores)
    assert f"chosen of 2 variants of ifca by held-out samples: {best}" in output
    assert "ifca: 20% of each client's training samples are set aside" in output
    report = (out / "report.html").read_text()
    assert "Variants of ifca" in report
    assert f"{scores[best]:.3f}" in report


def test_nothing_is_chosen_where_a_variant_was_not_scored():
    scored = {"held_out_nll": {"mean": 0.5}, "held_out_accuracy": {"mean": 0.9}}
    assert choices({"ifca@num_clusters=2": scored, "ifca@num_clusters=3": {}}) == ()
    assert choices({"ifca@num_clusters=2": scored, "wecfl": {}}) == ()
    (one,) = choices({"ifca@num_clusters=2": scored, "ifca@num_clusters=3": scored})
    assert (one.method, one.variant) == ("ifca", "ifca@num_clusters=2")
