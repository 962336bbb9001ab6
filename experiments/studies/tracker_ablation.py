"""Which pieces of the multi-hypothesis tracker pay: each switched off, or on, in turn.

Runs `bcfl-mht-8` and its variants on digits whose groups are turned, and on digits whose groups
differ in their classes, and prints accuracy, the number of clusters with clients and the adjusted
Rand index per seed, and the trainings done (1,000 are the greedy tracker's). All clients take part
in every round, so none is absent whose last words would count.
`python -m experiments.studies.tracker_ablation SEEDS CLUSTERS`, 10 seeds and 4 clusters, as many
as there are groups, by default. With `auto` for CLUSTERS it switches the moves by which the number
of clusters is found, from one cluster and from eight.
"""

from __future__ import annotations

import sys
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
from bcfl.methods.choices import Move
from bcfl.policies import LikelihoodAssociation
from bcfl.policies.bayes.association_prior import AssociationPrior
from bcfl.runtime.devices import limited_threads
from bcfl.trackers import AdaptiveMultiHypothesis, MultiHypothesis, Tracker
from bcfl.trackers.proposals import SplitAndFree, Swap
from bcfl.trackers.survival import AncestorQuota, NScan
from experiments import datasets, models, partitions
from experiments.partitions import Partition
from experiments.scores import metrics

ROUNDS = 25
FULL = AdaptiveMultiHypothesis(8)
STAYING = 0.9
MOVES: Mapping[str, tuple[Move, ...]] = {
    "split, birth and death": ("split", "birth", "death"),
    "no split": ("birth", "death"),
    "no birth": ("split", "death"),
    "no death": ("split", "birth"),
    "merge for death": ("split", "birth", "merge"),
    "merge beside death": ("split", "birth", "death", "merge"),
    "swap beside split": ("split", "swap", "birth", "death"),
}


def variants_of_auto() -> Mapping[str, Method]:
    """Without each of the moves that find the number of clusters, from either start."""
    return {
        f"from {first}: {name}": methods.bcfl_mht(
            num_clusters="auto", first_clusters=first, moves=moves
        )
        for first in (1, 8)
        for name, moves in MOVES.items()
    }


def variants(num_clusters: int = 4) -> Mapping[str, Method]:
    """The tracker, without each of its pieces, and with each that it does not have."""
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
    """Those that need one start and nothing else of the method to differ."""
    return {
        "without proposals": replace(FULL, proposals=()),
        "with swaps": replace(FULL, proposals=(SplitAndFree(), Swap())),
        "swaps alone": replace(FULL, proposals=(Swap(),)),
        "any split into empty slots": replace(FULL, proposals=(SplitAndFree(min_gain=-inf),)),
        "without merging near copies": replace(FULL, near_copies=None),
        "without adapting M": replace(FULL, adapt=False),
        "none of the three": replace(FULL, proposals=(), near_copies=None, adapt=False),
        "literal, temperature 1": MultiHypothesis(8),
        "with N-scan 3": replace(FULL, n_scan=NScan(3)),
    }


@dataclass(frozen=True)
class ClientPredictions:
    """What one run ended with; K counts the clusters that have clients."""

    num_clusters: int
    ari: float
    accuracy: float
    trainings: int


def outcome(method: Method, clients: Partition, seed: int) -> ClientPredictions:
    """Run a method; the score is that of the last round."""
    model = models.mlp((1, 8, 8), 32, 10)
    run = Federation(clients, model, method, seed=seed).run(ROUNDS)
    leading = run.hypotheses.best.association
    groups = [run.groups[client] or 0 for client in leading.clients]
    return ClientPredictions(
        int((leading.sizes > 0).sum()),
        metrics.ari(groups, leading.labels.tolist()),
        metrics.micro_accuracy(run.records[-1].evaluations),
        sum(record.ledger.trainings_done for record in run.records),
    )


def main(seeds: Sequence[int], chosen: Mapping[str, Method]) -> None:
    """Print one table for each kind of digits."""
    digits, console = datasets.load("optdigits"), Console()
    drawn = {
        "rotated": [partitions.rotated(digits, clients=40, seed=s) for s in seeds],
        "label skew": [partitions.two_stage_dirichlet(digits, clients=40, seed=s) for s in seeds],
    }
    with limited_threads(1):
        for kind, every in drawn.items():
            table = Table(
                "variant", "accuracy", "K", "ARI per seed", "ARI", "trainings", title=kind
            )
            for name, method in track(chosen.items(), description=kind):
                found = [outcome(method, c, s) for c, s in zip(every, seeds, strict=True)]
                table.add_row(
                    name,
                    f"{100 * mean(one.accuracy for one in found):.1f}",
                    " ".join(str(one.num_clusters) for one in found),
                    " ".join(f"{one.ari:.2f}".lstrip("0") for one in found),
                    f"{mean(one.ari for one in found):.2f}",
                    f"{mean(one.trainings for one in found):.0f}",
                )
            console.print(table)


if __name__ == "__main__":
    seeds, clusters = [*sys.argv[1:], *("10", "4")[len(sys.argv) - 1 :]]
    main(range(int(seeds)), variants_of_auto() if clusters == "auto" else variants(int(clusters)))
