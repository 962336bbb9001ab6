"""One-shot clustering on the MNIST splits of its paper, next to Table I and Figures 2 and 3.

Four splits: separate or overlapping classes, balanced or imbalanced, 15 clients (or 30). Clustering
scores are means over all rounds, so early recovery is rewarded; a method that recovers the groups
in round t of R has at most (R - t + 1) / R, and FedAvg 0. The paper runs 50 rounds of a
convolutional network with overlapping clients; here there are fewer rounds of a network with one
hidden layer, and no client is tested on another's training samples. Its RAND is the adjusted Rand
index, its COM is homogeneity; its affinity propagation was given distances as similarities, its BCL
similarities as distances.

`python -m experiments.studies.one_shot --seeds 0,1 --rounds 10`, MNIST in the data directory.
"""

from __future__ import annotations

import argparse
from collections.abc import Mapping, Sequence
from pathlib import Path

import numpy as np
from numpy.typing import NDArray
from rich.console import Console

from experiments.config.command_line import CommandLine, one_of, several
from experiments.config.variants import Variant
from experiments.runs.run_folder import RunFolder
from experiments.studies.run_tables import UNKNOWN, Sizes, finished, markdown, over_seeds

DEFAULTS = Sizes(
    (
        "fedavg",
        "scl",
        "scl@scale=relative",
        "bcl",
        "ocfl-kmeans",
        "ocfl-affinity",
        "ocfl-affinity@reads=distance",
        "ocfl-meanshift",
        "ocfl-hdbscan",
    ),
    (0, 1),
    10,
    Path("runs/one-shot"),
)
SPLITS = (
    "separate-balanced",
    "separate-imbalanced",
    "overlapping-balanced",
    "overlapping-imbalanced",
)
HEAD = (
    "method",
    "Rand (adj.)",
    "AMI",
    "homogeneity",
    "completeness",
    "[clusters]",
    "in round",
    "PF1",
    "GF1",
    "gap",
    "published RAND / AMI / COM",
)
TEMPERATURE = "clustering_temperature"
AGREEMENT = ("ari", "ami", "homogeneity", "completeness")
Triple = tuple[float, float, float]
PUBLISHED: Mapping[str, tuple[Triple, Triple, Triple, Triple]] = {
    "scl": ((0.44, 0.46, 0.57), (0.57, 0.57, 0.57), (0.21, 0.31, 0.57), (0.29, 0.38, 0.57)),
    "ocfl-kmeans": ((0.96,) * 3, (0.96,) * 3, (0.96,) * 3, (0.96,) * 3),
    "ocfl-affinity": (
        (0.23, 0.27, 0.26),
        (0.13, 0.058, 0.12),
        (0.23, 0.27, 0.26),
        (0.3, 0.3, 0.3),
    ),
    "ocfl-meanshift": ((0.71, 0.67, 0.96), (0.96,) * 3, (0.87, 0.87, 0.96), (0.96,) * 3),
    "ocfl-hdbscan": ((0.96,) * 3, (0.96,) * 3, (0.96,) * 3, (0.96,) * 3),
}
"""Table I of the paper, MNIST with 15 clients, in the order of `SPLITS`; BCL's cells are blank."""


def row(run: RunFolder, method: str, published: str) -> list[str]:
    """Scores of a method: clustering scores and F1 over all rounds, clusters in the last round.

    Args:
        run: the runs of a scenario.
        method: name of the method.
        published: text of the published scores.
    """
    agreement = [over_seeds(run.series(method, name).mean(axis=1)) for name in AGREEMENT]
    used = run.series(method, "clusters_used")
    personal, general = (
        100 * run.series(method, name).mean(axis=1) for name in ("macro_f1", "hold_out_f1")
    )
    return [
        method,
        *agreement,
        f"[{', '.join(f'{k:.0f}' for k in used[:, -1])}]",
        ", ".join(_first_of_several(clusters) for clusters in used),
        over_seeds(personal, ".1f"),
        over_seeds(general, ".1f"),
        over_seeds(np.abs(personal - general), ".1f"),
        published,
    ]


def _first_of_several(clusters: NDArray[np.float64]) -> str:
    """First round, from 1, with more than one cluster."""
    several = np.flatnonzero(clusters > 1)
    return str(several[0] + 1) if len(several) else UNKNOWN


def published(method: str, split: str, clients: int) -> str:
    """Text of the published scores; a dash where there are none for this setting.

    Args:
        method: name of the method or a variant of it.
        split: name of the split.
        clients: number of clients.
    """
    name = Variant.of(method).method
    if name not in PUBLISHED or clients != 15:
        return UNKNOWN
    return " / ".join(f"{score:g}" for score in PUBLISHED[name][SPLITS.index(split)])


def temperatures(curves: Sequence[NDArray[np.float64]]) -> list[list[str]]:
    """Clustering temperature of one common model by round, after Figure 3: mean and range.

    Args:
        curves: for each split, (seeds, rounds) temperatures.
    """
    means = np.stack([np.nanmean(curve, axis=0) for curve in curves])
    return [
        [str(round), f"{column.mean():.3f}", f"{column.min():.3f} to {column.max():.3f}"]
        for round, column in enumerate(means.T, start=1)
    ]


def main(sizes: Sizes = DEFAULTS, clients: int = 15, splits: tuple[str, ...] = SPLITS) -> None:
    """Run or resume all runs, and print a table for each split.

    Args:
        sizes: methods, seeds, rounds and output folder.
        clients: number of clients, 15 or 30.
        splits: names of splits; see `SPLITS`.
    """
    screen, out, curves = Console(stderr=True), Console(width=200), []
    for split in splits:
        run = finished(f"ocfl-mnist-{split}-{clients}", sizes, screen)
        rows = [row(run, method, published(method, split, clients)) for method in run.methods]
        rounds = run.series(run.methods[0], "round").shape[1]
        seeds = ", ".join(map(str, run.seeds(run.methods[0])))
        title = f"**{split}**, {clients} clients, {rounds} rounds, seeds {seeds}"
        markdown(title, HEAD, rows, out)
        if "fedavg" in run.methods:
            curves.append(run.facts("fedavg", TEMPERATURE))
    if curves:
        title = f"clustering temperature without clustering, over {len(curves)} splits (Figure 3)"
        markdown(title, ("round", "mean", "range"), temperatures(curves), out)


def parsed(words: Sequence[str] | None = None) -> argparse.Namespace:
    """Parse the command line."""
    line = CommandLine(__doc__)
    Sizes.add_to(line, DEFAULTS)
    line.argument("--clients", int, 15, "number of clients", (15, 30))
    line.argument("--splits", several(one_of("split", SPLITS)), ",".join(SPLITS), "splits")
    return line.parse_args(words)


if __name__ == "__main__":
    given = parsed()
    main(Sizes.of(given), given.clients, given.splits)
