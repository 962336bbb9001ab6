"""Is the association of clients that took no part a posterior? `predict_new` by a few samples.

Pairs of 20 new clients with each of the 40 clients of a federation, scored as in
`association_posterior`: means and standard errors over draws, and the calibration error of the
pairs of all draws together. Rotated handwritten digits, 4 groups, 25 rounds; a new client has 1, 3
or 10 samples. `python -m experiments.studies.associations.newcomers SAMPLES DRAWS METHODS`:
federations with 8, 12 and 20 samples a client, 10 draws, and `bcfl-race-4;bcfl-mht-8` by default.
"""

from __future__ import annotations

import argparse
from collections.abc import Sequence
from dataclasses import replace

import numpy as np
import torch
from numpy.typing import NDArray
from rich.console import Console
from rich.progress import track

from bcfl import ClientData, Federation, Run, methods
from bcfl.analysis import pairs
from bcfl.runtime import limited_threads
from experiments import datasets, models, partitions
from experiments.config.command_line import CommandLine, method_name, positive, several
from experiments.studies.association_posterior import CLIENTS, GROUPS, ROUNDS

NEWCOMERS, ADAPTED = 20, (1, 3, 10)
METHODS = ("bcfl-race-4", "bcfl-mht-8")
Pairs = tuple[NDArray[np.float64], NDArray[np.bool_]]


def divided(samples: int, seed: int) -> tuple[list[ClientData], list[ClientData]]:
    """Clients of the federation, and new ones, of all groups alike.

    Args:
        samples: training samples of each client of the federation.
        seed: of the draw.
    """
    clients = partitions.rotated(
        datasets.load("optdigits"),
        groups=GROUPS,
        clients=CLIENTS + NEWCOMERS,
        seed=seed,
        samples_per_client=max(samples, *ADAPTED),
        test_fraction=0,
    )
    by_group = [[c for c in clients if c.group == group] for group in range(GROUPS)]
    known = [client for group in by_group for client in group[: CLIENTS // GROUPS]]
    new = [client for group in by_group for client in group[CLIENTS // GROUPS :]]
    few = torch.arange(samples)
    return [replace(c, views={"train": c.views["train"].take(few)}) for c in known], new


def pairs_of(run: Run, new: Sequence[ClientData], adapted: int) -> Pairs:
    """Co-association of each new client with each client of the run, and the truth.

    Args:
        run: of the federation.
        new: clients that took no part.
        adapted: samples by which each is associated.
    """
    groups = np.array([run.groups[client] for client in run.clients])
    together, same = [], []
    for client in new:
        view = client.views["train"]
        few = view.inputs[:adapted], view.targets[:adapted]
        found = run.predict_new(view.inputs[:1], few, "plug-in").co_association
        assert found is not None
        together.append(found)
        same.append(groups == client.group)
    return np.concatenate(together), np.concatenate(same)


def row(title: str, draws: Sequence[Pairs]) -> str:
    """A row of the table: means with standard errors over draws, and the pooled error.

    Args:
        title: first cells.
        draws: probabilities and truths of each draw.
    """
    scores = np.array([list(pairs.pair_scores(p, same).values()) for p, same in draws])
    errors = scores.std(axis=0, ddof=1) / np.sqrt(len(scores)) if len(scores) > 1 else scores[0] * 0
    cells = [f"{m:.3f} ± {e:.3f}" for m, e in zip(scores.mean(axis=0), errors, strict=True)]
    left_out = [_pooled([*draws[:i], *draws[i + 1 :]]) for i in range(len(draws))]
    spread = np.std(left_out) * np.sqrt(len(draws) - 1)
    return f"| {title} | " + " | ".join(cells) + f" | {_pooled(draws):.3f} ± {spread:.3f} |"


def _pooled(draws: Sequence[Pairs]) -> float:
    if not draws:
        return 0.0
    p, same = (np.concatenate(parts) for parts in zip(*draws, strict=True))
    return pairs.pair_scores(p, same)["association_ece"]


def parsed(words: Sequence[str] | None = None) -> argparse.Namespace:
    """Parse the command line."""
    line = CommandLine(__doc__)
    line.argument("samples", several(positive), "8,12,20", "training samples of each client")
    line.argument("draws", positive, 10, "number of draws")
    line.argument(
        "methods", several(method_name(num_clusters=GROUPS), ";"), ";".join(METHODS), "methods"
    )
    return line.parse_args(words)


def main(words: Sequence[str] | None = None) -> None:
    """Print the table."""
    given = parsed(words)
    console = Console(stderr=True)
    print("| samples | method | of the new client | NLL | Brier | ECE | AUROC | pooled ECE |")
    print("|---:|---|---:|---:|---:|---:|---:|---:|", flush=True)
    for count in given.samples:
        for name in given.methods:
            found: dict[int, list[Pairs]] = {adapted: [] for adapted in ADAPTED}
            for seed in track(range(given.draws), name, console=console, transient=True):
                known, new = divided(count, seed)
                method = methods.build(name, num_clusters=GROUPS)
                model = models.mlp((1, 8, 8), 32, 10)
                run = Federation(known, model, method, seed=seed, evaluate=False).run(ROUNDS)
                for adapted, rows in found.items():
                    rows.append(pairs_of(run, new, adapted))
            for adapted, rows in found.items():
                print(row(f"{count} | `{name}` | {adapted}", rows), flush=True)


if __name__ == "__main__":
    with limited_threads(1):
        main()
