"""Ten to ten thousand clients: processor time per client, and peak memory, in a process each.

`python -m tests.bench.federation.scaling CLIENTS` measures one number of clients.
"""

import json
import resource
import subprocess
import sys
from statistics import median
from time import process_time

import numpy as np

from bcfl import ClientData, Federation, methods
from experiments.models import mlp
from tests.bench.row import Row

COUNTS, REFERENCE = (10, 100, 1000, 10_000), 1000
GROUPS, SAMPLES = 10, 20


def clients_of(count):
    """Each group has a linear rule of its own."""
    rules = np.random.default_rng(0).normal(size=(GROUPS, 64, 10))
    random = np.random.default_rng(1)
    clients = []
    for i in range(count):
        x = random.normal(size=(SAMPLES + 5, 64)).astype(np.float32)
        y = (x @ rules[i % GROUPS]).argmax(axis=1)
        train, test = (x[:SAMPLES], y[:SAMPLES]), (x[SAMPLES:], y[SAMPLES:])
        clients.append(ClientData.from_arrays(f"c{i:05}", train, test, i % GROUPS))
    return clients


def measured(count):
    """Milliseconds of a round per client, evaluation included, and megabytes at the peak."""
    method = methods.build("bcfl-g", num_clusters=GROUPS)
    federation = Federation(clients_of(count), mlp(64, 32, 10), method)
    rounds, marks = max(3, 2000 // count), [process_time()]
    federation.run(rounds, on_round=lambda *_: marks.append(process_time()))
    each = median(np.diff(marks)[1:]) / count
    peak = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss
    return {"ms": 1e3 * each, "megabytes": peak / (1e6 if sys.platform == "darwin" else 1e3)}


def in_a_process_of_its_own(count):
    command = [sys.executable, "-m", "tests.bench.federation.scaling", str(count)]
    return json.loads(subprocess.run(command, check=True, capture_output=True, text=True).stdout)


def run():
    """BCFL-G with ten clusters, MLP 64-32-10; the baseline is a thousand clients."""
    found = {count: in_a_process_of_its_own(count) for count in COUNTS}
    base = found[REFERENCE]["ms"]
    return [
        Row(
            f"bcfl-g, K = {GROUPS}, {count} clients x {SAMPLES}, one round: per client",
            one["ms"],
            base,
            base / one["ms"],
            f"peak memory {one['megabytes']:.0f} MB in all",
        )
        for count, one in found.items()
    ]


if __name__ == "__main__":
    print(json.dumps(measured(int(sys.argv[1]))))
