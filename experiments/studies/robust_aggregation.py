"""Robust means against a client of each group that sends its update with the opposite sign.

Digits of 40 clients in 4 groups. From the first round on, the first client of each group sends the
model that it received minus some times the update that it found. Prints the accuracy of the other
clients in per cent and the adjusted Rand index of their clusters to the true groups, with and
without hostile clients, averaged over the seeds.
`python -m experiments.studies.robust_aggregation SEEDS KIND`, 3 seeds of `label-skew` by default;
the other kind is `rotated`.
"""

from __future__ import annotations

import argparse
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, replace
from statistics import fmean

from rich.console import Console
from rich.progress import track
from rich.table import Table

from bcfl import Federation, Method, Model, methods
from bcfl.executors import Executor, Outcomes
from bcfl.hypotheses import Posterior
from bcfl.protocol import Request, Train, Trained
from bcfl.runtime import limited_threads
from experiments import datasets, models
from experiments.config.command_line import CommandLine, positive
from experiments.partitions import Partition
from experiments.studies.misspecified_clusters import KINDS

ROUNDS = 25
STRENGTHS = (0.0, 1.0, 10.0)
RULES = ("", "-median", "-trimmed-mean")
METHODS: Mapping[str, Mapping[str, str]] = {
    "fedavg": {},
    "ifca": {},
    "wecfl": {},
    "bcfl-g": {"curvature": "samples"},
}


@dataclass(frozen=True, eq=False)
class SignFlipping:
    """Passes on all answers; hostile clients' updates with the opposite sign, enlarged.

    Attributes:
        executor: answers for the clients.
        model: the architecture.
        hostile: names of the hostile clients.
        strength: factor of their updates.
    """

    executor: Executor
    model: Model
    hostile: frozenset[str]
    strength: float

    def answer(
        self, requests: Sequence[Request], models: Mapping[str, Posterior], round: int
    ) -> Outcomes:
        """Answer requests; see `Executor`."""
        outcomes = self.executor.answer(requests, models, round)
        for request, outcome in outcomes.items():
            if isinstance(outcome, Trained) and request.client in self.hostile:
                assert isinstance(request, Train)
                start = models[request.start].mean(self.model)
                flipped = start - self.strength * (outcome.mean - start)
                outcomes[request] = replace(outcome, mean=flipped)
        return outcomes


def hostile_clients(groups: Mapping[str, int | None]) -> frozenset[str]:
    """The first client of each group.

    Args:
        groups: true group by client.
    """
    return frozenset(min(c for c in groups if groups[c] == g) for g in set(groups.values()))


def scores(method: Method, clients: Partition, seed: int, strength: float) -> tuple[float, float]:
    """Accuracy of the honest clients, a fraction, and the adjusted Rand index of all.

    Args:
        method: the method.
        clients: partition of the data.
        seed: seed of the run.
        strength: factor of the hostile clients' updates; 0 has them honest.
    """
    federation = Federation(clients, models.mlp((1, 8, 8), 32, 10), method, seed=seed)
    hostile = hostile_clients({data.client: data.group for data in federation.clients})
    executor = federation.executor_of(ROUNDS)
    if strength:
        executor = SignFlipping(executor, federation.model, hostile, strength)
    run = federation.run(ROUNDS, executor=executor)
    tests = run.records[-1].evaluations
    honest = [tests[name] for name in tests if name not in hostile]
    correct = sum(float(one.confusion.trace()) for one in honest)
    return correct / sum(one.num_samples for one in honest), run.metrics()["ari"]


def cell(pairs: Iterable[tuple[float, float]]) -> str:
    """Text of the means of accuracy and index over the seeds."""
    accuracies, indices = zip(*pairs, strict=True)
    return f"{100 * fmean(accuracies):.1f} / {fmean(indices):.2f}"


def main(seeds: Sequence[int], kind: str = "label-skew") -> None:
    """Print a table with a row per method and rule.

    Args:
        seeds: seeds of draws and runs.
        kind: partition; see `misspecified_clusters.KINDS`.
    """
    digits = datasets.load("optdigits")
    drawn = [(KINDS[kind](digits, clients=40, seed=seed), seed) for seed in seeds]
    table = Table("accuracy / ARI", *(f"strength {strength:g}" for strength in STRENGTHS))
    named = [(f"{name}{rule}", options) for name, options in METHODS.items() for rule in RULES]
    with limited_threads(1):
        for name, options in track(named, description=kind):
            method = methods.build(name, **methods.applicable(name, {"num_clusters": 4, **options}))
            table.add_row(
                name,
                *(
                    cell(scores(method, clients, seed, strength) for clients, seed in drawn)
                    for strength in STRENGTHS
                ),
            )
    Console(width=100).print(table)


def parsed(words: Sequence[str] | None = None) -> argparse.Namespace:
    """Parse the command line."""
    line = CommandLine(__doc__)
    line.argument("seeds", positive, 3, "number of seeds")
    line.argument("kind", str, "label-skew", "partition", KINDS)
    return line.parse_args(words)


if __name__ == "__main__":
    given = parsed()
    main(range(given.seeds), given.kind)
