"""Which pieces of the multi-hypothesis tracker pay: each switched off, or on, in turn.

Runs `bcfl-mht-8` and its variants on digits whose groups are turned, and on digits whose groups
differ in their classes, and prints the adjusted Rand index per seed and the trainings done (1,000
are the greedy tracker's). `python -m experiments.examples.tracker_ablation SEEDS`, 10 by default.
"""

from __future__ import annotations

import sys
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from statistics import mean

from rich.console import Console
from rich.progress import track
from rich.table import Table

from bcfl import Federation, Method, methods
from bcfl.devices import limited_threads
from bcfl.trackers import AdaptiveMultiHypothesis, MultiHypothesis
from bcfl.trackers.survival import AncestorQuota, NScan
from experiments import datasets, metrics, models, partitions
from experiments.partitions import Partition

ROUNDS = 25
FULL = AdaptiveMultiHypothesis(8)


def variants() -> Mapping[str, Method]:
    """The tracker, without each of its pieces, and with each that it does not have."""
    method = methods.build("bcfl-mht-8")
    bare = replace(FULL, proposals=(), near_copies=None, adapt=False)
    starts = replace(FULL, proposals=(), quota=AncestorQuota(8))
    return {
        "bcfl-mht-8": method,
        "without proposals": replace(method, tracker=replace(FULL, proposals=())),
        "without merging near copies": replace(method, tracker=replace(FULL, near_copies=None)),
        "without adapting M": replace(method, tracker=replace(FULL, adapt=False)),
        "none of the three": replace(method, tracker=bare),
        "literal, temperature 1": replace(method, tracker=MultiHypothesis(8)),
        "with N-scan 3": replace(method, tracker=replace(FULL, n_scan=NScan(3))),
        "8 starts with quota, no proposals": replace(method, tracker=starts, starts=8),
        "2 starts with quota": replace(
            method, tracker=replace(FULL, quota=AncestorQuota(8)), starts=2
        ),
        "weights accumulated": replace(
            method, aggregation=replace(method.aggregation, memory="accumulate")
        ),
        "flat posteriors": methods.build("bcfl-mht-8", methods.Settings(curvature="samples")),
        "fitted temperature": methods.build("bcfl-mht-8", methods.Settings(temperature="auto")),
    }


@dataclass(frozen=True)
class Outcome:
    """What one run ended with."""

    ari: float
    accuracy: float
    trainings: int


def outcome(method: Method, clients: Partition, seed: int) -> Outcome:
    """Run a method; the score is that of the last round."""
    model = models.mlp((1, 8, 8), 32, 10)
    run = Federation(clients, model, method, seed=seed).run(ROUNDS)
    leading = run.hypotheses.best.association
    groups = [run.groups[client] or 0 for client in leading.clients]
    return Outcome(
        metrics.ari(groups, leading.labels.tolist()),
        metrics.micro_accuracy(run.records[-1].evaluations),
        sum(record.ledger.trainings_done for record in run.records),
    )


def main(seeds: Sequence[int]) -> None:
    """Print one table for each kind of digits."""
    digits, console = datasets.load("optdigits"), Console()
    drawn = {
        "rotated": [partitions.rotated(digits, clients=40, seed=s) for s in seeds],
        "label skew": [partitions.two_stage_dirichlet(digits, clients=40, seed=s) for s in seeds],
    }
    with limited_threads(1):
        for kind, every in drawn.items():
            table = Table("variant", "accuracy", "ARI", "ARI per seed", "trainings", title=kind)
            for name, method in track(variants().items(), description=kind):
                found = [outcome(method, c, s) for c, s in zip(every, seeds, strict=True)]
                table.add_row(
                    name,
                    f"{100 * mean(one.accuracy for one in found):.1f}",
                    f"{mean(one.ari for one in found):.2f}",
                    " ".join(f"{one.ari:.2f}".lstrip("0") for one in found),
                    f"{mean(one.trainings for one in found):.0f}",
                )
            console.print(table)


if __name__ == "__main__":
    main(range(int(sys.argv[1]) if len(sys.argv) > 1 else 10))
