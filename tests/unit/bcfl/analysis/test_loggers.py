"""Callbacks that log the numbers of each round, under the names of the columns of data frames."""

import csv
import json
import sys

import pytest

from bcfl import Federation, Objective
from bcfl.analysis import loggers
from tests.recipes import built


@pytest.fixture
def federation(linear, clients):
    objective = Objective(local_steps=1, batch_size=4)
    return Federation(clients, linear, built("bcfl-g", num_clusters=2, objective=objective))


def test_each_round_is_logged_under_the_names_of_the_data_frame(federation):
    seen = []
    logger = loggers.RoundLogger(lambda values, round: seen.append((round, values)))
    frame = federation.run(2, on_round=logger).to_dataframe()
    assert [round for round, _ in seen] == [1, 2]
    assert seen[1][1]["accuracy"] == frame["accuracy"][1]
    assert set(seen[1][1]) < set(frame.columns)


def test_files_have_a_line_for_each_round(federation, tmp_path):
    both = loggers.together(
        loggers.jsonl(tmp_path / "a.jsonl", federation.groups), loggers.csv_file(tmp_path / "a.csv")
    )
    frame = federation.run(2, on_round=both).to_dataframe()
    lines = [json.loads(line) for line in (tmp_path / "a.jsonl").read_text().splitlines()]
    table = list(csv.DictReader((tmp_path / "a.csv").read_text().splitlines()))
    for rows in (lines, table):
        assert [float(row["accuracy"]) for row in rows] == frame["accuracy"].tolist()
        assert [int(row["round"]) for row in rows] == [1, 2]


def test_one_of_several_callbacks_stops_the_run(federation):
    both = loggers.together(lambda state, record: True, lambda state, record: None)
    assert federation.run(3, on_round=both).state.round == 1


@pytest.mark.parametrize("name", ["tensorboard", "mlflow", "wandb"])
def test_a_package_that_is_missing_is_named_with_its_extra(name, monkeypatch, tmp_path):
    monkeypatch.setitem(sys.modules, name, None)
    arguments = [tmp_path] if name == "tensorboard" else []
    with pytest.raises(ModuleNotFoundError, match=rf"pip install 'bcfl\[{name}\]'"):
        getattr(loggers, name)(*arguments)


@pytest.mark.filterwarnings("ignore")
def test_tensorboard_shows_the_rounds(federation, tmp_path):
    pytest.importorskip("tensorboard", reason="TensorBoard is not installed")
    from tensorboard.backend.event_processing.event_accumulator import EventAccumulator

    frame = federation.run(2, on_round=loggers.tensorboard(tmp_path)).to_dataframe()
    events = EventAccumulator(str(tmp_path)).Reload().Scalars("accuracy")
    assert [event.step for event in events] == [1, 2]
    assert [event.value for event in events] == pytest.approx(frame["accuracy"].tolist())


@pytest.mark.filterwarnings("ignore")
def test_mlflow_keeps_the_rounds(federation, tmp_path, monkeypatch):
    monkeypatch.setenv("MLFLOW_ALLOW_FILE_STORE", "true")
    mlflow = pytest.importorskip("mlflow", reason="MLflow is not installed")
    mlflow.set_tracking_uri((tmp_path / "runs").as_uri())
    with mlflow.start_run() as active:
        frame = federation.run(2, on_round=loggers.mlflow()).to_dataframe()
    kept = mlflow.MlflowClient().get_metric_history(active.info.run_id, "accuracy")
    assert [(m.step, m.value) for m in kept] == list(enumerate(frame["accuracy"], start=1))


@pytest.mark.filterwarnings("ignore")
def test_wandb_is_given_the_rounds(federation, tmp_path):
    wandb = pytest.importorskip("wandb", reason="Weights & Biases is not installed")
    with pytest.raises(ValueError, match=r"call wandb\.init"):
        loggers.wandb()
    with wandb.init(mode="offline", dir=tmp_path, project="test") as active:
        frame = federation.run(2, on_round=loggers.wandb()).to_dataframe()
        assert active.summary["accuracy"] == frame["accuracy"].iloc[-1]
