"""What is reported of a fine-tuned method is the mean of fine-tuned rounds alone.

Ma (2023), section 7.4.4: clients fine-tune the final model; tables give means of the last rounds.
"""

import json

import numpy as np
import pytest
from typer.testing import CliRunner

from experiments.cli import app

SCENARIO = """
name = "finetuned"
methods = ["fedavg", "fedavg-finetune"]
seeds = [0]
[data]
dataset = "optdigits"
[partition]
kind = "two-stage-dirichlet"
groups = 2
clients = 6
samples_per_client = 40
[model]
name = "mlp"
hidden = [8]
[training]
local_steps = 20
learning_rate = 0.1
[federation]
rounds = 5
num_clusters = 2
"""


def test_reported_scores_are_of_finetuned_models(tmp_path):
    scenario, folder = tmp_path / "finetuned.toml", tmp_path / "out"
    scenario.write_text(SCENARIO)
    result = CliRunner().invoke(app, ["run", str(scenario), "--out", str(folder)])
    if result.exit_code != 0:
        pytest.fail(f"status {result.exit_code}: {result.output}")
    files = [folder / name / "seed-0" / "metrics.jsonl" for name in ("fedavg", "fedavg-finetune")]
    plain, tuned = ([json.loads(line) for line in file.read_text().splitlines()] for file in files)
    rounds = [two for one, two in zip(plain, tuned, strict=True) if one["nll"] != two["nll"]]
    if not rounds:
        pytest.fail("no round was tested after fine-tuning")
    summary = json.loads((folder / "summary.json").read_text())["methods"]["fedavg-finetune"]
    for score in ("nll", "accuracy"):
        right = np.mean([row[score] for row in rounds[-3:]])
        assert summary[score]["mean"] == pytest.approx(right, rel=1e-9)
