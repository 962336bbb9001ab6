"""What should a round remember? `replace`, `forget` and `accumulate` on two kinds of digits.

The same samples are seen again in every round, so evidence that adds up over rounds is counted many
times. Runs two methods with each memory and prints the scores of the last round, means over seeds.
`python -m experiments.examples.memory SEEDS`, 5 by default.
"""

from __future__ import annotations

import sys
from collections.abc import Iterator, Sequence
from dataclasses import replace
from statistics import mean, stdev
from typing import get_args

from rich.console import Console
from rich.table import Table

from bcfl import Federation, Method, methods
from bcfl.devices import limited_threads
from experiments import datasets, metrics, models, partitions
from experiments.partitions import Partition
from posteriors import Memory

METHODS = ("bcfl-g-w", "bcfl-mht-8")
SHOWN = {"accuracy": "accuracy", "ari": "ARI", "nll": "NLL", "ece": "ECE"}


def variants() -> Iterator[tuple[str, Memory, Method]]:
    """Each method with each memory; nothing else differs."""
    for name in METHODS:
        method = methods.build(name)
        for memory in get_args(Memory):
            aggregation = replace(method.aggregation, memory=memory)
            yield name, memory, replace(method, aggregation=aggregation)


def outcome(method: Method, clients: Partition, seed: int, rounds: int) -> dict[str, float]:
    """Scores of the last round."""
    run = Federation(clients, models.mlp((1, 8, 8), 32, 10), method, seed).run(rounds)
    leading = run.hypotheses.best.association
    groups = [run.groups[client] or 0 for client in leading.clients]
    found = metrics.summarise(run.records[-1].evaluations)
    return {**found, "ari": metrics.ari(groups, leading.labels.tolist())}


def spread(values: Sequence[float]) -> str:
    """Mean and standard error."""
    error = stdev(values) / len(values) ** 0.5 if len(values) > 1 else 0.0
    return f"{mean(values):.3f} ± {error:.3f}"


def main(seeds: Sequence[int], rounds: int = 25, clients: int = 40) -> None:
    """Print one table for each kind of digits."""
    digits, console = datasets.load("optdigits"), Console()
    for kind, draw in (
        ("rotated", partitions.rotated),
        ("label skew", partitions.two_stage_dirichlet),
    ):
        drawn = [draw(digits, clients=clients, seed=seed) for seed in seeds]
        table = Table("method", "memory", *SHOWN.values(), title=kind)
        for name, memory, method in variants():
            pairs = zip(drawn, seeds, strict=True)
            found = [outcome(method, one, seed, rounds) for one, seed in pairs]
            table.add_row(name, memory, *(spread([one[key] for one in found]) for key in SHOWN))
        console.print(table)


if __name__ == "__main__":
    with limited_threads(1):
        main(range(int(sys.argv[1]) if len(sys.argv) > 1 else 5))
