"""Tables of runs of several scenarios next to published numbers.

Each scenario is a run folder of `bcfl run` with its report; an interrupted run is resumed when the
study is started again, and a finished one is only read.
"""

from __future__ import annotations

import argparse
import shlex
import sys
from collections.abc import Iterable, Sequence
from dataclasses import dataclass, replace
from math import isfinite
from pathlib import Path
from statistics import fmean, stdev

import numpy as np
from numpy.typing import NDArray
from rich import box
from rich.console import Console
from rich.table import Table

from bcfl.methods import named
from experiments.config.command_line import CommandLine, accepted, not_negative, positive, several
from experiments.config.scenario import Scenario, load
from experiments.config.variants import Variant
from experiments.launch import resume, start
from experiments.runs.files import RunFiles
from experiments.runs.plan import Plan, read_plan
from experiments.runs.progress import showing_progress
from experiments.runs.run_folder import RunFolder
from experiments.runs.runner import Experiment

UNKNOWN = "–"


@dataclass(frozen=True)
class Sizes:
    """Size of a study.

    Attributes:
        methods: names of methods.
        seeds: seeds; each method runs once per seed.
        rounds: number of rounds of each run.
        out: parent folder of the run folders.
    """

    methods: tuple[str, ...]
    seeds: tuple[int, ...]
    rounds: int
    out: Path

    @classmethod
    def add_to(cls, line: CommandLine, defaults: Sizes) -> None:
        """Add the options to a command line.

        Args:
            line: the command line.
            defaults: default values.
        """
        methods, seeds = (",".join(map(str, v)) for v in (defaults.methods, defaults.seeds))
        known = several(accepted(lambda label: named(Variant.of(label).method)))
        line.argument("--methods", known, methods, "methods")
        line.argument("--seeds", several(not_negative), seeds, "seeds")
        line.argument("--rounds", positive, defaults.rounds, "rounds of each run")
        line.argument("--out", Path, defaults.out, "parent folder of the run folders")

    @classmethod
    def of(cls, given: argparse.Namespace) -> Sizes:
        """From a parsed command line."""
        return cls(given.methods, given.seeds, given.rounds, given.out)


def finished(name: str | Scenario, sizes: Sizes, screen: Console) -> RunFolder:
    """Run a scenario, resume it, or read it if it is finished.

    Args:
        name: the scenario, its name or its file.
        sizes: size of the study; an existing run keeps its own.
        screen: console of the progress bars.
    """
    chosen = name if isinstance(name, Scenario) else load(name)
    folder = sizes.out / chosen.name
    started = RunFiles(folder).run.is_file()
    if started:
        plan = read_plan(folder)
    else:
        rules = chosen.federation.lasting(sizes.rounds)
        chosen = replace(chosen, methods=sizes.methods, seeds=sizes.seeds, federation=rules)
        plan = Plan(scenario=chosen, device="cpu", threads=1, jobs=1, command=shlex.join(sys.argv))
    with showing_progress(screen, plan.scenario) as callbacks:
        if started:
            resume(plan, folder, callbacks)
        else:
            setup = Experiment(scenario=plan.scenario, device=plan.device)
            setup.check()
            start(plan, folder, setup, callbacks)
    return RunFolder.read(folder)


def over_seeds(values: Iterable[float], form: str = ".2f", spread: bool = False) -> str:
    """Text of the mean over seeds, optionally with standard error; a dash where unknown.

    Args:
        values: one value per seed.
        form: format of mean and standard error.
        spread: whether to show the standard error where there are several seeds.
    """
    known = [value for value in values if isfinite(value)]
    if not known:
        return UNKNOWN
    text = format(fmean(known), form)
    if spread and len(known) > 1:
        text += f" ± {format(stdev(known) / len(known) ** 0.5, form)}"
    return text


def first_mean_largest(sent: Sequence[NDArray[np.float64]]) -> str:
    """Text of the first, the mean and the largest of some rounds, means over seeds; a dash if none.

    Args:
        sent: for each seed, float64 of shape (rounds,).
    """
    known = [rounds for rounds in sent if len(rounds)]
    if not known:
        return UNKNOWN
    parts = ([r[0] for r in known], [r.mean() for r in known], [r.max() for r in known])
    return " / ".join(over_seeds(part, ".1f") for part in parts)


def markdown(title: str, head: Sequence[str], rows: Sequence[Sequence[str]], out: Console) -> None:
    """Print a table as Markdown.

    Args:
        title: title above the table.
        head: column headings.
        rows: cells by row.
        out: console to print to.
    """
    table = Table(*head, box=box.MARKDOWN)
    for row in rows:
        table.add_row(*row)
    out.print(f"\n{title}\n", soft_wrap=True, markup=False)
    out.print(table, markup=False)
