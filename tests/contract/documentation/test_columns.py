"""Every column of the tables of a run is explained."""

import re
from types import SimpleNamespace

import numpy as np
import pytest
from torch import nn

from bcfl import ClientData, Federation, Model, methods
from bcfl.analysis.rows import privacy_columns
from experiments.runs.summary import as_csv
from tests.contract.documentation.places import DOCS


@pytest.fixture(scope="module")
def columns():
    """The names that the page of columns explains: those of the first cells of its tables."""
    text = (DOCS / "columns.md").read_text("utf-8").partition("## Which file has which column")[0]
    cells = re.findall(r"^\| (`[^|]*`) \|", text, flags=re.MULTILINE)
    return {name for cell in cells for name in re.findall(r"`(\w+)`", cell)}


@pytest.mark.parametrize("likelihood", ["categorical", "gaussian", "bernoulli"])
def test_every_column_of_a_round_is_explained(columns, likelihood):
    random = np.random.default_rng(0)
    inputs = random.normal(size=(4, 12, 3)).astype(np.float32)
    targets = (inputs[..., :2] > 0).astype(np.float32)
    if likelihood == "categorical":
        targets = targets[..., 0].astype(np.int64)
    clients = [
        ClientData.from_arrays(f"c{i}", (x[:8], y[:8]), (x[8:], y[8:]), group=i % 2)
        for i, (x, y) in enumerate(zip(inputs, targets, strict=True))
    ]
    model = Model(
        name="linear",
        build=lambda: nn.Sequential(nn.Linear(3, 2)),
        input_shape=(3,),
        num_outputs=2,
        likelihood=likelihood,
    )
    method = methods.build("bcfl-mh-2", num_clusters=2)
    run = Federation(clients, model, method, objectives=True).run(2)
    assert set(run.to_dataframe().columns) <= columns
    row = run.rows()[-1]
    assert set(row) - {"seconds"} <= columns
    assert set(row["facts"]) <= columns


def test_every_column_of_the_files_of_a_run_is_explained(columns):
    header = as_csv({}).strip().split(",")
    assert "weighted_f1" in header
    assert set(header) <= columns
    privacy = SimpleNamespace(epsilon=float)
    assert set(privacy_columns({}, privacy)) <= columns
    assert "time_step" in columns
