"""What do the methods do when they are given the wrong number of clusters?

The clients come in four groups; each method that must be told how many clusters there are is told
that there are 2 to 6 (BCFL, Table 8, on handwritten digits), beside FedAvg. Prints accuracy and
macro-F1 in per cent and the adjusted Rand index to the true groups, averaged over the seeds.
`python -m experiments.studies.misspecified_clusters SEEDS KIND METHODS`, 3 seeds of `label-skew`
and all methods by default; the other kind is `rotated`, and `ifca,bcfl-mht-8` names two methods.
"""

from __future__ import annotations

import sys
from collections.abc import Callable, Mapping, Sequence
from dataclasses import astuple, dataclass
from statistics import mean

from rich.console import Console
from rich.progress import track
from rich.table import Table

from bcfl import Federation, Method, methods
from bcfl.runtime.devices import limited_threads
from experiments import datasets, models, partitions
from experiments.partitions import Partition
from experiments.scores import metrics

METHODS = (
    *("fedavg", "ocfl-kmeans", "fedgroup", "fedsoft", "ifca", "ifca-w", "fesem", "wecfl"),
    *("bcfl-g", "bcfl-g-w", "bcfl-forget", "bcfl-asym"),
    *("bcfl-c-3", "bcfl-c-3-w", "bcfl-c-6", "bcfl-c-6-w"),
    *("bcfl-mh-3", "bcfl-mh-3-w", "bcfl-mh-6", "bcfl-mh-6-w", "bcfl-mht-8"),
)
NUMBERS = (2, 3, 4, 5, 6)
ROUNDS = 25
KINDS: Mapping[str, Callable[..., Partition]] = {
    "label-skew": partitions.two_stage_dirichlet,
    "rotated": partitions.rotated,
}


@dataclass(frozen=True)
class Scores:
    """How good one run's models and its clusters are, all as fractions."""

    accuracy: float
    macro_f1: float
    ari: float

    def __str__(self) -> str:
        return f"{100 * self.accuracy:.1f} / {100 * self.macro_f1:.1f} / {self.ari:.2f}"

    @classmethod
    def mean(cls, of: Sequence[Scores]) -> Scores:
        """The mean of each score."""
        return cls(*(mean(scores) for scores in zip(*map(astuple, of), strict=True)))


def scored(method: Method, clients: Partition, seed: int, rounds: int = ROUNDS) -> Scores:
    """Run a method and score its last round."""
    model = models.mlp((1, 8, 8), 32, 10)
    run = Federation(clients, model, method, seed=seed).run(rounds)
    leading = run.hypotheses.best.association
    groups = [run.groups[client] or 0 for client in leading.clients]
    tests = run.records[-1].evaluations
    return Scores(
        metrics.micro_accuracy(tests),
        metrics.macro_f1_per_client(tests),
        metrics.ari(groups, leading.labels.tolist()),
    )


def row(name: str, numbers: Sequence[int], score: Callable[[Method], Scores]) -> list[Scores]:
    """A method's scores for each number of clusters; one that makes nothing of it is run once."""
    told = [
        methods.build(name, **methods.applicable(name, {"num_clusters": number}))
        for number in numbers
    ]
    if all(method == told[0] for method in told):
        return [score(told[0])] * len(numbers)
    return [score(method) for method in told]


def main(
    seeds: Sequence[int],
    kind: str = "label-skew",
    names: Sequence[str] = METHODS,
    numbers: Sequence[int] = NUMBERS,
    rounds: int = ROUNDS,
) -> None:
    """Print a table with a row for each method and a column for each number of clusters."""
    digits = datasets.load("optdigits")
    drawn = [KINDS[kind](digits, clients=40, seed=seed) for seed in seeds]

    def score(method: Method) -> Scores:
        """Over the seeds."""
        pairs = zip(drawn, seeds, strict=True)
        return Scores.mean([scored(method, clients, seed, rounds) for clients, seed in pairs])

    table = Table("accuracy / F1 / ARI", *(f"K = {number}" for number in numbers), title=kind)
    with limited_threads(1):
        for name in track(names, description=kind):
            table.add_row(name, *map(str, row(name, numbers, score)))
    Console(width=24 * (len(numbers) + 1)).print(table)


if __name__ == "__main__":
    main(
        range(int(sys.argv[1]) if len(sys.argv) > 1 else 3),
        sys.argv[2] if len(sys.argv) > 2 else "label-skew",
        sys.argv[3].split(",") if len(sys.argv) > 3 else METHODS,
    )
