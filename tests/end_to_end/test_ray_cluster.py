"""A head node of Ray stands in for a cluster: clients of a round on it, methods and seeds on it."""

import os
import shutil
import signal
import socket
import subprocess
import sys
from pathlib import Path
from tempfile import mkdtemp

import pytest

from tests.end_to_end.network import free_port

pytest.importorskip("ray", reason="Ray is not installed")
pytestmark = [pytest.mark.slow, pytest.mark.filterwarnings("ignore")]


@pytest.fixture(scope="module")
def head(tmp_path_factory):
    """The address of a cluster of one machine with two processors."""
    ray = [str(Path(sys.executable).parent / "ray"), "start", "--head", "--block"]
    port, logs = free_port(), tmp_path_factory.mktemp("ray") / "log"
    options = ["--port", str(port), "--num-cpus", "2", "--include-dashboard", "false"]
    folder = mkdtemp(prefix="ray-")  # with a short path, as that of a socket must be
    options += ["--temp-dir", folder]
    with logs.open("w") as log:
        process = subprocess.Popen(
            [*ray, *options, "--disable-usage-stats"],
            stdout=log,
            stderr=log,
            start_new_session=True,
            env=os.environ | {"RAY_raylet_start_wait_time_s": "120"},
        )
    while "Ray runtime started" not in logs.read_text():
        assert process.poll() is None, logs.read_text()
    yield f"{socket.gethostbyname(socket.gethostname())}:{port}"
    os.killpg(process.pid, signal.SIGTERM)
    process.wait()
    shutil.rmtree(folder, ignore_errors=True)


@pytest.mark.parametrize(
    "on_it",
    [("--executor", "flower", "--nodes", 4), ("--executor", "loop", "--cluster", "auto")],
)
def test_a_run_on_a_cluster_has_the_bits_of_one_without(
    on_it, head, bcfl, tiny, tmp_path, read_metrics, monkeypatch
):
    monkeypatch.setenv("RAY_ADDRESS", head)
    for name, options in {"here": ("--executor", "loop"), "there": on_it}.items():
        command = ("run", tiny, "--threads", 1, "--out", tmp_path / name)
        code, _, err = bcfl(*command, *options)
        assert code == 0, err
    assert read_metrics(tmp_path / "there") == read_metrics(tmp_path / "here")
