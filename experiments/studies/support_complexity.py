"""Work of FAACL over the number of devices, beside appendix A of its thesis.

Flat FAACL tests n (n - 1) pairs of a model and a device in its first round of tests, and trains up
to n^2 / 2 local models in the next (proposition 5, O(n^2)). The hierarchy has ceil(log2 n) + 1
levels (theorem 6), with at most n trainings where all devices support each other. Handwritten
digits, every other device with shifted labels.
`python -m experiments.studies.support_complexity`.
"""

from __future__ import annotations

import argparse
from collections.abc import Sequence
from dataclasses import dataclass
from math import ceil, log2

from rich.console import Console

from bcfl import Federation, Objective, methods
from bcfl.runtime import limited_threads
from experiments import datasets, models, partitions
from experiments.config.command_line import CommandLine
from experiments.studies.run_tables import markdown

DEVICES = (4, 8, 16, 32)
METHODS = ("fedavg", "faacl", "faacl-h")
HEAD = (
    *("devices", "method", "clusters", "support tests", "most in a round", "n (n - 1)", "levels"),
    *("trainings run", "most in a round", "n²/2", "MB down", "MB up"),
)


@dataclass(frozen=True)
class Work:
    """Work of a run.

    Attributes:
        clusters: non-empty clusters in the last round.
        tests: support tests of each round, one for each tested pair of clusters.
        trainings: local trainings run in each round.
        bytes_down: bytes sent to devices over all rounds.
        bytes_up: bytes sent by devices over all rounds.
    """

    clusters: int
    tests: tuple[int, ...]
    trainings: tuple[int, ...]
    bytes_down: int
    bytes_up: int


def work_of(name: str, devices: int, rounds: int, seed: int = 0) -> Work:
    """Run a method and count its work.

    Args:
        name: name of the method.
        devices: number of devices.
        rounds: number of rounds.
        seed: seed of partition and run.
    """
    digits = datasets.load("optdigits")
    clients = partitions.shifted_labels(digits, clients=devices, seed=seed)
    method = methods.build(name, objective=Objective(learning_rate=0.05))
    model = models.mlp((1, 8, 8), 16, 10)
    run = Federation(clients, model, method, seed=seed, evaluate=False).run(rounds)
    ledgers = [record.ledger for record in run.records]
    facts = [record.info.facts for record in run.records]
    return Work(
        int((run.hypotheses.best.association.sizes > 0).sum()),
        tuple(int(fact.get("support_tests", 0)) for fact in facts),
        tuple(ledger.trainings_run for ledger in ledgers),
        sum(ledger.bytes_down for ledger in ledgers),
        sum(ledger.bytes_up for ledger in ledgers),
    )


def main(devices: Sequence[int] = DEVICES, rounds: int = 20) -> None:
    """Print a table of the work by number of devices and method.

    Args:
        devices: numbers of devices.
        rounds: number of rounds of each run.
    """
    rows = []
    for number in devices:
        for name in METHODS:
            work = work_of(name, number, rounds)
            counts = (work.clusters, sum(work.tests), max(work.tests), number * (number - 1))
            levels = ceil(log2(number)) + 1
            trained = (levels, sum(work.trainings), max(work.trainings))
            sent = (f"{work.bytes_down / 1e6:.1f}", f"{work.bytes_up / 1e6:.1f}")
            cells = (number, name, *counts, *trained, number**2 // 2, *sent)
            rows.append([str(cell) for cell in cells])
    markdown(f"{rounds} rounds, seed 0", HEAD, rows, Console(width=200))


def parsed(words: Sequence[str] | None = None) -> argparse.Namespace:
    """Parse the command line, which has no arguments."""
    return CommandLine(__doc__).parse_args(words)


if __name__ == "__main__":
    parsed()
    with limited_threads(1):
        main()
