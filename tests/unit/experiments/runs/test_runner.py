"""One method with one seed: checks, rounds, checkpoints, stopping, damage."""

import shutil
import subprocess
import sys
import tomllib

import networkx as nx
import pytest

from bcfl import Federation
from bcfl.analysis import rows
from bcfl.rounds.checkpoint import CheckpointError
from bcfl.runtime import locked
from experiments.config.scenario import from_table
from experiments.runs import files, plan
from experiments.runs.runner import Experiment, Interrupted, RunCallbacks, run_pair

PAIR = files.Pair("bcfl-mh-3", 4)


def scenario(**changes):
    table = {
        "name": "tiny",
        "methods": ["bcfl-mh-3"],
        "seeds": [4],
        "data": {"dataset": "optdigits"},
        "partition": {"kind": "rotated", "groups": 2, "clients": 6, "samples_per_client": 30},
        "model": {"name": "mlp", "hidden": [8]},
        "training": {"local_steps": 2},
        "federation": {"rounds": 5, "num_clusters": 2, "checkpoint_every": 2},
    }
    return from_table(table | changes)


def setup(**changes):
    return Experiment(scenario=scenario(**changes), device="cpu")


def prepared(folder):
    pair_files = files.RunFiles(folder).of(PAIR)
    files.write_aside(
        pair_files.config,
        plan.Plan(scenario=scenario(), device="cpu", threads=1, jobs=1, command="").config(PAIR),
    )
    return pair_files


def without_seconds(path):
    return [{k: v for k, v in row.items() if k != "seconds"} for row in rows.read(path)]


@pytest.fixture(scope="module")
def whole(tmp_path_factory):
    pair_files = prepared(tmp_path_factory.mktemp("whole"))
    run_pair(setup(), PAIR, pair_files, RunCallbacks())
    return pair_files


def test_a_pair_leaves_rounds_graphs_and_checkpoints(whole):
    assert [row["round"] for row in rows.read(whole.metrics)] == [1, 2, 3, 4, 5]
    assert sorted(p.name for p in whole.checkpoints.iterdir()) == ["round-000004", "round-000005"]
    assert whole.is_finished
    clients = nx.read_graphml(whole.graph("clients"))
    assert clients.number_of_nodes() == 6
    assert {group for _, group in clients.nodes(data="group")} == {0, 1}
    assert nx.read_graphml(whole.graph("clusters")).number_of_nodes() == 8
    tree = nx.read_graphml(whole.graph("hypotheses"))
    assert max(rank for _, rank in tree.nodes(data="round")) == 5
    config = tomllib.loads(whole.config.read_text())
    assert (config["methods"], config["seeds"]) == (["bcfl-mh-3"], [4])


def test_a_scenario_without_beliefs_asks_for_none(tmp_path):
    rules = {"rounds": 2, "num_clusters": 2, "checkpoint_every": 1, "beliefs": False}
    pair_files = prepared(tmp_path)
    run_pair(setup(federation=rules), PAIR, pair_files, RunCallbacks())
    assert [row["belief"] for row in rows.read(pair_files.metrics)] == [None, None]


def test_a_finished_pair_is_only_reported(whole):
    before = whole.metrics.stat().st_mtime_ns
    told = []
    run_pair(setup(), PAIR, whole, RunCallbacks(on_start=lambda pair, done: told.append(len(done))))
    assert told == [5]
    assert whole.metrics.stat().st_mtime_ns == before


@pytest.mark.parametrize("stop_after", [1, 2, 3, 4])
def test_stopping_after_any_round_changes_no_bit(whole, tmp_path, stop_after):
    pair_files, seen = prepared(tmp_path), []
    callbacks = RunCallbacks(
        on_round=lambda pair, row: seen.append(row), should_stop=lambda: len(seen) == stop_after
    )
    with pytest.raises(Interrupted):
        run_pair(setup(), PAIR, pair_files, callbacks)
    assert len(rows.read(pair_files.metrics)) == stop_after
    run_pair(setup(), PAIR, pair_files, RunCallbacks())
    assert without_seconds(pair_files.metrics) == without_seconds(whole.metrics)
    for kind in files.GRAPHS:
        assert pair_files.graph(kind).read_bytes() == whole.graph(kind).read_bytes()


def test_being_asked_to_stop_in_the_last_round_ends_the_pair(tmp_path):
    pair_files, seen = prepared(tmp_path), []
    callbacks = RunCallbacks(
        on_round=lambda pair, row: seen.append(row), should_stop=lambda: len(seen) == 5
    )
    run_pair(setup(), PAIR, pair_files, callbacks)
    assert pair_files.is_finished


