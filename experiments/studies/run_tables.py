"""What examples share that put runs of several scenarios into tables beside published ones.

Each scenario is a run folder as `bcfl run` leaves it, with its report; a run that was stopped goes
on when the example is started again, and a finished one is only read.
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

from rich import box
from rich.console import Console
from rich.table import Table

from experiments.config.scenario import load
from experiments.launch import resume, start
from experiments.runs.files import RunFiles
from experiments.runs.plan import Plan, read_plan
from experiments.runs.progress import watching
from experiments.runs.run_folder import RunFolder
from experiments.runs.runner import Experiment

UNKNOWN = "–"


@dataclass(frozen=True)
class Sizes:
    """How much is run.

    Attributes:
        methods: names.
        seeds: each method runs once per seed.
        rounds: of each run.
        out: folder of the run folders.
    """

    methods: tuple[str, ...]
    seeds: tuple[int, ...]
    rounds: int
    out: Path

    @classmethod
    def add_to(cls, parser: argparse.ArgumentParser, defaults: Sizes) -> None:
        """Add the options to a command line."""
        parser.add_argument("--methods", default=",".join(defaults.methods), help="%(default)s")
        parser.add_argument("--seeds", default=",".join(map(str, defaults.seeds)))
        parser.add_argument("--rounds", type=int, default=defaults.rounds)
        parser.add_argument("--out", type=Path, default=defaults.out, help="%(default)s")

    @classmethod
    def of(cls, given: argparse.Namespace) -> Sizes:
        """What was given on the command line."""
        seeds = tuple(int(seed) for seed in given.seeds.split(","))
        return cls(tuple(given.methods.split(",")), seeds, given.rounds, given.out)


def finished(name: str, sizes: Sizes, screen: Console) -> RunFolder:
    """The run of a scenario: done, gone on with, or read if it is there.

    Args:
        name: of the scenario, or its file.
        sizes: how much is run; a folder that is there is taken as it is.
        screen: shows the progress.
    """
    chosen = load(name)
    folder = sizes.out / chosen.name
    started = RunFiles(folder).run.is_file()
    if started:
        plan = read_plan(folder)
    else:
        rules = chosen.federation.lasting(sizes.rounds)
        chosen = replace(chosen, methods=sizes.methods, seeds=sizes.seeds, federation=rules)
        plan = Plan(chosen, "cpu", 1, 1, shlex.join(sys.argv))
    with watching(screen, plan.scenario) as watch:
        if started:
            resume(plan, folder, watch)
        else:
            setup = Experiment(plan.scenario, plan.device)
            setup.check()
            start(plan, folder, setup, watch)
    return RunFolder.read(folder)


def over_seeds(values: Iterable[float], form: str = ".2f", spread: bool = False) -> str:
    """Mean and, if wanted, standard error over seeds; unknown values make a dash.

    Args:
        values: one per seed.
        form: of both numbers.
        spread: whether the standard error is shown where there are several seeds.
    """
    known = [value for value in values if isfinite(value)]
    if not known:
        return UNKNOWN
    text = format(fmean(known), form)
    if spread and len(known) > 1:
        text += f" ± {format(stdev(known) / len(known) ** 0.5, form)}"
    return text


def markdown(title: str, head: Sequence[str], rows: Sequence[Sequence[str]], out: Console) -> None:
    """Print a table as Markdown."""
    table = Table(*head, box=box.MARKDOWN)
    for row in rows:
        table.add_row(*row)
    out.print(f"\n{title}\n", soft_wrap=True, markup=False)
    out.print(table, markup=False)
