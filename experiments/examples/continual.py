"""Data in time steps under two concepts: tables 4.1 and 4.3 of the FAACL thesis, labels shifted.

`python -m experiments.examples.continual` runs the sequential and the multi-task stream and prints,
for each, the accuracy at the end of every time step, its mean beside the published one (100 rounds
for each step there), what is left of earlier steps, and the clusters that were used. `--orders
sequential --rounds 20 --methods c-faacl,fedavg` is a quick look.
"""

from __future__ import annotations

import argparse
from collections import Counter
from collections.abc import Mapping
from pathlib import Path

from rich.console import Console

from bcfl.streams import Schedule
from experiments.examples.run_tables import Sizes, finished, markdown, over_seeds
from experiments.files import Pair
from experiments.restore import Restored, restore
from experiments.retention import Retention
from experiments.run_folder import RunFolder

ORDERS = ("sequential", "multi-task")
PUBLISHED: Mapping[str, Mapping[str, float]] = {
    "sequential": {
        "ewc": 90.26,
        "apd": 86.59,
        "ssgd": 89.20,
        "feddrift": 97.83,
        "fedweit": 87.98,
        "c-faacl": 97.67,
    },
    "multi-task": {
        "ewc": 49.15,
        "apd": 80.48,
        "ssgd": 49.98,
        "feddrift": 95.25,
        "fedweit": 84.34,
        "c-faacl": 96.41,
    },
}
METHODS = (
    *("fedavg", "ewc", "apd", "ssgd", "fedweit"),
    *("feddrift", "faacl", "c-faacl", "bcfl-forget"),
)
DEFAULTS = Sizes(METHODS, (0, 1, 2), 60, Path("runs/continual"))
MOST_SHOWN = 3


def main(sizes: Sizes = DEFAULTS, orders: tuple[str, ...] = ORDERS) -> None:
    """Run what was not run yet, and print two tables for each order of the concepts."""
    screen, out = Console(stderr=True), Console(width=250)
    for order in orders:
        run = finished(f"faacl-mnist-s2-{order}", sizes, screen)
        folder = sizes.out / f"faacl-mnist-s2-{order}"
        seeds = run.seeds(run.methods[0])
        found = {
            method: [restore(folder, Pair(method, seed)) for seed in seeds]
            for method in run.methods
        }
        rounds = run.series(run.methods[0], "round").shape[1]
        schedule = Schedule.of(found[run.methods[0]][0].clients, rounds)
        rules = run.scenario["federation"]
        title = (
            f"**{order}**, {rounds} rounds, seeds {', '.join(map(str, seeds))}, "
            f"epsilon {rules['epsilon']}, delta {rules['delta']}: accuracy in percent"
        )
        steps = [f"step {step}" for step in range(schedule.num_steps)]
        head = ["method", *steps, "mean", "thesis", "served", "kept", "MB a round"]
        rows = [accuracies(run, m, schedule, found[m], PUBLISHED[order]) for m in run.methods]
        markdown(title, head, rows, out)
        out.print(
            "served, kept: accuracy on earlier steps' test samples of the model that serves now, "
            "and of the cluster that fits what is remembered best",
            soft_wrap=True,
            markup=False,
        )
        used = [[m, *clusters(found[m][0], schedule)] for m in run.methods]
        markdown(
            f"clusters in use, seed {seeds[0]}: number x clients", ["method", *steps], used, out
        )


def accuracies(
    run: RunFolder,
    method: str,
    schedule: Schedule,
    found: list[Restored],
    published: Mapping[str, float],
) -> list[str]:
    """A row of the first table."""
    ends = last_rounds(schedule)
    accuracy = 100 * run.series(method, "accuracy")[:, ends]
    kept = [Retention.of(one.model, one.state.hypotheses.best, one.clients) for one in found]
    traffic = run.series(method, "bytes_down") + run.series(method, "bytes_up")
    return [
        method,
        *(over_seeds(step.tolist(), ".1f") for step in accuracy.T),
        over_seeds(accuracy.mean(axis=1).tolist(), ".2f", spread=True),
        format(published[method], ".2f") if method in published else "–",
        over_seeds([100 * one.served for one in kept], ".1f"),
        over_seeds([100 * one.kept for one in kept], ".1f"),
        over_seeds((traffic.mean(axis=1) / 1e6).tolist(), ".1f"),
    ]


def last_rounds(schedule: Schedule) -> list[int]:
    """The last round of each time step, from 0."""
    counts = [schedule.rounds(step) for step in range(schedule.num_steps)]
    return [sum(counts[: step + 1]) - 1 for step in range(schedule.num_steps)]


def clusters(found: Restored, schedule: Schedule) -> list[str]:
    """For each time step, the clusters that clients ended it in, largest first."""
    texts = []
    for round in last_rounds(schedule):
        labels = found.state.history[round].associations[0].labels.tolist()
        sizes = Counter(labels).most_common()
        shown = " ".join(f"{label}x{count}" for label, count in sizes[:MOST_SHOWN])
        texts.append(shown if len(sizes) <= MOST_SHOWN else f"{len(sizes)} clusters")
    return texts


if __name__ == "__main__":
    parser = argparse.ArgumentParser(description=__doc__.partition("\n")[0])
    Sizes.add_to(parser, DEFAULTS)
    parser.add_argument("--orders", default=",".join(ORDERS), help="%(default)s")
    given = parser.parse_args()
    main(Sizes.of(given), tuple(given.orders.split(",")))
