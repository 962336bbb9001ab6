"""Ablations that the papers of OCFL, FAACL and clustered federated learning name or invite.

Each is one scenario with several variants of a method, run or resumed by
`python -m experiments.studies.ablations NAMES --seeds 0,1,2 --rounds 50`. Variants of grids (`con`,
`cks`, `cam`) are chosen by samples that the clients hold out, never by test samples; the row of the
chosen one is marked.
"""

from __future__ import annotations

import argparse
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from pathlib import Path

from rich.console import Console

from experiments.config.command_line import CommandLine, not_negative, one_of, positive, several
from experiments.config.scenario import Scenario, load
from experiments.config.variants import HELD_OUT_SHARE, Grid, expanded
from experiments.runs.grids import METRIC, choices
from experiments.runs.run_folder import RunFolder
from experiments.studies.run_tables import UNKNOWN, Sizes, finished, markdown, over_seeds

COLUMNS: Mapping[str, tuple[str, float, str]] = {
    "accuracy": ("accuracy", 100.0, ".1f"),
    "macro-F1": ("macro_f1", 100.0, ".1f"),
    "F1 by samples": ("weighted_f1", 100.0, ".1f"),
    "ARI": ("ari", 1.0, ".2f"),
    "ARI, all rounds": ("mean_ari", 1.0, ".2f"),
    "NLL": ("nll", 1.0, ".3f"),
    "trainings": ("trainings_run", 1.0, ".0f"),
    "held-out NLL": (METRIC, 1.0, ".3f"),
}


@dataclass(frozen=True)
class Ablation:
    """Variants of one method on one scenario.

    Attributes:
        scenario: name of the scenario.
        grids: values of options; their product is run.
        question: what the variants are compared for.
        chosen: whether the best variant is chosen by held-out samples.
    """

    scenario: str
    grids: tuple[Grid, ...]
    question: str
    chosen: bool = False

    @property
    def method(self) -> str:
        """Name of the method that is varied."""
        return self.grids[0].method

    def prepared(self) -> Scenario:
        """The scenario with the variants as methods."""
        scenario = replace(load(self.scenario), methods=(self.method,), method_options={})
        labels = expanded(scenario.methods, self.grids)
        own = {self.method: {"calibration": HELD_OUT_SHARE}} if self.chosen else {}
        return replace(scenario, methods=labels, method_options=own)


ONE_SHOT, SUPPORT, SKEW = "ocfl-mnist-separate-balanced-15", "faacl-mnist-s2", "digits-label-skew"
ABLATIONS: Mapping[str, Ablation] = {
    "faacl-alpha": Ablation(
        SUPPORT,
        (Grid("faacl", "alpha", (0.01, 0.05, 0.1, 0.2)),),
        "significance level of the support test",
    ),
    "faacl-epsilon": Ablation(
        SUPPORT,
        (Grid("faacl", "epsilon", (0.1, 0.3, 0.5, 0.7, 1.0)),),
        "margin by which a supporter may be worse, nats",
    ),
    "faacl-loss": Ablation(
        SUPPORT, (Grid("faacl", "loss", ("raw", "capped")),), "raw against capped losses"
    ),
    "faacl-withdrawal": Ablation(
        SUPPORT, (Grid("faacl", "withdraws", (False, True)),), "withdrawal of support"
    ),
    "faacl-pairing": Ablation(
        SUPPORT,
        (Grid("faacl-h", "pairing", ("fixed", "random")),),
        "pairs of the hierarchy, fixed or at random",
    ),
    "ocfl-norm": Ablation(
        ONE_SHOT,
        (Grid("ocfl-hdbscan", "norm", (1.0, 2.0, 3.0, 4.0)),),
        "norm p of the clustering temperature",
    ),
    "ocfl-shot": Ablation(
        ONE_SHOT,
        (Grid("ocfl-hdbscan", "shot_round", ("none", 0, 1, 2, 5, 10)),),
        "round of the clustering, at the rise of the temperature (none) or fixed",
    ),
    "ocfl-share": Ablation(
        ONE_SHOT,
        (Grid("ocfl-hdbscan", "min_share", (0.1, 0.2, 0.3)),),
        "smallest cluster of HDBSCAN, share of the clients",
    ),
    "ocfl-shots": Ablation(
        ONE_SHOT, (Grid("ocfl-hdbscan", "shots", (1, 2, 3)),), "one-shot and few-shot clustering"
    ),
    "scl": Ablation(
        ONE_SHOT,
        (
            Grid("scl", "mean_norm", (0.2, 0.35, 0.6)),
            Grid("scl", "client_norm", (0.35, 1.2, 1.6, 2.0)),
        ),
        "lengths e1 and e2 of recursive bipartition, with the grids of the OCFL paper",
    ),
    "bcl": Ablation(
        ONE_SHOT,
        (Grid("bcl", "threshold", (0.05, 0.1, 0.2, 0.3, 0.4)),),
        "distance threshold of hierarchical clustering, the grid of the OCFL paper",
    ),
    "con": Ablation(
        SKEW,
        (
            Grid("wecfl-con-para", "weight", (0.1, 0.5, 2.0, 5.0)),
            Grid("wecfl-con-para", "contrast_temperature", (0.1, 1.0, 10.0)),
        ),
        "mu and tau of the contrast, the grid of the thesis of WeCFL",
        chosen=True,
    ),
    "cks": Ablation(
        SKEW,
        (Grid("wecfl-cks", "sharing", (0.001, 0.01, 0.1, 1.0)),),
        "lambda of knowledge sharing, the grid of the thesis of WeCFL",
        chosen=True,
    ),
    "cam": Ablation(
        SKEW,
        (Grid("fesem-cam", "pull", (0.001, 0.01, 0.1)),),
        "lambda of the pull towards centroids, the grid of CAM",
        chosen=True,
    ),
}


