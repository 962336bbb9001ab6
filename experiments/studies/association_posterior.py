"""Is the posterior over associations a posterior? Pairs of clients against the hidden groups.

A pair's co-association probability needs no matching of labels: it is scored by log loss, Brier
score, expected calibration error and AUROC against whether the two clients are of one group, beside
the adjusted Rand index of the leading hypothesis and the local trainings that were run. The
calibration error is also that of all draws pooled: within a draw pairs stand or fall together, so
that exact probabilities too have an error above 0. Handwritten digits, 4 groups, 40 clients whose
samples are all used (nothing is set aside), 25 rounds; means and standard errors over draws of data
and models.
`python -m experiments.studies.association_posterior SAMPLES KIND DRAWS FIRST METHODS`: 8,12,20,44
samples a client, one of `KINDS`, 10 draws from seed 0, and the methods below by default. With
`unequal`, rotated clients hold a half, once, or twice that many; with `three-clusters` and
`six-clusters`, methods have a wrong number of clusters; `fashion` is rotated Fashion-MNIST.
"""

from __future__ import annotations

import argparse
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from typing import Any

import numpy as np
import torch
from numpy.typing import NDArray
from rich.console import Console
from rich.progress import track
from sklearn.metrics import adjusted_rand_score

from bcfl import ClientData, Federation, Method, methods
from bcfl.analysis import pairs
from bcfl.runtime import generator, limited_threads
from experiments import datasets, models, partitions
from experiments.config.command_line import CommandLine, not_negative, one_of, positive, several

GROUPS, CLIENTS, ROUNDS = 4, 40, 25
KINDS = ("rotated", "label-skew", "unequal", "three-clusters", "six-clusters", "fashion")
CLUSTERS = {"three-clusters": 3, "six-clusters": 6}
CROSSFIT: Mapping[str, object] = {"scored_by": "crossfit", "belief_temperature": "auto"}
METHODS: Mapping[str, tuple[str, Mapping[str, object]]] = {
    "ifca": ("ifca", {}),
    "ifca, cavity": ("ifca", {"scored_by": "cavity"}),
    "ifca, crossfit": ("ifca", {"scored_by": "crossfit"}),
    "fesem": ("fesem", {}),
    "fesem, cavity": ("fesem", {"scored_by": "cavity"}),
    "wecfl": ("wecfl", {}),
    "wecfl, cavity": ("wecfl", {"scored_by": "cavity"}),
    "bcfl-g": ("bcfl-g", {}),
    "bcfl-g, cavity": ("bcfl-g", {"scored_by": "cavity", "temperature": 1.0}),
    "bcfl-mht-8": ("bcfl-mht-8", {}),
    "bcfl-mht-8, cavity": ("bcfl-mht-8", {"scored_by": "cavity"}),
    "bcfl-mht-8, crossfit": ("bcfl-mht-8", {"scored_by": "crossfit"}),
    "bcfl-mht-8, crossfit, fitted": ("bcfl-mht-8", {**CROSSFIT, "folds": 4}),
    "bcfl-mht-8, two folds": ("bcfl-mht-8", {**CROSSFIT, "folds": 2}),
    "bcfl-race-2, two folds": ("bcfl-race-2", {**CROSSFIT, "folds": 2}),
    "bcfl-race-3, two folds": ("bcfl-race-3", {**CROSSFIT, "folds": 2}),
    "bcfl-race-4, two folds": ("bcfl-race-4", {**CROSSFIT, "folds": 2}),
    "bcfl-c-3": ("bcfl-c", {}),
    "bcfl-c-3, cavity": ("bcfl-c", {"scored_by": "cavity"}),
    "bcfl-mh-6": ("bcfl-mh-6", {}),
    "bcfl-mh-6, cavity": ("bcfl-mh-6", {"scored_by": "cavity"}),
    "bcfl-race-2": ("bcfl-race-2", {}),
    "bcfl-race-4": ("bcfl-race-4", {}),
    "bcfl-race-8": ("bcfl-race-8", {}),
}
COLUMNS = ("NLL", "Brier", "ECE", "AUROC", "ARI", "trainings")


