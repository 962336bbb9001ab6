"""A SuperLink and four SuperNodes over TLS with node authentication: bits, falls, and strangers."""

import os
import shutil
import signal
import socket
import subprocess
import sys
import time
from pathlib import Path

import numpy as np
import pytest

from bcfl.flower import DeploymentFolder
from bcfl.rounds import checkpoint
from experiments.deployment import Project, write_project
from tests.contract.conftest import clients_of, everything, federation_of

pytest.importorskip("flwr", reason="Flower is not installed")
pytestmark = pytest.mark.slow

ROOT = Path(__file__).parents[2]
SIZES = (8, 3, 5, 9)
CLIENTS = {data.client: data for data in clients_of(SIZES)}
FAMILIES = ["wecfl", "bcfl-mht-8", "ifca-cam", "faacl", "bcfl-g"]
PATIENCE = 3600
APP = """
from bcfl.flower import Deployment, client_app, read_client, server_app
from tests.contract.conftest import MODEL, recipe_of


def deployment(config):
    return Deployment(
        clients=tuple(config["clients"].split(",")),
        model=MODEL,
        method=recipe_of(config["method"]),
        rounds=config["rounds"],
        folder=config["folder"],
        deadline=config["deadline"],
        min_clients=config["min-clients"],
        wait=config["wait"],
    )


client = client_app(read_client, deployment)
server = server_app(deployment)
"""


def free_port():
    with socket.socket() as taken:
        taken.bind(("127.0.0.1", 0))
        return taken.getsockname()[1]


def settings(config):
    return " ".join(
        f"{key}='{value}'" if isinstance(value, str) else f"{key}={value}"
        for key, value in config.items()
    )


class Network:
    """The processes of a federation, each in a session of its own."""

    def __init__(self, folder):
        self.project = Project(folder=folder, clients=tuple(CLIENTS), port=free_port())
        write_project(self.project)
        (self.project.app / "federation.py").write_text(APP)
        for client, data in CLIENTS.items():
            arrays = {
                f"{letter}_{name}": values.numpy()
                for name, view in data.views.items()
                for letter, values in (("x", view.inputs), ("y", view.targets))
            }
            np.savez(self.project.node(client) / "data.npz", **arrays)
            self.on_another_port(client)
        paths = os.pathsep.join((str(Path(sys.executable).parent), os.environ["PATH"]))
        self.environment = os.environ | {"PATH": paths, "PYTHONPATH": str(ROOT)}
        self.processes, self.logs = {}, folder / "logs"
        self.logs.mkdir()

    def on_another_port(self, client):
        script = self.project.node(client) / "start.sh"
        words = script.read_text().split()
        port = words[words.index("--port") + 1]
        script.write_text(script.read_text().replace(port, str(free_port())))

    def start(self, name, script):
        with (self.logs / name).open("ab") as log:
            self.processes[name] = subprocess.Popen(
                ["sh", str(script)],
                env=self.environment,
                stdout=log,
                stderr=subprocess.STDOUT,
                start_new_session=True,
            )

    def start_server(self):
        self.start("server", self.project.folder / "superlink.sh")
        self.wait_for(self.connects, "the server to listen")

    def connects(self):
        with socket.socket() as line:
            return line.connect_ex((self.project.host, self.project.port)) == 0

    def start_node(self, client):
        self.start(client, self.project.node(client) / "start.sh")

    def kill(self, name):
        process = self.processes.pop(name)
        os.killpg(process.pid, signal.SIGKILL)
        process.wait()

    def log(self, name):
        return (self.logs / name).read_text(errors="replace")

    def wait_for(self, what, words):
        end = time.monotonic() + PATIENCE
        while not what():
            assert time.monotonic() < end, f"waited in vain for {words}"
            time.sleep(0.5)

    def command(self, script, *arguments):
        return subprocess.run(
            ["sh", str(self.project.folder / script), *arguments],
            env=self.environment,
            capture_output=True,
            text=True,
            timeout=PATIENCE,
            check=False,
        )

    def run(self, **config):
        done = self.command("run.sh", "-c", settings(config))
        assert done.returncode == 0, done.stdout + done.stderr

    def begin(self, **config):
        """Start a run without waiting for its end."""
        script = self.project.folder / "begin.sh"
        script.write_text(f'exec sh "$(dirname "$0")/run.sh" -c "{settings(config)}"\n')
        self.start("run", script)

    def end(self):
        for name in list(self.processes):
            self.kill(name)


