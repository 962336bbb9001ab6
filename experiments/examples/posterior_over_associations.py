"""The exact posterior over the associations of one round, next to its M-best truncations.

After three rounds of training, the fourth enumerates all 64 associations of six clients, and the M
best of them, from the same models. `python -m experiments.examples.posterior_over_associations
[SEED]`.
"""

from __future__ import annotations

import argparse
import warnings
from collections.abc import Sequence

import numpy as np
from rich.console import Console
from rich.table import Table

from bcfl import Federation, Objective, Run, methods
from bcfl.rounds import OtherMethodWarning
from bcfl.runtime import limited_threads
from experiments import datasets, models, partitions
from experiments.config.command_line import CommandLine, not_negative

KEPT = (1, 4, 16)


def posteriors(seed: int) -> dict[str, Run]:
    """Runs of the fourth round with all associations, and with the M best, by method."""
    digits = datasets.load("optdigits")
    clients = partitions.rotated(digits, groups=2, clients=6, samples_per_client=30, seed=seed)
    objective = Objective(local_steps=5, learning_rate=0.05)

    def federation(name: str) -> Federation:
        method = methods.build(name, num_clusters=2, temperature=10.0, objective=objective)
        return Federation(clients, models.mlp((1, 8, 8), 16, 10), method, seed, evaluate=False)

    state = federation("bcfl-g").run(3).state
    names = ["bcfl-exact", *(f"bcfl-mh-{kept}" for kept in KEPT)]
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", OtherMethodWarning)  # trackers are compared on one state
        return {name: federation(name).run(4, state=state) for name in names}


def main(seed: int = 0) -> None:
    """Print each client's probability of the first cluster, and the captured mass."""
    runs = posteriors(seed)
    exact = runs["bcfl-exact"]
    table = Table("client", "group", *runs, title="probability of the first cluster")
    for row, client in enumerate(exact.clients):
        chances = [f"{run.association_probabilities()[row, 0]:.3f}" for run in runs.values()]
        table.add_row(client, str(exact.groups[client]), *chances)
    captured = [f"{np.exp(run.hypotheses.log_captured_mass):.3f}" for run in runs.values()]
    table.add_row("captured mass", "", *captured)
    Console().print(table)


def parsed(words: Sequence[str] | None = None) -> argparse.Namespace:
    """Parse the command line."""
    line = CommandLine(__doc__)
    line.argument("seed", not_negative, 0, "seed")
    return line.parse_args(words)


if __name__ == "__main__":
    seed = parsed().seed
    with limited_threads(1):
        main(seed)
