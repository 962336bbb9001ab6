"""Streams under two concepts: tables 4.1 to 4.4 of the FAACL thesis, on MNIST.

`python -m experiments.studies.continual` runs the sequential and the multi-task stream of shifted
labels (S2) and prints, for each, the accuracy at the end of each time step, its mean next to the
published one (100 rounds per step there), the retention of earlier steps, and the clusters in use.
`--concepts` selects the other three: halves of the classes (S1), noise (A1), few samples with
merged classes (A2). `--orders sequential --rounds 20 --methods c-faacl` is a quick version.
"""

from __future__ import annotations

import argparse
from collections import Counter
from collections.abc import Mapping, Sequence
from itertools import product
from pathlib import Path

from rich.console import Console

from bcfl.data import Schedule
from bcfl.hypotheses import LeadingClusters
from bcfl.methods import RECIPES
from experiments.config.command_line import CommandLine, one_of, several
from experiments.runs.files import Pair
from experiments.runs.restore import Restored, restore
from experiments.runs.run_folder import RunFolder
from experiments.scores.retention import Retention
from experiments.studies.run_tables import (
    Sizes,
    finished,
    first_mean_largest,
    markdown,
    over_seeds,
)

CONCEPTS = ("s1", "s2", "a1", "a2")
ORDERS = ("sequential", "multi-task")
ROWS = ("ewc", "apd", "ssgd", "feddrift", "fedweit", "c-faacl")
NUMBERS = (("faacl", "epsilon"), ("feddrift", "delta"))
"""Options that the title of a table names, by method."""
PUBLISHED: Mapping[tuple[str, str], Mapping[str, float]] = {
    key: dict(zip(ROWS, column, strict=True))
    for key, column in {
        ("s1", "sequential"): (93.51, 97.23, 96.42, 96.55, 97.81, 97.00),
        ("s2", "sequential"): (90.26, 86.59, 89.20, 97.83, 87.98, 97.67),
        ("a1", "sequential"): (83.29, 85.83, 86.18, 89.83, 88.62, 91.97),
        ("a2", "sequential"): (81.14, 83.65, 85.61, 89.26, 87.84, 90.96),
        ("s1", "multi-task"): (90.21, 93.47, 94.82, 95.94, 94.39, 94.73),
        ("s2", "multi-task"): (49.15, 80.48, 49.98, 95.25, 84.34, 96.41),
        ("a1", "multi-task"): (81.11, 81.69, 82.80, 84.49, 85.16, 88.15),
        ("a2", "multi-task"): (79.42, 81.81, 83.16, 85.58, 83.64, 87.06),
    }.items()
}
"""MNIST columns of tables 4.1 to 4.4 of the thesis."""
METHODS = (
    *("fedavg", "ewc", "apd", "ssgd", "fedweit"),
    *("feddrift", "faacl", "c-faacl", "bcfl-forget"),
)
DEFAULTS = Sizes(METHODS, (0, 1, 2), 60, Path("runs/continual"))
MOST_SHOWN = 3