@pytest.fixture(scope="module")
def network(tmp_path_factory):
    running = Network(tmp_path_factory.mktemp("federation") / "trial")
    try:
        running.start_server()
        done = running.command("register.sh")
        assert done.returncode == 0, done.stdout + done.stderr
        for client in CLIENTS:
            running.start_node(client)
        yield running
    finally:
        running.end()


def state_of(folder, name):
    return checkpoint.load(checkpoint.newest(DeploymentFolder(folder, name).checkpoints))


def loop(name, rounds):
    return federation_of(name, SIZES, executor="loop").run(rounds).state


@pytest.mark.parametrize("name", FAMILIES)
def test_a_deployed_run_has_the_bits_of_the_loop(name, network, tmp_path):
    network.run(method=name, rounds=3, folder=str(tmp_path), wait=600.0)
    assert everything(state_of(tmp_path, name)) == everything(loop(name, 3))
    assert all(row["failures"] == [] for row in DeploymentFolder(tmp_path, name).rows())


def test_a_node_that_falls_is_missing_until_it_is_back(network, tmp_path):
    files = DeploymentFolder(tmp_path, "wecfl")
    network.begin(
        method="wecfl", rounds=5, folder=str(tmp_path), deadline=120.0, **{"min-clients": 3}
    )
    network.wait_for(lambda: len(files.rows()) >= 1, "round 1")
    network.kill("c1")
    network.wait_for(lambda: len(files.rows()) >= 3, "round 3")
    network.start_node("c1")
    network.wait_for(lambda: len(files.rows()) >= 5, "round 5")
    failures = [text for row in files.rows() for text in row["failures"]]
    assert failures
    assert all(text.startswith("c1: ") and text.endswith("(missing)") for text in failures)
    network.wait_for(lambda: network.processes["run"].poll() is not None, "the end of the log")
    network.processes.pop("run")


def test_a_run_whose_server_fell_is_resumed_to_the_same_bits(network, tmp_path):
    files, config = (
        DeploymentFolder(tmp_path, "wecfl"),
        {"method": "wecfl", "rounds": 4, "wait": 600.0},
    )
    network.begin(folder=str(tmp_path), **config)
    network.wait_for(lambda: len(files.rows()) >= 2, "round 2")
    network.kill("server")
    network.kill("run")
    done = len(files.rows())
    network.start_server()
    network.run(folder=str(tmp_path), **config)
    assert [row["round"] for row in files.rows()] == [1, 2, 3, 4]
    assert done < 4
    assert everything(state_of(tmp_path, "wecfl")) == everything(loop("wecfl", 4))


def stranger(network, change):
    """What a node of another folder says until it ends or repeats itself."""
    own = network.project.node("stranger")
    shutil.copytree(network.project.node("c0"), own, ignore=shutil.ignore_patterns("flower"))
    change(own)
    network.on_another_port("stranger")
    network.start("stranger", own / "start.sh")
    return own


def test_a_node_that_trusts_another_authority_does_not_connect(network):
    from experiments.deployment.certificates import Authority

    def changed(own):
        (own / "ca.crt").unlink()
        Authority.new().issue(own, "other", ("localhost",))

    own = stranger(network, changed)
    network.wait_for(
        lambda: "ertificate" in network.log("stranger").partition("Starting")[2], "a refusal"
    )
    assert "SuperNode ID" not in network.log("stranger")
    network.kill("stranger")
    shutil.rmtree(own)
    (network.logs / "stranger").unlink()


def test_a_node_that_is_not_registered_is_refused(network):
    from experiments.deployment.certificates import write_node_key

    def changed(own):
        (own / "node").unlink()
        write_node_key(own)

    own = stranger(network, changed)
    network.wait_for(lambda: network.processes["stranger"].poll() is not None, "a refusal")
    assert "SuperNode ID" not in network.log("stranger")
    network.processes.pop("stranger")
    shutil.rmtree(own)
    (network.logs / "stranger").unlink()
