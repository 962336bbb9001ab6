"""`bcfl profile`: time and work by phase."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated

import typer
from rich.table import Column, Table

from experiments.commands.shared import (
    Arithmetic,
    Debug,
    Executor,
    Memory,
    Methods,
    NumWorkers,
    ScenarioName,
    console,
    explained,
    line_width,
)

UNLIMITED = 10_000
"""Characters of a line that no table is longer than."""


@explained
def profile(
    scenario: ScenarioName,
    *,
    methods: Methods = None,
    rounds: Annotated[
        int, typer.Option(min=1, help="Rounds that are measured, after a first one that is not.")
    ] = 3,
    executor: Executor = "auto",
    memory: Memory = None,
    workers: NumWorkers = None,
    arithmetic: Arithmetic = "full",
    threads: Annotated[int, typer.Option(min=1, help="Threads.")] = 1,
    device: Annotated[str, typer.Option(help="auto, cpu, cuda or cuda:N.")] = "auto",
    data_dir: Annotated[
        Path | None, typer.Option(help="Folder that is searched first for data.")
    ] = None,
    debug: Debug = False,
) -> None:
    """Measure a few rounds of each method: time by phase, work, bytes, FLOP/s."""
    del debug
    from dataclasses import replace

    from experiments.commands.overrides import items
    from experiments.config.executor_options import executor_of
    from experiments.config.scenario import load
    from experiments.config.sections import in_file
    from experiments.config.variants import Pair

    chosen = load(scenario)
    if methods is not None:
        chosen = replace(chosen, methods=tuple(items(methods)))
    if data_dir is not None:
        chosen = replace(chosen, data=replace(chosen.data, data_dir=str(data_dir.absolute())))
    chosen = replace(chosen, seeds=chosen.seeds[:1])
    working = executor_of(executor, memory, workers, arithmetic)
    from bcfl.runtime import device_named

    place = str(device_named(device))
    from experiments.runs.profiling import PHASES, matrix_peak, profiled
    from experiments.runs.runner import Experiment

    setup = Experiment(scenario=chosen, device=place, executor=working, threads=threads)
    with in_file(scenario):
        setup.check()
    peak, screen = matrix_peak(place, threads), console()
    titles = ("method", *(f"{name} ms" for name in PHASES))
    table = Table(
        *(
            Column(title, overflow="fold")
            for title in (*titles, "trainings", "scores", "MB down", "MB up")
        ),
        title=f"{chosen.name}: mean of {rounds} rounds; {place}, {setup.executor_name} executor",
    )
    sentences = []
    for name in chosen.methods:
        federation = setup.federation(Pair(name, chosen.seeds[0]))
        measured = profiled(federation, rounds, peak)
        per_round = [f"{1e3 * measured.seconds[phase] / rounds:.1f}" for phase in PHASES]
        counts = [
            f"{done} of {requested}" for requested, done in (measured.trainings, measured.scores)
        ]
        sent = [f"{number / rounds:.2f}" for number in measured.megabytes]
        table.add_row(name, *per_round, *counts, *sent)
        sentences.append(f"{name}: {measured.in_words}")
    screen.width = line_width(screen) or UNLIMITED
    screen.print(table)
    screen.print(f"a matrix product of 1024 x 1024 reaches {peak / 1e9:.1f} GFLOP/s here")
    for sentence in sentences:
        screen.print(sentence, soft_wrap=True)