def main(
    sizes: Sizes = DEFAULTS,
    orders: tuple[str, ...] = ORDERS,
    concepts: tuple[str, ...] = ("s2",),
) -> None:
    """Run or resume all runs, and print two tables for each concept and order.

    Args:
        sizes: methods, seeds, rounds and output folder.
        orders: orders of concepts; see `ORDERS`.
        concepts: concepts; see `CONCEPTS`.

    Raises:
        ValueError: an order or a concept is unknown.
    """
    pairs = list(product(concepts, orders))
    for concept, order in pairs:
        if (concept, order) not in PUBLISHED:
            raise ValueError(
                f"concepts must be among {', '.join(CONCEPTS)}, and orders among "
                f"{', '.join(ORDERS)}, got {concept!r}, {order!r}"
            )
    screen, out = Console(stderr=True), Console(width=250)
    for concept, order in pairs:
        published = PUBLISHED[concept, order]
        name = f"faacl-mnist-{concept}-{order}"
        run, folder = finished(name, sizes, screen), sizes.out / name
        seeds = run.seeds(run.methods[0])
        restored = {
            method: [restore(folder, Pair(method, seed)) for seed in seeds]
            for method in run.methods
        }
        rounds = run.series(run.methods[0], "round").shape[1]
        schedule = Schedule.of(restored[run.methods[0]][0].clients, rounds)
        usual = {name: RECIPES[method].options[name].default for method, name in NUMBERS}
        rules = {**usual, **run.scenario["federation"]}
        title = (
            f"**{concept.upper()}, {order}**, {rounds} rounds, seeds {', '.join(map(str, seeds))}, "
            f"epsilon {rules['epsilon']}, delta {rules['delta']}: accuracy in percent"
        )
        steps = [f"step {step}" for step in range(schedule.num_steps)]
        head = [
            "method",
            *steps,
            "mean",
            "thesis",
            "served",
            "kept",
            "MB: first / mean / largest round",
        ]
        rows = [accuracies(run, m, schedule, restored[m], published) for m in run.methods]
        markdown(title, head, rows, out)
        out.print(
            "served, kept: accuracy on the test samples of earlier steps of the serving model, "
            "and of the client's predictor of that step, or else of the cluster that fits the "
            "memory best; backward transfer: change of the latter since the end of the step",
            soft_wrap=True,
            markup=False,
        )
        used = [[m, *clusters(restored[m][0], schedule)] for m in run.methods]
        markdown(
            f"clusters in use, seed {seeds[0]}: number x clients", ["method", *steps], used, out
        )


def accuracies(
    run: RunFolder,
    method: str,
    schedule: Schedule,
    restored: list[Restored],
    published: Mapping[str, float],
) -> list[str]:
    """A row of the first table.

    Args:
        run: the runs of a scenario.
        method: name of the method.
        schedule: time steps of the rounds.
        restored: final states of the method by seed.
        published: published mean accuracy by method, percent.
    """
    ends = last_rounds(schedule)
    accuracy = 100 * run.series(method, "accuracy")[:, ends]
    kept = [Retention.of(r.model, r.state.hypotheses.best, r.clients) for r in restored]
    traffic = run.series(method, "bytes_down") + run.series(method, "bytes_up")
    return [
        method,
        *(over_seeds(step.tolist(), ".1f") for step in accuracy.T),
        over_seeds(accuracy.mean(axis=1).tolist(), ".2f", spread=True),
        format(published[method], ".2f") if method in published else "–",
        over_seeds([100 * retention.served for retention in kept], ".1f"),
        over_seeds([100 * retention.kept for retention in kept], ".1f"),
        over_seeds(
            [
                100 * retention.backward_transfer((row / 100).tolist())
                for retention, row in zip(kept, accuracy, strict=True)
            ],
            "+.1f",
        ),
        first_mean_largest(list(traffic / 1e6)),
    ]


def last_rounds(schedule: Schedule) -> list[int]:
    """Index of the last round of each time step, from 0."""
    counts = [schedule.rounds(step) for step in range(schedule.num_steps)]
    return [sum(counts[: step + 1]) - 1 for step in range(schedule.num_steps)]


def clusters(restored: Restored, schedule: Schedule) -> list[str]:
    """Clusters in use at the end of each time step, largest first, as number x clients.

    A number is the same cluster at all steps, see `bcfl.hypotheses.cluster_numbers`.

    Args:
        restored: final state of a run.
        schedule: time steps of the rounds.
    """
    labels = LeadingClusters.of(restored.state.history).labels
    texts = []
    for round in last_rounds(schedule):
        sizes = Counter(labels[round].tolist()).most_common()
        shown = " ".join(f"{label}x{count}" for label, count in sizes[:MOST_SHOWN])
        texts.append(shown if len(sizes) <= MOST_SHOWN else f"{len(sizes)} clusters")
    return texts


def parsed(words: Sequence[str] | None = None) -> argparse.Namespace:
    """Parse the command line."""
    line = CommandLine(__doc__)
    Sizes.add_to(line, DEFAULTS)
    orders, concepts = several(one_of("order", ORDERS)), several(one_of("concept", CONCEPTS))
    line.argument("--orders", orders, ",".join(ORDERS), "orders of the concepts")
    line.argument("--concepts", concepts, "s2", f"among {','.join(CONCEPTS)}")
    return line.parse_args(words)


if __name__ == "__main__":
    given = parsed()
    main(Sizes.of(given), given.orders, given.concepts)