def clients_of(kind: str, samples: int, seed: int, tested: int = 0) -> Sequence[ClientData]:
    """Forty clients in four groups.

    Args:
        kind: one of `KINDS`.
        samples: training samples of each client, or their middle size.
        seed: seed of the draw.
        tested: further samples of each client that are set aside for tests.

    Raises:
        ValueError: there is no such kind.
    """
    if kind not in KINDS:
        raise ValueError(f"kind must be one of {', '.join(KINDS)}, got {kind!r}")
    images = datasets.load("fashion-mnist" if kind == "fashion" else "optdigits")
    drawn = (2 * samples if kind == "unequal" else samples) + tested
    shared: dict[str, Any] = {
        "groups": GROUPS,
        "clients": CLIENTS,
        "seed": seed,
        "samples_per_client": drawn,
        "test_fraction": tested / drawn,
    }
    if kind == "label-skew":
        return partitions.two_stage_dirichlet(images, alpha=(0.1, 10), **shared)
    rotated = partitions.rotated(images, **shared)
    if kind != "unequal":
        return rotated
    shares = [samples // 2, samples, 2 * samples, samples]
    sizes = generator(seed, "sizes").permutation(shares * (CLIENTS // len(shares)))
    return [
        replace(
            client, views={**client.views, "train": client.views["train"].take(torch.arange(size))}
        )
        for client, size in zip(rotated, sizes.tolist(), strict=True)
    ]


@dataclass(frozen=True, eq=False)
class Draw:
    """What a method believed after the last round of one draw.

    Attributes:
        together: (clients, clients) co-association probabilities.
        groups: true group of each client.
        ari: adjusted Rand index of the leading hypothesis.
        trainings: local trainings that were run.
    """

    together: NDArray[np.float64]
    groups: Sequence[int | None]
    ari: float
    trainings: float

    @property
    def scores(self) -> list[float]:
        """In the order of `COLUMNS`."""
        scores = pairs.association_scores(self.together, self.groups)
        return [*scores.values(), self.ari, self.trainings]


def believed(
    method: Method, clients: Sequence[ClientData], seed: int, rounds: int = ROUNDS
) -> Draw:
    """Run a method on one draw.

    Args:
        method: the method.
        clients: data of the clients.
        seed: seed of the run.
        rounds: number of rounds.
    """
    shape = tuple(clients[0].views["train"].inputs.shape[1:])
    model = models.mlp(shape, 32, 10)
    run = Federation(clients, model, method, seed=seed, evaluate=False).run(rounds)
    groups = [run.groups[client] for client in run.clients]
    ari = adjusted_rand_score(groups, run.hypotheses.best.association.labels)
    trainings = sum(record.ledger.trainings_run for record in run.records)
    return Draw(run.co_association(), groups, float(ari), float(trainings))


def row(name: str, draws: Sequence[Draw]) -> str:
    """A row of the table: means with standard errors, and the calibration error of pooled draws.

    Args:
        name: name of the method.
        draws: one or more.
    """
    scores = np.array([draw.scores for draw in draws])
    errors = scores.std(axis=0, ddof=1) / np.sqrt(len(scores)) if len(scores) > 1 else None
    cells = []
    for index, value in enumerate(scores.mean(axis=0)):
        digits = 0 if COLUMNS[index] == "trainings" else 3
        spread = "" if errors is None or not digits else f" ± {errors[index]:.{digits}f}"
        cells.append(f"{value:.{digits}f}{spread}")
    return f"| {name} | " + " | ".join([*cells, pooled_cell(draws)]) + " |"


def pooled_cell(draws: Sequence[Draw]) -> str:
    """Calibration error of all draws together, with the jackknife's standard error over draws."""

    def error(chosen: Sequence[Draw]) -> float:
        return pairs.pooled_calibration_error([(draw.together, draw.groups) for draw in chosen])

    if len(draws) == 1:
        return f"{error(draws):.3f}"
    left_out = [error([*draws[:i], *draws[i + 1 :]]) for i in range(len(draws))]
    spread = np.std(left_out) * np.sqrt(len(draws) - 1)
    return f"{error(draws):.3f} ± {spread:.3f}"


def with_draws(line: CommandLine, samples: str) -> CommandLine:
    """A command line with the arguments that say which clients are drawn.

    Args:
        line: without arguments.
        samples: default numbers of training samples, separated by commas.
    """
    line.argument("samples", several(positive), samples, "training samples of each client")
    line.argument("kind", str, "rotated", "partition", KINDS)
    line.argument("draws", positive, 10, "number of draws")
    line.argument("first", not_negative, 0, "seed of the first draw")
    return line


def parsed(words: Sequence[str] | None = None) -> argparse.Namespace:
    """Parse the command line."""
    line = with_draws(CommandLine(__doc__), "8,12,20,44")
    line.argument(
        "methods", several(one_of("method", METHODS), ";"), ";".join(METHODS), "separated by ;"
    )
    return line.parse_args(words)


def main(words: Sequence[str] | None = None) -> None:
    """Print a table for each number of samples."""
    given = parsed(words)
    console = Console(stderr=True)
    for count in given.samples:
        print(f"\n{given.kind}, {count} samples a client\n")
        print("| method | " + " | ".join(COLUMNS) + " | pooled ECE |")
        print("|---|" + "---:|" * (len(COLUMNS) + 1), flush=True)
        for name in given.methods:
            recipe, options = METHODS[name]
            clusters = {"num_clusters": CLUSTERS.get(given.kind, GROUPS)}
            chosen = methods.applicable(recipe, clusters) | dict(options)
            seeds = range(given.first, given.first + given.draws)
            draws_of_data = [
                believed(methods.build(recipe, **chosen), clients_of(given.kind, count, seed), seed)
                for seed in track(seeds, name, console=console, transient=True)
            ]
            print(row(name, draws_of_data), flush=True)


if __name__ == "__main__":
    with limited_threads(1):
        main()
