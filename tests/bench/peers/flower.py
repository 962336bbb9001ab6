"""Our rounds of FedAvg beside those of Flower's simulation engine, in a process of its own.

`python -m tests.bench.peers.flower FILE rounds CLIENTS SAMPLES PAIRS THREADS` writes a row as JSON,
`python -m tests.bench.peers.flower FILE load NODES ROUNDS` that of many nodes on one engine.
"""

import json
import os
import subprocess
import sys
from importlib import import_module
from pathlib import Path
from tempfile import TemporaryDirectory

from tests.bench.federation.rounds import ROUNDS
from tests.bench.peers.absent import absent
from tests.bench.row import Row

INSTALL = "pip install 'flwr[simulation]==1.42.*'"
QUIET = {
    "FLWR_TELEMETRY_ENABLED": "0",
    "FLWR_DISABLE_UPDATE_CHECK": "1",
    "RAY_USAGE_STATS_ENABLED": "0",
}


def in_a_process_of_its_own(measure, *sizes):
    """The row, measured where nothing is reported to anyone and no file is left at home."""
    with TemporaryDirectory() as folder:
        target = Path(folder) / "row.json"
        command = [sys.executable, "-m", "tests.bench.peers.flower", target, measure]
        command += map(str, sizes)
        environment = {**os.environ, **QUIET, "FLWR_HOME": folder}
        done = subprocess.run(command, env=environment, capture_output=True, text=True)
        if done.returncode or not target.exists():
            raise RuntimeError(f"Flower's simulation failed:\n{done.stderr[-4000:]}")
        return Row(*json.loads(target.read_text()))


def run(count=40, samples=300, pairs=ROUNDS, threads=2, nodes=200, rounds=20):
    """CNN, 40 clients x 300 of noise; ours on two threads, theirs on two workers of one thread.

    Then 200 nodes of a small network for 20 rounds, ours and theirs on one engine.
    """
    if absent(["flwr", "ray"], INSTALL):
        return []
    return [
        in_a_process_of_its_own("rounds", count, samples, pairs, threads),
        in_a_process_of_its_own("load", nodes, rounds),
    ]


if __name__ == "__main__":
    module = import_module(f"tests.bench.peers.flower_{sys.argv[2]}")
    row = module.measured(*map(int, sys.argv[3:]))
    Path(sys.argv[1]).write_text(json.dumps(row))
