"""Ablation of the multi-hypothesis tracker: each component switched off, or on, in turn.

Runs `bcfl-mht-8` and its variants on rotated digits and on digits with label skew, and prints
accuracy, the number of non-empty clusters and the adjusted Rand index per seed, and the local
trainings run (1,000 for the greedy tracker). All clients participate in every round.
`python -m experiments.studies.tracker_ablation SEEDS CLUSTERS`, 10 seeds and 4 clusters, the number
of groups, by default. With `auto` for CLUSTERS it ablates the moves that estimate the number of
clusters, initialised with one cluster and with eight.
"""

from __future__ import annotations

import argparse
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from functools import partial
from math import inf
from statistics import mean
from typing import cast

from rich.console import Console
from rich.progress import track
from rich.table import Table

from bcfl import Federation, Method, methods
from bcfl.methods import Move
from bcfl.policies import AssociationPrior, LikelihoodAssociation
from bcfl.runtime import limited_threads
from bcfl.trackers import (
    AdaptiveMultiHypothesis,
    AncestorQuota,
    MultiHypothesis,
    NScan,
    SplitAndFree,
    Tracker,
)
from experiments import datasets, models, partitions
from experiments.config.command_line import CommandLine, positive
from experiments.partitions import Partition

ROUNDS = 25
FULL = AdaptiveMultiHypothesis(max_hypotheses=8)
STAYING = 0.9
MOVES: Mapping[str, tuple[Move, ...]] = {
    "split, birth and death": ("split", "birth", "death"),
    "no split": ("birth", "death"),
    "no birth": ("split", "death"),
    "no death": ("split", "birth"),
    "merge for death": ("split", "birth", "merge"),
    "merge beside death": ("split", "birth", "death", "merge"),
}


def variants_of_auto() -> Mapping[str, Method]:
    """Variants without each of the moves that estimate the number of clusters."""
    return {
        f"from {first}: {name}": methods.bcfl_mht(
            num_clusters="auto", first_clusters=first, moves=moves
        )
        for first in (1, 8)
        for name, moves in MOVES.items()
    }


def variants(num_clusters: int = 4) -> Mapping[str, Method]:
    """Variants without each component, and with each optional component."""
    tracked = partial(methods.bcfl_mht, num_clusters=num_clusters)
    method = tracked()
    by_size = AssociationPrior(concentration=1.0)
    policy = replace(cast(LikelihoodAssociation, method.policy), prior=by_size)
    accumulating = replace(method.aggregation, memory="accumulate")
    starts = replace(FULL, proposals=(), quota=AncestorQuota(8))
    quota = replace(FULL, quota=AncestorQuota(8))
    return {
        "bcfl-mht-8": method,
        **{name: replace(method, tracker=tracker) for name, tracker in trackers().items()},
        "8 starts with quota, no proposals": replace(method, tracker=starts, starts=8),
        "2 starts with quota": replace(method, tracker=quota, starts=2),
        "weights accumulated": replace(method, aggregation=accumulating),
        "prior by size": replace(method, policy=policy),
        "sticky prior": tracked(staying=STAYING),
        "flat posteriors": tracked(curvature="samples"),
        "fitted temperature": tracked(temperature="auto"),
    }


def trackers() -> Mapping[str, Tracker]:
    """Variants of the tracker alone, with one initial hypothesis."""
    return {
        "without proposals": replace(FULL, proposals=()),
        "any split into empty slots": replace(FULL, proposals=(SplitAndFree(min_gain=-inf),)),
        "without merging near copies": replace(FULL, near_copies=None),
        "without adapting M": replace(FULL, adapt=False),
        "none of the three": replace(FULL, proposals=(), near_copies=None, adapt=False),
        "literal, temperature 1": MultiHypothesis(8),
        "with N-scan 3": replace(FULL, n_scan=NScan(3)),
    }


@dataclass(frozen=True)
class RunScores:
    """Final scores of a run.

    Attributes:
        num_clusters: number of non-empty clusters.
        ari: adjusted Rand index to the true groups.
        accuracy: accuracy over all test samples, a fraction.
        trainings: local trainings run after deduplication.
    """

    num_clusters: int
    ari: float
    accuracy: float
    trainings: int


def scored(method: Method, clients: Partition, seed: int) -> RunScores:
    """Run a method and score its last round.

    Args:
        method: the method.
        clients: partition of the data.
        seed: seed of the run.
    """
    model = models.mlp((1, 8, 8), 32, 10)
    run = Federation(clients, model, method, seed=seed).run(ROUNDS)
    leading, scores = run.hypotheses.best.association, run.metrics()
    return RunScores(
        int((leading.sizes > 0).sum()),
        scores["ari"],
        scores["accuracy"],
        sum(record.ledger.trainings_run for record in run.records),
    )


def main(seeds: Sequence[int], chosen: Mapping[str, Method]) -> None:
    """Print a table for each partition.

    Args:
        seeds: seeds of draws and runs.
        chosen: variants by name.
    """
    digits, console = datasets.load("optdigits"), Console()
    drawn = {
        "rotated": [partitions.rotated(digits, clients=40, seed=s) for s in seeds],
        "label skew": [partitions.two_stage_dirichlet(digits, clients=40, seed=s) for s in seeds],
    }
    with limited_threads(1):
        for kind, splits in drawn.items():
            table = Table(
                "variant", "accuracy", "K", "ARI per seed", "ARI", "trainings", title=kind
            )
            for name, method in track(chosen.items(), description=kind):
                runs = [scored(method, c, s) for c, s in zip(splits, seeds, strict=True)]
                table.add_row(
                    name,
                    f"{100 * mean(run.accuracy for run in runs):.1f}",
                    " ".join(str(run.num_clusters) for run in runs),
                    " ".join(f"{run.ari:.2f}".lstrip("0") for run in runs),
                    f"{mean(run.ari for run in runs):.2f}",
                    f"{mean(run.trainings for run in runs):.0f}",
                )
            console.print(table)


def _clusters(text: str) -> int | str:
    return text if text == "auto" else positive(text)


def parsed(words: Sequence[str] | None = None) -> argparse.Namespace:
    """Parse the command line."""
    line = CommandLine(__doc__)
    line.argument("seeds", positive, 10, "number of seeds")
    line.argument("clusters", _clusters, 4, "number of clusters, or auto")
    return line.parse_args(words)


if __name__ == "__main__":
    given = parsed()
    auto = given.clusters == "auto"
    main(range(given.seeds), variants_of_auto() if auto else variants(given.clusters))
