"""Support between clusters on the scenarios of FAACL, next to the tables of its thesis.

S0: IID; S1: half of the devices have the first half of the classes, the others the second; S2: half
of them have labels shifted by one; A1: half of them have noisy inputs; A2: half of them have few
samples with merged classes. MNIST, 20 devices. The thesis runs 300 rounds of ten local epochs; here
there are fewer and shorter rounds. Margins (epsilon) are those of its table B.1, except for A1, and
the level is 0.1, as in its program. Its rows of IFCA and FeSEM come from a program that averages a
single device and compares untrained models; in A1 its test samples share the noise of training
samples.

`python -m experiments.studies.support --seeds 0,1 --rounds 30`, MNIST in the data directory.
"""

from __future__ import annotations

import argparse
from collections.abc import Mapping, Sequence
from pathlib import Path

import networkx as nx
import numpy as np
from rich.console import Console

from bcfl.methods import RECIPES
from experiments.config.command_line import CommandLine, one_of, several
from experiments.reports.pictures.support import SupportPicture
from experiments.runs.files import SUPPORT, Pair, RunFiles
from experiments.runs.run_folder import RunFolder
from experiments.studies.run_tables import (
    UNKNOWN,
    Sizes,
    finished,
    first_mean_largest,
    markdown,
    over_seeds,
)

DEFAULTS = Sizes(
    ("fedavg", "ifca", "fesem", "fedgroup", "feddrift", "fedsoft", "faacl", "faacl-h"),
    (0, 1),
    30,
    Path("runs/support"),
)
SCENARIOS = ("s0", "s1", "s2", "a1", "a2")
HEAD = (
    "method",
    "accuracy, % [clusters]",
    "published",
    "ARI",
    "MB while testing: first / mean / largest",
    "MB at the end",
    "MB per device",
    "published MB",
    "support 0→1 / 1→0",
)
Row = Mapping[str, tuple[float, int, str]]
PUBLISHED: Mapping[str, Row] = {
    "s0": {
        "fedavg": (96.24, 1, "16.3"),
        "ifca": (95.05, 3, "48.9"),
        "fesem": (94.29, 3, "48.9"),
        "fedgroup": (95.78, 5, "16.3"),
        "feddrift": (95.66, 2, "24.5"),
        "fedsoft": (96.03, 5, "81.5"),
        "faacl": (96.12, 1, "70.1, then 16.3"),
    },
    "s1": {
        "fedavg": (81.86, 1, "16.3"),
        "ifca": (91.16, 5, "48.9"),
        "fesem": (50.24, 3, "48.9"),
        "fedgroup": (93.73, 5, "16.3"),
        "feddrift": (91.76, 8, "73.4"),
        "fedsoft": (90.49, 5, "81.5"),
        "faacl": (93.44, 2, "70.1, then 16.3"),
    },
    "s2": {
        "fedavg": (51.36, 1, "16.3"),
        "ifca": (94.36, 4, "48.9"),
        "fesem": (49.35, 3, "48.9"),
        "fedgroup": (95.55, 5, "16.3"),
        "feddrift": (93.37, 6, "57.1"),
        "fedsoft": (93.92, 5, "81.5"),
        "faacl": (95.73, 2, "70.1, then 16.3"),
    },
    "a1": {
        "fedavg": (70.33, 1, "16.3"),
        "ifca": (69.90, 5, "48.9"),
        "fesem": (65.79, 4, "48.9"),
        "fedgroup": (74.65, 5, "16.3"),
        "feddrift": (70.34, 7, "65.2"),
        "fedsoft": (71.28, 5, "81.5"),
        "faacl": (75.12, 4, "101.1, then 20.4"),
    },
    "a2": {
        "fedavg": (89.77, 1, "16.3"),
        "ifca": (95.35, 3, "48.9"),
        "fesem": (74.65, 1, "48.9"),
        "fedgroup": (95.44, 5, "16.3"),
        "feddrift": (95.34, 3, "32.6"),
        "fedsoft": (95.73, 5, "81.5"),
        "faacl": (96.01, 5, "101.1, then 20.4"),
    },
}
"""Tables 3.1 and 3.3 to 3.7 of the thesis, MNIST: accuracy, clusters, MB per round."""


