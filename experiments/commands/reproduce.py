"""`bcfl reproduce`: tables and figures of the papers, theirs beside ours."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace
from functools import partial
from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer
from rich.console import Console

from experiments.commands import completion
from experiments.commands.overrides import items, seed_of
from experiments.commands.shared import INTERRUPTED, NOTHING_MADE, Debug, console, explained

if TYPE_CHECKING:
    from experiments.published.carry_out import Machine
    from experiments.published.comparison import Comparison
    from experiments.published.data import Described
    from experiments.published.results import Results
    from experiments.published.table import PublishedTable
    from experiments.published.units import Unit


@explained
def reproduce(
    tables: Annotated[
        list[str] | None,
        typer.Argument(
            help="Tables such as bcfl/1, or papers; lists all tables if left out.",
            metavar="[NAME]...",
            autocompletion=completion.tables,
        ),
    ] = None,
    *,
    scale: Annotated[
        str, typer.Option(help="paper: the paper's size; small: minutes on two cores.")
    ] = "small",
    every: Annotated[bool, typer.Option("--all", help="All tables.")] = False,
    seeds: Annotated[
        str | None, typer.Option(help="Seeds in place of the table's, such as 0,1,2.")
    ] = None,
    columns: Annotated[
        str | None, typer.Option(help="Only these columns, separated by commas.")
    ] = None,
    rows: Annotated[
        str | None, typer.Option(help="Only these rows or methods, separated by commas.")
    ] = None,
    results: Annotated[
        Path | None,
        typer.Option(help="Folder of results; experiments/results of a checkout, or ./reproduced."),
    ] = None,
    show: Annotated[
        bool,
        typer.Option("--show", help="Run and write nothing; print tables of existing results."),
    ] = False,
    write: Annotated[
        bool,
        typer.Option(
            "--write",
            help="Run nothing; write tables and figures of existing results anew, and with --all "
            "their pages.",
        ),
    ] = False,
    device: Annotated[str, typer.Option(help="cpu, cuda, cuda:N or auto.")] = "auto",
    threads: Annotated[int, typer.Option(help="Threads.", min=1)] = 1,
    data_dir: Annotated[
        Path | None, typer.Option(help="Folder that is searched first for data.")
    ] = None,
    debug: Debug = False,
) -> None:
    """Run tables or figures of papers and print their values beside ours; continues if stopped."""
    del debug
    from experiments.config.options import chosen
    from experiments.published import reading
    from experiments.published.results import Results, default_folder
    from experiments.published.table import SCALES
    from experiments.published.units import data_here

    chosen("scale", scale, dict.fromkeys(SCALES))
    if show and write:
        raise ValueError("--show writes nothing; give --show or --write")
    if every and tables:
        raise ValueError(f"--all is all tables; give --all or {' '.join(tables)}")
    folder = None if data_dir is None else str(data_dir.absolute())
    request = _Request(
        scale=scale,
        seeds=None if seeds is None else _seeds(seeds),
        columns=tuple(items(columns or "")),
        rows=tuple(items(rows or "")),
        runs=not (show or write),
        writes=not show,
        results=Results(results or default_folder()),
        device=device,
        threads=threads,
        data_dir=folder,
        found=data_here(folder),
    )
    if not every and (not tables or [name.lower() for name in tables] == ["list"]):
        _list(console(), request)
        return
    names = reading.chosen(tables) if tables else reading.names()
    _reproduce(console(), [reading.load(name) for name in names], request, whole=not tables)


def _seeds(text: str) -> tuple[int, ...]:
    seeds = tuple(seed_of(part) for part in items(text))
    if not seeds:
        raise ValueError(f"--seeds must be whole numbers, separated by commas, got {text!r}")
    if repeated := sorted({seed for seed in seeds if seeds.count(seed) > 1}):
        raise ValueError(f"--seeds must differ from each other, got {repeated[0]} more than once")
    return seeds


@dataclass(frozen=True, kw_only=True)
class _Request:
    """What the command was asked; whether it runs units, and whether it writes tables."""

    scale: str
    seeds: tuple[int, ...] | None
    columns: tuple[str, ...]
    rows: tuple[str, ...]
    runs: bool
    writes: bool
    results: Results
    device: str
    threads: int
    data_dir: str | None
    found: dict[str, str]

    def units(self, table: PublishedTable) -> list[Unit]:
        """The units of a table whose data are here."""
        from experiments.published.units import missing_data, units_of

        units = units_of(table, self.scale, self.seeds, self.columns, self.rows)
        return [unit for unit in units if not missing_data(table, unit.column, self.found)]

    def machine(self) -> Machine:
        """Where to run.

        Raises:
            ValueError: the device is unknown or not available.
        """
        from bcfl.runtime import device_named

        device = str(device_named(self.device))
        from experiments.published.carry_out import Machine

        return Machine(device=device, threads=self.threads, data_dir=self.data_dir)


def _list(screen: Console, request: _Request) -> None:
    """Every table: how many of its columns can run here, and how many units are done."""
    from experiments.published import reading
    from experiments.published.table import SCALES
    from experiments.published.units import missing_data, units_of

    tables = [reading.load(name) for name in reading.names()]
    width = max(len(table.name) for table in tables)
    for table in tables:
        gaps = {column.name: missing_data(table, column, request.found) for column in table.columns}
        here = sum(not missing for missing in gaps.values())
        names = sorted({name for missing in gaps.values() for name in missing})
        absent = f"; not here: {', '.join(names)}" if names else ""
        done = []
        for scale in SCALES:
            units = units_of(table, scale)
            count = sum(request.results.is_done(unit) for unit in units)
            done.append(f"{scale} {count}/{len(units)}")
        text = f"{table.name:{width}}   {table.item}: {table.caption}"
        screen.print(text, soft_wrap=True)
        counts = f"units done: {', '.join(done)}; columns that can run: {here}/{len(gaps)}{absent}"
        screen.print(f"{'':{width}}   {counts}", soft_wrap=True)


def _reproduce(
    screen: Console, tables: Sequence[PublishedTable], request: _Request, whole: bool
) -> None:
    """Run, show and write tables, and where they are all, the overview of them."""
    for table in tables:
        request.units(table)
    machine = request.machine()
    from experiments.published.overview import write_overview
    from experiments.published.table import SCALES

    has_results = False
    written: list[Comparison] = []
    for table in tables:
        if request.runs:
            results = _run(screen, request.units(table), request, machine)
            request = replace(request, results=results)
        has_results |= _show(screen, table, request)
        if request.writes:
            written += _write(screen, table, request, SCALES if whole else [request.scale])
    if whole and request.writes:
        paths = write_overview(written, request.results.folder)
        screen.print("\n".join(map(str, paths)), soft_wrap=True)
    if not has_results:
        screen.print("there is no result of ours", soft_wrap=True)
        raise typer.Exit(NOTHING_MADE)


def _run(screen: Console, units: Sequence[Unit], request: _Request, machine: Machine) -> Results:
    from experiments.published.carry_out import Reporter, carry_out
    from experiments.runs.progress import showing_progress
    from experiments.runs.runner import Interrupted

    def on_unit(unit: Unit, number: int) -> None:
        where = f"{unit.table.name} {unit.scale}   {unit.column.title} · {unit.row.name}"
        screen.print(f"{where} · seed {unit.seed}   unit {number}/{len(units)}", soft_wrap=True)

    def on_other_data(unit: Unit, data: Described) -> None:
        how = f"{data['samples']} samples" if "samples" in data else "others"
        why = f"its result was made from other data ({how}) and is replaced"
        screen.print(f"{unit.name}: {why}", soft_wrap=True)

    reporter = Reporter(
        callbacks=partial(showing_progress, screen),
        on_unit=on_unit,
        on_other_data=on_other_data,
        on_failure=lambda unit, why: screen.print(f"{unit.name}: {why}", soft_wrap=True),
    )
    try:
        return carry_out(units, request.results, machine, reporter)
    except (Interrupted, KeyboardInterrupt):
        screen.print("stopped; the same command goes on from here", soft_wrap=True)
        raise typer.Exit(INTERRUPTED) from None


def _show(screen: Console, table: PublishedTable, request: _Request) -> bool:
    """Show the columns, rows and seeds of a table that were asked for; whether one has a result."""
    from experiments.published import formats
    from experiments.published.comparison import compare, part_of

    comparison = compare(
        table, request.scale, request.results, request.found, request.seeds, request.rows
    )
    part = part_of(comparison, request.columns, request.rows)
    none = f"{table.name}: none of these columns has one of these rows"
    screen.print(formats.markdown(part) if part.lines else none, soft_wrap=True)
    return comparison.has_results


def _write(
    screen: Console, table: PublishedTable, request: _Request, scales: Sequence[str]
) -> list[Comparison]:
    """Write a table at each scale at which it has results.

    All its columns, rows and seeds are written, and other seeds that were asked for.

    Returns:
        The table at the scale that was asked for, and at others at which it has results.
    """
    from experiments.published import formats
    from experiments.published.comparison import compare
    from experiments.published.figures import draw
    from experiments.published.units import seeds_of

    kept, folder = request.results, request.results.folder / table.name
    written = []
    for scale in sorted(scales, key=lambda scale: scale != request.scale):
        seeds = tuple(dict.fromkeys([*seeds_of(table, scale), *(request.seeds or ())]))
        comparison = compare(table, scale, kept, request.found, seeds)
        if comparison.has_results:
            paths = [*formats.write(comparison, folder), *draw(comparison, kept, folder, seeds)]
            screen.print("\n".join(map(str, paths)), soft_wrap=True)
        if comparison.has_results or scale == request.scale:
            written.append(comparison)
    return written
