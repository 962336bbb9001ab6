"""Callbacks that log the numbers of each round, under the names of the columns of data frames."""

import csv
import json
import struct
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


@pytest.mark.parametrize("name", ["jsonl", "csv_file"])
def test_a_resumed_run_continues_its_file(federation, tmp_path, name):
    path = tmp_path / "new" / "rounds"
    states = []
    federation.run(
        3,
        on_round=loggers.together(
            getattr(loggers, name)(path), lambda state, record: states.append(state)
        ),
    )
    with path.open("a") as file:
        file.write('{"round": 4' if name == "jsonl" else "4,0.2")  # killed while writing
    frame = federation.run(4, state=states[1], on_round=getattr(loggers, name)(path)).to_dataframe()
    text = path.read_text().splitlines()
    rows = [*map(json.loads, text)] if name == "jsonl" else [*csv.DictReader(text)]
    assert [int(row["round"]) for row in rows] == [1, 2, 3, 4]
    seconds = [float(row["seconds_total"]) for row in rows[2:]]
    assert seconds == frame["seconds_total"].tolist()


def test_a_table_gets_columns_that_the_first_round_lacks(tmp_path):
    write = loggers.csv_file(tmp_path / "a.csv").write
    for round, values in enumerate([{"b": 1.0}, {"a": 2.0, "b": 2.0}, {"b": 3.0}], start=1):
        write(values, round)
    assert (tmp_path / "a.csv").read_text() == "round,b,a\n1,1.0,\n2,2.0,2.0\n3,3.0,\n"


def test_a_logger_that_fails_does_not_end_the_run_and_tries_again(federation, tmp_path):
    table, lines = tmp_path / "a.csv", tmp_path / "b.jsonl"
    table.mkdir()

    def make_room(state, record):
        if record.round == 2:
            table.rmdir()

    each = loggers.together(loggers.csv_file(table), loggers.jsonl(lines), make_room)
    with pytest.warns(RuntimeWarning, match=r"round \d was not logged: IsADirectoryError"):
        run = federation.run(4, on_round=each)
    assert (run.state.round, len(lines.read_text().splitlines())) == (4, 4)
    assert [line.split(",")[0] for line in table.read_text().splitlines()] == ["round", "3", "4"]


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
def test_tensorboard_shows_each_round_once(federation, tmp_path):
    pytest.importorskip("tensorboard", reason="TensorBoard is not installed")
    from tensorboard.backend.event_processing.event_accumulator import EventAccumulator

    before = federation.run(2, on_round=loggers.tensorboard(tmp_path))
    federation.run(3, on_round=loggers.tensorboard(tmp_path))
    frame = federation.run(
        4, state=before.state, on_round=loggers.tensorboard(tmp_path)
    ).to_dataframe()
    events = EventAccumulator(str(tmp_path)).Reload().Scalars("seconds_total")
    assert [event.step for event in events] == [1, 2, 3, 4]
    assert [e.value for e in events[2:]] == pytest.approx(frame["seconds_total"].tolist())


@pytest.mark.filterwarnings("ignore")
def test_mlflow_keeps_each_round_once(federation, tmp_path, monkeypatch):
    monkeypatch.setenv("MLFLOW_ALLOW_FILE_STORE", "true")
    mlflow = pytest.importorskip("mlflow", reason="MLflow is not installed")
    mlflow.set_tracking_uri((tmp_path / "runs").as_uri())
    with mlflow.start_run() as active:
        before = federation.run(2, on_round=loggers.mlflow())
    with mlflow.start_run(active.info.run_id):
        federation.run(3, on_round=loggers.mlflow())
    with mlflow.start_run(active.info.run_id):
        after = federation.run(4, state=before.state, on_round=loggers.mlflow())
    kept = mlflow.MlflowClient().get_metric_history(active.info.run_id, "accuracy")
    accuracy = [row["accuracy"] for row in (*before.rows(), *after.rows())]
    assert [(m.step, m.value) for m in kept] == list(enumerate(accuracy, start=1))


def wandb_history(folder):
    """Steps and numbers in the file of an offline run: a header, then records of LevelDB's log."""
    from wandb.proto import wandb_internal_pb2

    (path,) = folder.glob("wandb/offline-run*/*.wandb")
    content, place, whole = path.read_bytes(), 7, b""
    while place + 7 <= len(content):
        _, size, kind = struct.unpack_from("<IHB", content, place)
        whole += content[place + 7 : place + 7 + size]
        place += 7 + size
        place += -place % 32768 if -place % 32768 < 7 else 0
        if kind in (1, 4):  # a full record, or the last part of one
            record = wandb_internal_pb2.Record.FromString(whole)
            whole = b""
            if record.HasField("history"):
                items = record.history.item
                values = {
                    item.key or item.nested_key[0]: json.loads(item.value_json) for item in items
                }
                yield record.history.step.num, values


@pytest.mark.filterwarnings("ignore")
def test_wandb_is_given_each_round_once(federation, tmp_path):
    wandb = pytest.importorskip("wandb", reason="Weights & Biases is not installed")
    with pytest.raises(ValueError, match=r"call wandb\.init"):
        loggers.wandb()
    with wandb.init(mode="offline", dir=tmp_path, project="test"):
        federation.run(2, on_round=loggers.wandb())
        frame = federation.run(3, on_round=loggers.wandb()).to_dataframe()
    history = list(wandb_history(tmp_path))
    assert [step for step, _ in history] == [1, 2, 3]
    assert history[2][1]["accuracy"] == frame["accuracy"].iloc[-1]