def test_a_damaged_checkpoint_is_named_and_the_one_before_it_serves(whole, tmp_path):
    pair_files = files.RunFiles(tmp_path).of(PAIR)
    shutil.copytree(whole.folder, pair_files.folder)
    for kind in files.GRAPHS:
        pair_files.graph(kind).unlink()
    newest = pair_files.checkpoints / "round-000005"
    tensors = newest / "tensors.safetensors"
    content = bytearray(tensors.read_bytes())
    content[-3] ^= 255
    tensors.write_bytes(content)
    with pytest.raises(CheckpointError, match=r"round-000005.*delete this folder"):
        run_pair(setup(), PAIR, pair_files, RunCallbacks())
    shutil.rmtree(newest)
    run_pair(setup(), PAIR, pair_files, RunCallbacks())
    assert without_seconds(pair_files.metrics) == without_seconds(whole.metrics)


def test_a_checkpoint_of_other_clients_is_refused(whole, tmp_path):
    pair_files = files.RunFiles(tmp_path).of(PAIR)
    shutil.copytree(whole.folder, pair_files.folder)
    pair_files.graph("clients").unlink()
    other = setup(partition={"kind": "rotated", "groups": 2, "clients": 7})
    with pytest.raises(CheckpointError, match="other clients"):
        run_pair(other, PAIR, pair_files, RunCallbacks())


@pytest.mark.parametrize(
    ("changes", "message"),
    [
        ({"methods": ["bcfl-mh3"]}, "unknown method 'bcfl-mh3'"),
        ({"methods": ["fedavg-w"]}, "one cluster: suffix -w needs"),
        ({"data": {"dataset": "optdigts"}}, "Did you mean 'optdigits'"),
        ({"data": {"dataset": "optdigits", "data_dir": "/none"}}, "data_dir must be an existing"),
        ({"partition": {"kind": "rotatd"}}, "Did you mean 'rotated'"),
        ({"partition": {"kind": "rotated", "group": 2}}, "Did you mean 'groups'"),
        ({"partition": {"kind": "rotated", "clients": 4000}}, "clients=4000"),
        ({"partition": {"kind": "iid", "clients": "six"}}, "clients must be a whole number"),
        ({"model": {"name": "mpl"}}, "Did you mean 'mlp'"),
        ({"model": {"name": "mlp", "hiden": [3]}}, "Did you mean 'hidden'"),
        ({"model": {"name": "fashion-cnn"}}, "takes samples of"),
        ({"federation": {"num_clusters": 7}}, "at most the number of clients, 6, got 7"),
        ({"federation": {"temperature": -1}}, "method bcfl-mh-3: .*temperature"),
        (
            {"federation": {"num_clusters": "auto"}},
            "num_clusters of bcfl-mh-3 must be a whole number, got .auto.",
        ),
        ({"federation": {"prior_precision": 0}}, "prior_precision must be positive"),
        (
            {
                "methods": ["fedavg", "bcfl-exact"],
                "federation": {"num_clusters": 6},
                "partition": {"kind": "iid", "clients": 8},
            },
            "would keep 1679616 hypotheses",
        ),
    ],
)
def test_what_is_refused_before_any_work(changes, message):
    with pytest.raises(ValueError, match=message):
        setup(**changes).check()


def test_an_unknown_device_is_refused():
    with pytest.raises(ValueError, match="device must be"):
        Experiment(scenario=scenario(), device="abacus").check()


def test_a_folder_is_held_by_one_process(tmp_path):
    code = (
        "from pathlib import Path\n"
        "from bcfl.runtime import BusyError, locked\n"
        "try:\n"
        f"    with locked(Path({str(tmp_path)!r})):\n"
        "        print('free')\n"
        "except BusyError as error:\n"
        "    print(error)\n"
    )

    def asked():
        return subprocess.run(
            [sys.executable, "-c", code], capture_output=True, text=True, check=True
        ).stdout

    with locked(tmp_path):
        assert asked().startswith(f"another process is working in {tmp_path}")
    assert asked() == "free\n"


def test_a_file_is_written_whole_or_not_at_all(tmp_path):
    path = tmp_path / "deep" / "summary.json"
    files.write_aside(path, "old")
    with pytest.raises(TypeError):
        files.write_aside(path, 3)
    assert path.read_text() == "old"
    files.write_aside(path, b"new")
    assert path.read_text() == "new"
    for taken in (path.with_name(".report.html.partial"), path.with_name("page.html")):
        taken.mkdir()
    for name in ("report.html", "page.html"):
        with pytest.raises(IsADirectoryError) as error:
            files.write_aside(path.with_name(name), "text")
        assert error.value.filename == str(path.with_name(name))
        assert "partial" not in str(error.value)


def test_fewer_rounds_than_time_steps_are_refused_before_work_starts():
    with pytest.raises(ValueError, match="at least the 3 time steps of the data, got 2"):
        setup(
            partition={"kind": "stream", "clients": 4, "steps": 3}, federation={"rounds": 2}
        ).check()


def test_libraries_are_imported_before_the_first_round_is_timed(monkeypatch, tmp_path):
    def timed(*given, **named):
        assert "sklearn.cluster" in sys.modules
        raise Interrupted

    monkeypatch.delitem(sys.modules, "sklearn.cluster", raising=False)
    monkeypatch.setattr(Federation, "run", timed)
    with pytest.raises(Interrupted):
        run_pair(setup(), PAIR, prepared(tmp_path), RunCallbacks())