def rows(run: RunFolder) -> list[list[str]]:
    """A row per variant: its options, and means over seeds; the chosen variant is bold.

    Args:
        run: the finished runs of an ablation.
    """
    chosen = {choice.variant for choice in choices(run.summary)}
    table = []
    for label in run.methods:
        options = label.partition("@")[2].replace("@", ", ")
        scores = run.summary[label]
        cells = [
            over_seeds(
                [factor * v for v in scores.get(metric, {}).get("values", []) if v is not None],
                form,
                spread=True,
            )
            for metric, factor, form in COLUMNS.values()
        ]
        table.append([f"**{options}**" if label in chosen else options, *cells])
    return table


def main(names: Sequence[str], seeds: tuple[int, ...], rounds: int, out_folder: Path) -> None:
    """Run or resume ablations, and print a table for each.

    Args:
        names: names of ablations; see `ABLATIONS`.
        seeds: each variant runs once per seed.
        rounds: number of rounds of each run.
        out_folder: parent folder of the run folders.
    """
    screen, out = Console(stderr=True), Console(width=200)
    for name in names:
        ablation = ABLATIONS[name]
        scenario = replace(ablation.prepared(), name=name)
        run = finished(scenario, Sizes(scenario.methods, seeds, rounds, out_folder), screen)
        done = ", ".join(map(str, run.seeds(run.methods[0])))
        title = f"**{ablation.method}: {ablation.question}**, {ablation.scenario}, seeds {done}"
        shown = rows(run)
        kept = [0, *(i for i in range(1, len(COLUMNS) + 1) if any(r[i] != UNKNOWN for r in shown))]
        head = ["options", *COLUMNS]
        markdown(title, [head[i] for i in kept], [[row[i] for i in kept] for row in shown], out)


def parsed(words: Sequence[str] | None = None) -> argparse.Namespace:
    """Parse the command line."""
    line = CommandLine(__doc__)
    known = one_of("ablation", ABLATIONS)
    every = [*ABLATIONS]
    named = f"of {', '.join(every)}; all by default"
    line.add_argument("names", nargs="*", type=known, default=every, metavar="NAME", help=named)
    line.argument("--seeds", several(not_negative), "0,1,2", "seeds")
    line.argument("--rounds", positive, 50, "rounds of each run")
    line.argument("--out", Path, Path("runs/ablations"), "parent folder of the run folders")
    return line.parse_args(words)


if __name__ == "__main__":
    given = parsed()
    main(given.names, given.seeds, given.rounds, given.out)
