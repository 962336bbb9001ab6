"""Ablations are scenarios with variants, of which the best on held-out samples is marked."""

import pytest
import tomli_w

from experiments.config.variants import Grid
from experiments.runs.run_folder import RunFolder
from experiments.studies import ablations
from experiments.studies.ablations import ABLATIONS, Ablation


@pytest.mark.parametrize("name", ABLATIONS)
def test_variants_are_options_that_the_method_has(name):
    ablation = ABLATIONS[name]
    scenario = ablation.prepared()
    number = 1
    for grid in ablation.grids:
        number *= len(grid.values)
    assert len(scenario.methods) == number
    for label in scenario.methods:
        options = scenario.options(label)
        assert (options.get("calibration", 0) > 0) == ablation.chosen
        assert {grid.option for grid in ablation.grids} <= set(options)


def test_the_variant_that_held_out_samples_choose_is_bold(tmp_path, monkeypatch, capsys):
    table = {
        "name": "tiny",
        "methods": ["fedavg"],
        "data": {"dataset": "optdigits"},
        "partition": {"kind": "rotated", "clients": 6, "samples_per_client": 60},
        "model": {"name": "mlp", "hidden": [8]},
        "training": {"local_steps": 4},
        "federation": {"num_clusters": 2},
    }
    path = tmp_path / "tiny.toml"
    path.write_text(tomli_w.dumps(table))
    grids = (Grid("wecfl-cks", "sharing", (0.01, 50.0)),)
    tiny = Ablation(str(path), grids, "strength of sharing", chosen=True)
    monkeypatch.setattr(ablations, "ABLATIONS", {"tiny": tiny})
    ablations.main(["tiny"], (0, 1), 3, tmp_path)
    run = RunFolder.read(tmp_path / "tiny")
    scores = {
        label: run.summary[label]["held_out_nll"]["mean"]
        for label in ("wecfl-cks@sharing=0.01", "wecfl-cks@sharing=50.0")
    }
    best = min(scores, key=scores.get).partition("@")[2]
    shown = ablations.rows(run)
    assert [row[0] for row in shown if row[0].startswith("**")] == [f"**{best}**"]
    accuracy = run.summary["wecfl-cks@sharing=0.01"]["accuracy"]["mean"]
    assert shown[0][1].startswith(f"{100 * accuracy:.1f} ± ")
    printed = capsys.readouterr().out
    assert "**wecfl-cks: strength of sharing**" in printed
    assert f"**{best}**" in printed
