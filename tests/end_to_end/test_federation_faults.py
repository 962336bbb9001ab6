"""Nodes and the server of a federation over TLS fall, come back, join late, and leave."""

import signal
import time

import pytest

from bcfl.flower import DeploymentFolder
from tests.contract.conftest import everything
from tests.end_to_end.network import CLIENTS, loop, state_of

pytest.importorskip("flwr", reason="Flower is not installed")
pytestmark = pytest.mark.slow

MINUTE = 60


def names_of(failures):
    """Clients that were missing, of failures that say nothing else."""
    assert all(text.endswith("(missing)") for text in failures)
    return {text.partition(":")[0] for text in failures}


@pytest.mark.parametrize("kind", ["Score", "Train"])
def test_nodes_that_fall_at_work_are_missing_in_that_round_alone(kind, network, tmp_path):
    files = DeploymentFolder(tmp_path, "bcfl-g")
    network.begin(method="bcfl-g", rounds=4, folder=str(tmp_path), deadline=180.0, wait=900.0)
    network.wait_for_rounds(files, 1)
    for client in ("c1", "c2"):
        network.hold(client, kind)
    for client in ("c1", "c2"):
        network.wait_for_held(client)
    at = len(files.rows())
    network.kill("c1")
    network.kill("c2")
    network.start_node("c1")
    time.sleep(MINUTE)
    network.start_node("c2")
    network.wait_for_the_end(files, 4)
    rows = files.rows()
    assert [row["round"] for row in rows] == [1, 2, 3, 4]
    assert names_of(rows[at]["failures"]) == {"c1", "c2"}
    assert all(row["connected"] == sorted(CLIENTS) for row in rows)
    assert [row["failures"] for row in rows[:at] + rows[at + 1 :]] == [[], [], []]


def test_a_round_begins_without_a_node_that_fell(network, tmp_path):
    files = DeploymentFolder(tmp_path, "wecfl")
    network.begin(
        method="wecfl", rounds=5, folder=str(tmp_path), deadline=120.0, **{"min-clients": 3}
    )
    network.wait_for_rounds(files, 1)
    network.kill("c1")
    network.wait_for_rounds(files, 3)
    network.start_node("c1")
    network.wait_for_the_end(files, 5)
    failures = [row["failures"] for row in files.rows()]
    assert len(failures) == 5
    assert set().union(*map(names_of, failures)) == {"c1"}


def test_a_client_may_come_in_round_five_and_another_leave_for_good(network, tmp_path):
    files = DeploymentFolder(tmp_path, "wecfl")
    network.kill("c3", signal.SIGTERM)
    options = {"min-clients": 3, "deadline": 180.0, "wait": 900.0}
    network.begin(method="wecfl", rounds=9, folder=str(tmp_path), **options)
    network.wait_for_rounds(files, 4)
    network.start_node("c3")
    network.wait_for(lambda: "c3" in files.rows()[-1]["connected"], "c3 to take part")
    network.kill("c1", signal.SIGTERM)
    network.wait_for_the_end(files, 9)
    network.start_node("c1")
    rows = files.rows()
    assert len(rows) == 9
    came = next(row["round"] for row in rows if "c3" in row["connected"])
    assert came >= 5
    assert all("c3" in row["connected"] for row in rows[came - 1 :])
    assert rows[-1]["connected"] == ["c0", "c2", "c3"]
    assert names_of(rows[0]["failures"]) == {"c3"}
    assert names_of(rows[-1]["failures"]) == {"c1"}


def test_a_run_whose_server_fell_is_resumed_to_the_same_bits(network, tmp_path):
    files = DeploymentFolder(tmp_path, "wecfl")
    config = {"method": "wecfl", "rounds": 4, "wait": 600.0}
    network.begin(folder=str(tmp_path), **config)
    network.wait_for_rounds(files, 2)
    network.kill("server")
    network.kill("run")
    done = len(files.rows())
    network.start_server()
    network.run(folder=str(tmp_path), **config)
    assert [row["round"] for row in files.rows()] == [1, 2, 3, 4]
    assert done < 4
    assert everything(state_of(tmp_path, "wecfl")) == everything(loop("wecfl", 4))
