"""Estimation of the number of clusters by `bcfl-mht-8`, where the data identify it.

A draw is well posed if the true groups have a lower validation loss than any merge of two of them,
each trained with known groups. For ten draws of each partition of digits this prints the margin in
nats, the estimated number of clusters, initialised with one and with eight clusters, and the
accuracy in per cent, next to that with four given clusters.
`python -m experiments.studies.number_of_clusters SEEDS`, 10 by default.
"""

from __future__ import annotations

import argparse
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from itertools import combinations
from typing import cast

from rich.console import Console
from rich.progress import track
from rich.table import Table

from bcfl import Federation, Hypothesis, Method, Objective, methods
from bcfl.analysis import metrics
from bcfl.data import VALIDATION
from bcfl.policies import Ranking, RoundContext, candidate
from bcfl.protocol import LossSum, Score, Steps
from bcfl.runtime import limited_threads
from experiments import datasets, models, partitions
from experiments.config.command_line import CommandLine, positive
from experiments.partitions import Partition

ROUNDS, SHARE = 25, 0.25
MODEL = models.mlp((1, 8, 8), 32, 10)


@dataclass(frozen=True)
class Known:
    """Policy with known cluster assignments.

    Attributes:
        labels: cluster by client.
        objective: objective of local training.
    """

    labels: Mapping[str, int]
    objective: Objective

    @property
    def num_clusters(self) -> int:
        """Number of clusters."""
        return max(self.labels.values()) + 1

    def associate(self, hypothesis: Hypothesis, context: RoundContext) -> Steps[Ranking]:
        """See `Policy.associate`."""
        yield from ()
        labels = {client: self.labels[client] for client in context.participants}
        return Ranking.only(candidate(hypothesis, labels, self.objective))


def held_out_loss(clients: Partition, labels: Mapping[str, int], seed: int) -> float:
    """Summed validation loss after training with known clusters, nats.

    Args:
        clients: partition of the data.
        labels: cluster by client.
        seed: seed of the run.
    """
    method = Method(policy=Known(labels, Objective()), common_start=True, validation=SHARE)
    federation = Federation(clients, MODEL, method, seed=seed, evaluate=False)
    clusters = federation.run(ROUNDS).hypotheses.best.clusters
    requests = [
        Score(client=c, models=(clusters[k].key,), view=VALIDATION) for c, k in labels.items()
    ]
    answers = federation.engine.answer(requests, {p.key: p for p in clusters}, ROUNDS)
    losses = [cast(Mapping[str, LossSum], answers[s])[s.models[0]].total for s in requests]
    return sum(losses)


def margin(clients: Partition, groups: Mapping[str, int], seed: int) -> float:
    """Difference of validation loss between the best merge of two groups and the groups, nats.

    Args:
        clients: partition of the data.
        groups: true group by client.
        seed: seed of the runs.
    """
    count = max(groups.values()) + 1
    merged = []
    for kept, removed in combinations(range(count), 2):
        names = {group: group - (group > removed) for group in range(count)} | {removed: kept}
        labels = {client: names[group] for client, group in groups.items()}
        merged.append(held_out_loss(clients, labels, seed))
    return min(merged) - held_out_loss(clients, groups, seed)


@dataclass(frozen=True)
class Found:
    """Final scores of a run.

    Attributes:
        num_clusters: number of non-empty clusters.
        ari: adjusted Rand index to the true groups.
        accuracy: accuracy over all test samples, a fraction.
    """

    num_clusters: int
    ari: float
    accuracy: float

    def __str__(self) -> str:
        return f"{self.num_clusters} / {self.ari:.2f} / {100 * self.accuracy:.1f}"


def variants() -> Mapping[str, Method]:
    """`bcfl-mht-8`, with and without a given number of clusters."""
    return {
        "from one: K / ARI / accuracy": methods.bcfl_mht(num_clusters="auto", first_clusters=1),
        "from eight": methods.bcfl_mht(num_clusters="auto", first_clusters=8),
        "K = 4": methods.bcfl_mht(num_clusters=4),
    }


def outcome(clients: Partition, groups: Mapping[str, int], seed: int, method: Method) -> Found:
    """Run the tracker; K counts the clusters of the most probable hypothesis with clients.

    Args:
        clients: the partition.
        groups: true group of each client.
        seed: of networks and draws.
        method: with its tracker.
    """
    run = Federation(clients, MODEL, method, seed=seed).run(ROUNDS)
    leading = run.hypotheses.best.association
    return Found(
        int((leading.sizes > 0).sum()),
        metrics.ari([groups[c] for c in leading.clients], leading.labels.tolist()),
        metrics.micro_accuracy(run.records[-1].evaluations),
    )


def main(seeds: Sequence[int]) -> None:
    """Print a table for each partition."""
    digits, console = datasets.load("optdigits"), Console()
    kinds: Mapping[str, Callable[..., Partition]] = {
        "rotated": partitions.rotated,
        "label skew": partitions.two_stage_dirichlet,
    }
    with limited_threads(1):
        for kind, draw in kinds.items():
            table = Table("seed", "margin, nats", "well posed", *variants(), title=kind)
            for seed in track(seeds, description=kind):
                clients = draw(digits, clients=40, seed=seed)
                groups = {c: g for c, g in (clients.groups or {}).items() if g is not None}
                nats = margin(clients, groups, seed)
                outcomes = [
                    str(outcome(clients, groups, seed, method)) for method in variants().values()
                ]
                table.add_row(str(seed), f"{nats:.1f}", "yes" if nats > 0 else "no", *outcomes)
            console.print(table)


def parsed(words: Sequence[str] | None = None) -> argparse.Namespace:
    """Parse the command line."""
    line = CommandLine(__doc__)
    line.argument("seeds", positive, 10, "number of seeds")
    return line.parse_args(words)


if __name__ == "__main__":
    main(range(parsed().seeds))
