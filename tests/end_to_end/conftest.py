"""A scenario so small that whole runs take a second or two."""

import json
import os
import subprocess
import sys
import warnings

import pytest

with warnings.catch_warnings():  # typer uses names that click will remove
    warnings.simplefilter("ignore", DeprecationWarning)
    import typer.testing  # noqa: F401

SCENARIO = """
methods = ["bcfl-mht-4", "bcfl-mh-3"]
seeds = [3]

[data]
dataset = "optdigits"

[partition]
kind = "rotated"
groups = 2
clients = 8
samples_per_client = 40

[model]
name = "mlp"
hidden = [16]

[training]
local_steps = 20

[federation]
rounds = 6
num_clusters = 2
client_fraction = 0.7
drop_out = 0.1
checkpoint_every = 2
"""


@pytest.fixture(scope="session")
def tiny(tmp_path_factory):
    path = tmp_path_factory.mktemp("scenario") / "tiny.toml"
    path.write_text(SCENARIO)
    return path


class Command:
    """The `bcfl` command in a process of its own."""

    def __init__(self, folder):
        self.folder = folder

    def start(self, *arguments, **options):
        environment = {**os.environ, "OMP_NUM_THREADS": "1"}
        return subprocess.Popen(
            [sys.executable, "-m", "experiments.cli", *map(str, arguments)],
            cwd=self.folder,
            env=environment,
            stdout=subprocess.PIPE,
            stderr=subprocess.PIPE,
            text=True,
            **options,
        )

    def __call__(self, *arguments):
        process = self.start(*arguments)
        out, err = process.communicate(timeout=120)
        return process.returncode, out, err


@pytest.fixture
def bcfl(tmp_path):
    return Command(tmp_path)


def metrics(folder):
    """All rounds of a run by method and seed, without how long they took."""
    found = {}
    for path in sorted(folder.glob("*/seed-*/metrics.jsonl")):
        rounds = [json.loads(line) for line in path.read_text().splitlines()]
        kept = [{k: v for k, v in row.items() if "seconds" not in k} for row in rounds]
        found[str(path.parent.relative_to(folder))] = kept
    return found


@pytest.fixture(scope="session")
def read_metrics():
    return metrics


@pytest.fixture(scope="session")
def whole(tiny, tmp_path_factory):
    """A run that nothing interrupted."""
    folder = tmp_path_factory.mktemp("whole")
    code, out, err = Command(folder)("run", tiny, "--out", folder / "run")
    assert code == 0, err
    return folder / "run", out


@pytest.fixture(scope="session")
def network(tmp_path_factory):
    """A server and four registered nodes, for all tests."""
    from tests.end_to_end.network import CLIENTS, Network

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