def row(run: RunFolder, method: str, published: Row) -> list[str]:
    """Accuracy of a method over the last three rounds, its clusters and its communication.

    Args:
        run: the runs of a scenario.
        method: name of the method.
        published: published accuracy, clusters and MB per round by method.
    """
    accuracy = 100 * run.series(method, "accuracy")[:, -3:].mean(axis=1)
    clusters = [f"{k:.0f}" for k in run.series(method, "clusters_used")[:, -1]]
    sent = (run.series(method, "bytes_down") + run.series(method, "bytes_up")) / 1e6
    tests = run.facts(method, "support_tests")
    devices = run.series(method, "participants")[:, -1]
    theirs = published.get(method.removesuffix("-h"))
    return [
        method,
        f"{over_seeds(accuracy, '.1f', spread=True)} [{', '.join(clusters)}]",
        f"{theirs[0]:.1f} [{theirs[1]}]" if theirs else UNKNOWN,
        over_seeds(run.series(method, "ari")[:, -1]),
        first_mean_largest([mb[here > 0] for mb, here in zip(sent, tests, strict=True)]),
        over_seeds(sent[:, -1], ".1f"),
        over_seeds(sent[:, -1] / devices, ".2f"),
        theirs[2] if theirs else UNKNOWN,
        supports(run, method),
    ]


def supports(run: RunFolder, method: str) -> str:
    """Number of support edges between clusters with majority group 0 and 1, both ways, by seed.

    Clusters are those of the last round.

    Args:
        run: the runs of a scenario.
        method: name of the method.
    """
    counts = []
    for seed in run.seeds(method):
        path = RunFiles(run.path).of(Pair(method, seed)).graph(SUPPORT)
        if not path.is_file():
            return UNKNOWN
        picture = SupportPicture.of(nx.DiGraph(nx.read_graphml(path)))
        majority = {
            name: max(groups, key=groups.__getitem__) for name, groups in picture.members.items()
        }
        edges = [(majority[supporter], majority[own]) for supporter, own in picture.supports]
        counts.append(f"{edges.count((0, 1))} / {edges.count((1, 0))}")
    return ", ".join(counts)


def main(sizes: Sizes = DEFAULTS, scenarios: tuple[str, ...] = SCENARIOS) -> None:
    """Run or resume all runs, and print a table for each scenario.

    Args:
        sizes: methods, seeds, rounds and output folder.
        scenarios: names of scenarios; see `SCENARIOS`.
    """
    screen, out = Console(stderr=True), Console(width=220)
    for name in scenarios:
        run = finished(f"faacl-mnist-{name}", sizes, screen)
        rows = [row(run, method, PUBLISHED.get(name, {})) for method in run.methods]
        rounds = run.series(run.methods[0], "round").shape[1]
        usual = {name: option.default for name, option in RECIPES["faacl"].options.items()}
        rules = {**usual, **run.scenario["federation"]}
        seeds = ", ".join(map(str, run.seeds(run.methods[0])))
        title = (
            f"**{name.upper()}**, {rounds} rounds, seeds {seeds}, epsilon {rules['epsilon']}, "
            f"alpha {rules['alpha']}"
        )
        few = max(
            float(np.nanmax(facts, initial=0))
            for facts in (run.facts(m, "devices_with_too_few_pairs") for m in run.methods)
        )
        markdown(title, HEAD, rows, out)
        if few:
            out.print(f"up to {few:.0f} devices had too few pairs to support or be supported")


def parsed(words: Sequence[str] | None = None) -> argparse.Namespace:
    """Parse the command line."""
    line = CommandLine(__doc__)
    Sizes.add_to(line, DEFAULTS)
    known = several(one_of("scenario", SCENARIOS))
    line.argument("--scenarios", known, ",".join(SCENARIOS), "scenarios")
    return line.parse_args(words)


if __name__ == "__main__":
    given = parsed()
    main(Sizes.of(given), given.scenarios)
