"""A table of two methods on a few clients."""

import tomllib

import pytest

from experiments.published import reading

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
def content():
    return tomllib.loads(MINIATURE)


@pytest.fixture
def miniature(tmp_path, monkeypatch):
    folder = tmp_path / "published"
    (folder / "tiny").mkdir(parents=True)
    (folder / "tiny" / "1.toml").write_text(MINIATURE)
    (folder / "tiny" / "fig-2.toml").write_text(
        'of = "tiny/1"\nitem = "Figure 2"\ncolumns = ["label"]\nrows = ["FedAvg"]\n'
    )
    (folder / "left-out.toml").write_text(
        '[[left_out]]\nnames = ["tiny/fig-1"]\nitems = "Figure 1"\nreason = "it is a drawing"\n'
    )
    monkeypatch.setattr(reading, "FOLDER", folder)
    return tmp_path / "results"
