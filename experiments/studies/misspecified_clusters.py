"""Sensitivity to a misspecified number of clusters.

There are four groups of clients; each method with a given number of clusters runs with 2 to 6 of
them (BCFL, Table 8, on handwritten digits), and FedAvg for reference. Prints accuracy and macro-F1
in per cent and the adjusted Rand index to the true groups, averaged over the seeds.
`python -m experiments.studies.misspecified_clusters SEEDS KIND METHODS`, 3 seeds of `label-skew`
and all methods by default; the other kind is `rotated`, and `ifca,bcfl-mht-8` names two methods.
"""

from __future__ import annotations

import argparse
from collections.abc import Callable, Mapping, Sequence
from dataclasses import astuple, dataclass
from statistics import mean

from rich.console import Console
from rich.progress import track
from rich.table import Table

from bcfl import Federation, Method, methods
from bcfl.runtime import limited_threads
from experiments import datasets, models, partitions
from experiments.config.command_line import CommandLine, method_name, positive, several
from experiments.partitions import Partition

METHODS = (
    *("fedavg", "ocfl-kmeans", "fedgroup", "fedsoft", "ifca", "ifca-w", "fesem", "wecfl"),
    *("bcfl-g", "bcfl-g-w", "bcfl-forget", "bcfl-asym"),
    *("bcfl-c-3", "bcfl-c-3-w", "bcfl-c-6", "bcfl-c-6-w"),
    *("bcfl-mh-3", "bcfl-mh-3-w", "bcfl-mh-6", "bcfl-mh-6-w", "bcfl-mht-8", "bcfl-race-4"),
)
NUMBERS = (2, 3, 4, 5, 6)
ROUNDS = 25
KINDS: Mapping[str, Callable[..., Partition]] = {
    "label-skew": partitions.two_stage_dirichlet,
    "rotated": partitions.rotated,
}


@dataclass(frozen=True)
class Scores:
    """Scores of one run.

    Attributes:
        accuracy: accuracy over all test samples, a fraction.
        macro_f1: mean macro-F1 over clients, a fraction.
        ari: adjusted Rand index to the true groups.
    """

    accuracy: float
    macro_f1: float
    ari: float

    def __str__(self) -> str:
        return f"{100 * self.accuracy:.1f} / {100 * self.macro_f1:.1f} / {self.ari:.2f}"

    @classmethod
    def mean(cls, runs: Sequence[Scores]) -> Scores:
        """Mean of each score over runs."""
        return cls(*(mean(scores) for scores in zip(*map(astuple, runs), strict=True)))


def scored(method: Method, clients: Partition, seed: int, rounds: int = ROUNDS) -> Scores:
    """Run a method and score its last round.

    Args:
        method: the method.
        clients: partition of the data.
        seed: seed of the run.
        rounds: number of rounds.
    """
    model = models.mlp((1, 8, 8), 32, 10)
    run = Federation(clients, model, method, seed=seed).run(rounds)
    scores = run.metrics()
    return Scores(scores["accuracy"], scores["macro_f1"], scores["ari"])


def row(name: str, numbers: Sequence[int], score: Callable[[Method], Scores]) -> list[Scores]:
    """Scores of a method for each number of clusters; a method without this option runs once.

    Args:
        name: name of the method.
        numbers: numbers of clusters.
        score: runs a method and scores it.
    """
    with_number = [
        methods.build(name, **methods.applicable(name, {"num_clusters": number}))
        for number in numbers
    ]
    if all(method == with_number[0] for method in with_number):
        return [score(with_number[0])] * len(numbers)
    return [score(method) for method in with_number]


def main(
    seeds: Sequence[int],
    kind: str = "label-skew",
    names: Sequence[str] = METHODS,
    numbers: Sequence[int] = NUMBERS,
    rounds: int = ROUNDS,
) -> None:
    """Print a table with a row per method and a column per number of clusters.

    Args:
        seeds: seeds of draws and runs.
        kind: partition; see `KINDS`.
        names: names of methods.
        numbers: numbers of clusters.
        rounds: number of rounds.
    """
    digits = datasets.load("optdigits")
    drawn = [KINDS[kind](digits, clients=40, seed=seed) for seed in seeds]

    def score(method: Method) -> Scores:
        """Mean scores over the seeds."""
        pairs = zip(drawn, seeds, strict=True)
        return Scores.mean([scored(method, clients, seed, rounds) for clients, seed in pairs])

    table = Table("accuracy / F1 / ARI", *(f"K = {number}" for number in numbers), title=kind)
    with limited_threads(1):
        for name in track(names, description=kind):
            table.add_row(name, *map(str, row(name, numbers, score)))
    Console(width=24 * (len(numbers) + 1)).print(table)


def parsed(words: Sequence[str] | None = None) -> argparse.Namespace:
    """Parse the command line."""
    line = CommandLine(__doc__)
    line.argument("seeds", positive, 3, "number of seeds")
    line.argument("kind", str, "label-skew", "partition", KINDS)
    line.argument("methods", several(method_name()), ",".join(METHODS), "methods")
    return line.parse_args(words)


if __name__ == "__main__":
    given = parsed()
    main(range(given.seeds), given.kind, given.methods)
