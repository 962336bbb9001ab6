"""`bcfl uncertainty`: calibration and detection scores of a run."""

from __future__ import annotations

import textwrap
from enum import StrEnum
from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer

from experiments.commands import completion
from experiments.commands.shared import Debug, console, explained

if TYPE_CHECKING:
    from rich.console import Console

    from experiments.reports.uncertainty_results import Result


class Kind(StrEnum):
    """How posteriors become predictions."""

    PLUG_IN = "plug-in"
    MONTE_CARLO = "monte-carlo"
    LINEARISED = "linearised"
    PROBIT = "probit"
    BRIDGE = "bridge"


class Part(StrEnum):
    """Which clients are scored together."""

    ALL = "all"
    CLUSTER = "cluster"
    CLIENT = "client"


@explained
def uncertainty(
    folder: Annotated[Path, typer.Argument(help="Folder of a run.", metavar="DIR")],
    *,
    method: Annotated[
        list[str] | None,
        typer.Option(
            help="Method; may be repeated; all if left out.",
            autocompletion=completion.methods_of_run,
        ),
    ] = None,
    predictive: Annotated[
        list[Kind] | None,
        typer.Option(
            help="Prediction besides the plain softmax; may be repeated; plug-in and linearised if "
            "left out."
        ),
    ] = None,
    by: Annotated[
        Part,
        typer.Option(
            help="Which clients are scored together; clusters are those of the leading hypothesis."
        ),
    ] = Part.ALL,
    tune: Annotated[
        bool,
        typer.Option(
            help="Choose prior precision and temperature on training samples that were set aside "
            "(calibration in the scenario), or else on a third of the test samples."
        ),
    ] = True,
    debug: Debug = False,
) -> None:
    """Measure calibration, selective prediction and OOD detection; write uncertainty.html."""
    del debug
    from experiments.runs.index import read_index

    index = read_index(folder)
    index.check(method or ())
    from bcfl.runtime import limited_threads
    from experiments.reports.uncertainty_page import render
    from experiments.reports.uncertainty_results import (
        Query,
        as_json,
        evaluate_run,
        finetuning_notes,
        named_predictive,
        step_notes,
    )
    from experiments.runs.files import RunFiles, write_aside

    kinds = [named_predictive(kind) for kind in predictive or (Kind.PLUG_IN, Kind.LINEARISED)]
    query = Query(tuple(method or ()), kinds, by.value, tune)
    with limited_threads(1):
        results = list(evaluate_run(folder, query))
    files = RunFiles(folder)
    pending = [str(p) for p in (r.pair for r in results) if not files.of(p).is_finished]
    notes = [
        f"{p}: not all of its rounds are done; the newest is scored" for p in dict.fromkeys(pending)
    ]
    notes += finetuning_notes(results)
    write_aside(files.uncertainty, as_json(results))
    write_aside(files.uncertainty_page, render(index.name, results, notes))
    screen = console()
    for note in [*step_notes(results), *notes]:
        screen.print(f"note: {note}", soft_wrap=True)
    _show(screen, results)
    screen.print(f"numbers {files.uncertainty}", soft_wrap=True)
    screen.print(f"page    {files.uncertainty_page}", soft_wrap=True)
    screen.print(f"link    bcfl report {files.folder} links to it", soft_wrap=True)


def _show(screen: Console, results: list[Result]) -> None:
    from experiments.reports.uncertainty_page import edge_warnings
    from experiments.reports.uncertainty_table import (
        aligned,
        association_table,
        chosen_values,
        score_tables,
    )

    for one in score_tables(results):
        for line in [one.title, *textwrap.wrap(one.look, 100), *aligned(one.cells), ""]:
            screen.print(line, soft_wrap=True)
    title = "pairs of clients by co-association probability; ± half a 95 % interval over draws"
    pairs = aligned(association_table(results))
    for line in [title, *pairs, ""] if pairs else []:
        screen.print(line, soft_wrap=True, markup=False)
    for line in chosen_values(results):
        screen.print(f"tuned   {line}", soft_wrap=True)
    for warning in edge_warnings(results):
        screen.print(f"warning: {warning}", soft_wrap=True)
