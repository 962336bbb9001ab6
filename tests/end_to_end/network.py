"""The processes of a federation on Flower, over TLS and with node authentication."""

import os
import signal
import socket
import subprocess
import sys
import time
from pathlib import Path

import numpy as np

from bcfl.flower import DeploymentFolder
from bcfl.rounds import checkpoint
from experiments.deployment import Project, write_project
from tests.contract.conftest import clients_of, federation_of

ROOT = Path(__file__).parents[2]
SIZES = (8, 3, 5, 9)
CLIENTS = {data.client: data for data in clients_of(SIZES)}
PATIENCE = 3600
FAILED = "ServerApp raised an exception"
HELD = 600
"""Seconds for which a node that is told to hold stays at work."""
APP = f"""
import json
import time
from pathlib import Path

from torch import nn

from bcfl import Model, Objective
from bcfl.flower import Deployment, client_app, node, read_client, server_app
from tests.recipes import built

respond = node.respond


def network():
    return nn.Sequential(nn.Linear(3, 2))


def deployment(config):
    return Deployment(
        clients=tuple(config["clients"].split(",")),
        model=Model(name="linear", build=network, input_shape=(3,), num_outputs=2),
        method=built(
            config["method"], num_clusters=2, objective=Objective(local_steps=4, batch_size=4)
        ),
        rounds=config["rounds"],
        folder=config["folder"],
        deadline=config["deadline"],
        min_clients=config["min-clients"],
        wait=config["wait"],
    )


def held(payload, open_site, kept):
    asked = json.loads(payload.text).get("requests", ())
    for kind in {{request["kind"] for request in asked}}:
        if (hold := Path(f"hold {{kind}}")).exists():
            hold.rename("held")
            time.sleep({HELD})
    return respond(payload, open_site, kept)


node.respond = held
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


def state_of(folder, name):
    """What the newest checkpoint of a run folder holds."""
    return checkpoint.load(checkpoint.newest(DeploymentFolder(folder, name).files.checkpoints))


def loop(name, rounds):
    """The state after the same rounds in this process."""
    return federation_of(name, SIZES, executor="loop").run(rounds).state


class Network:
    """The processes of a federation, each in a session of its own.

    A client's node that finds a file `hold KIND` in its folder renames it to `held` when it is
    asked something of the kind, and does not answer.
    """

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

    def start(self, name, command):
        with (self.logs / name).open("ab") as log:
            self.processes[name] = subprocess.Popen(
                ["sh", "-c", command],
                env=self.environment,
                stdout=log,
                stderr=subprocess.STDOUT,
                start_new_session=True,
            )

    def start_server(self):
        self.start("server", f"exec sh {self.project.folder}/superlink.sh")
        self.wait_for(self.connects, "the server to listen")

    def connects(self):
        with socket.socket() as line:
            return line.connect_ex((self.project.host, self.project.port)) == 0

    def start_node(self, client):
        """Start a node, and again whenever it fails."""
        self.start(client, f"until sh {self.project.node(client)}/start.sh; do sleep 5; done")

    def hold(self, client, kind):
        (self.project.node(client) / f"hold {kind}").touch()

    def wait_for_held(self, client):
        held = self.project.node(client) / "held"
        self.wait_for(held.exists, f"{client} to be asked")
        held.unlink()

    def kill(self, name, signal=signal.SIGKILL):
        process = self.processes.pop(name)
        os.killpg(process.pid, signal)
        process.wait()

    def log(self, name):
        path = self.logs / name
        return path.read_text(errors="replace") if path.exists() else ""

    def wait_for(self, what, words):
        end = time.monotonic() + PATIENCE
        while not what():
            assert time.monotonic() < end, f"waited in vain for {words}"
            assert FAILED not in self.log("run"), self.log("run")
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
        self.start("run", f'exec sh {self.project.folder}/run.sh -c "{settings(config)}"')

    def wait_for_rounds(self, files, count):
        self.wait_for(lambda: len(files.rows()) >= count, f"round {count}")

    def wait_for_the_end(self, files, count):
        """Wait for the last round, whatever becomes of the log."""
        self.wait_for_rounds(files, count)
        self.kill("run")

    def end(self):
        for name in list(self.processes):
            self.kill(name)
