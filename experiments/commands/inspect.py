"""`bcfl compare`, `bcfl report` and `bcfl graph`: tables, reports and graphs of runs."""

from __future__ import annotations

import json
import shlex
from contextlib import suppress
from enum import StrEnum
from functools import partial
from io import BytesIO
from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer

from experiments.commands import completion
from experiments.commands.outcome import failure_lines
from experiments.commands.shared import (
    Debug,
    MethodOfRun,
    console,
    explained,
    line_width,
    make_room,
)

if TYPE_CHECKING:
    import networkx as nx

Folder = Annotated[Path, typer.Argument(help="Folder of a run.", metavar="DIR")]


class GraphKind(StrEnum):
    """What a graph joins."""

    CLIENTS = "clients"
    CLUSTERS = "clusters"
    HYPOTHESES = "hypotheses"
    SUPPORT = "support"


class GraphFormat(StrEnum):
    """How a graph is written."""

    GRAPHML = "graphml"
    GEXF = "gexf"
    JSON = "json"


@explained
def compare(
    folders: Annotated[list[Path], typer.Argument(help="Folders of runs.", metavar="DIR...")],
    as_latex: Annotated[
        bool, typer.Option("--latex", help="Print a LaTeX table (booktabs).")
    ] = False,
    html: Annotated[
        Path | None, typer.Option(metavar="FILE", help="Write a page, like the report of a run.")
    ] = None,
    debug: Debug = False,
) -> None:
    """Put the results of finished runs into one table, and on one page."""
    del debug
    from experiments.runs.plan import read_description

    for folder in folders:
        read_description(folder)
    from experiments.reports.compare import (
        aligned,
        gather,
        latex,
        lengths,
        lettered,
        read_results,
        unpaired,
    )

    scenarios = sorted({read_results(folder)[0] for folder in folders})
    results, screen = gather(folders), console()
    if html is not None:
        make_room(html, "--html")
    for letter, folder in lettered(folders).items() if len(folders) > 1 else ():
        screen.print(f"{'% ' if as_latex else ''}{letter}: {folder}", soft_wrap=True)
    table = latex if as_latex else partial(aligned, width=line_width(screen))
    for line in table(results, paired=not unpaired(folders), rounds=lengths(folders)):
        screen.print(line, soft_wrap=True)
    _tell_failures(folders)
    if html is not None:
        from experiments.reports.compare_page import render
        from experiments.runs.files import write_aside

        write_aside(html, render(folders))
        typer.echo(f"page {html}", err=True)
    _tell_shared_groups(folders)
    if len(scenarios) > 1:
        typer.echo(f"note: these are different scenarios: {', '.join(scenarios)}", err=True)


def _tell_shared_groups(folders: list[Path]) -> None:
    from experiments.runs.index import read_index
    from experiments.runs.plan import read_description
    from experiments.runs.run_folder import nothing_to_tell, shares_group

    shared = [folder for folder in folders if shares_group(folder, read_index(folder).pairs)]
    streams = {read_description(folder).get("data", {}).get("steps", 1) > 1 for folder in shared}
    for stream in sorted(streams):
        typer.echo(f"note: without ARI where {nothing_to_tell(stream=stream)}", err=True)


def _tell_failures(folders: list[Path]) -> None:
    from experiments.runs.run_folder import NoRunError, RunFolder

    for folder in folders:
        with suppress(NoRunError):
            for line in failure_lines(RunFolder.read(folder)):
                typer.echo(f"{line} in {folder}", err=True)


@explained
def report(
    folder: Folder,
    *,
    local_models: Annotated[
        str | None,
        typer.Option(
            metavar="METHOD",
            autocompletion=completion.methods_of_run,
            help="Repeat the first rounds of a method, and show the similarity of the "
            "clients' local models.",
        ),
    ] = None,
    debug: Debug = False,
) -> None:
    """Write the report of a run anew."""
    del debug
    from experiments.runs.plan import read_description

    read_description(folder)
    if local_models is not None:
        from experiments.reports.local_models import record_into

        record_into(folder, local_models)
    from experiments.reports.report import write_report

    console().print(str(write_report(folder)), soft_wrap=True)


@explained
def graph(
    folder: Folder,
    *,
    method: MethodOfRun = None,
    seed: Annotated[int | None, typer.Option(help="Seed; the first of the run.")] = None,
    kind: Annotated[GraphKind, typer.Option(help="What the graph shows.")] = GraphKind.CLIENTS,
    format: Annotated[GraphFormat, typer.Option(help="File format.")] = GraphFormat.GRAPHML,
    min_probability: Annotated[
        float, typer.Option(help="Leave out edges of lower probability.")
    ] = 0.0,
    out: Annotated[Path | None, typer.Option(help="File; standard output if left out.")] = None,
    debug: Debug = False,
) -> None:
    """Write the association graph of a run for networkx, Gephi or the web.

    The group of a client is its true group, in a stream its concept in the last round.
    """
    del debug
    if not 0 <= min_probability <= 1:
        raise ValueError(f"--min-probability must lie between 0 and 1, got {min_probability}")
    path = _stored(folder, method, seed, kind)
    if out is not None:
        make_room(out, "--out")
    from experiments.runs.run_folder import read_graph

    stored = read_graph(path, kind.value)
    weak = [
        (a, b) for a, b, p in stored.edges(data="probability", default=1) if p < min_probability
    ]
    stored.remove_edges_from(weak)
    text = _written(stored, format)
    if out is None:
        typer.echo(text)
        return
    out.write_text(text + "\n", encoding="utf-8")
    nodes, edges = stored.number_of_nodes(), stored.number_of_edges()
    typer.echo(f"{out}: {nodes} nodes, {edges} edges")


def _stored(folder: Path, method: str | None, seed: int | None, kind: GraphKind) -> Path:
    from experiments.runs.index import read_index

    read_index(folder).check(() if method is None else (method,), seed)
    from experiments.runs.files import RunFiles
    from experiments.runs.selection import choose

    chosen, note = choose(folder, method, seed)
    if note:
        typer.echo(f"note: {chosen}, {note}", err=True)
    files = RunFiles(folder).of(chosen)
    path = files.graph(kind.value)
    if not path.is_file() and files.is_finished:
        raise ValueError(
            f"{chosen} has no {kind.value} graph: its method doesn't test which cluster supports "
            "which, as faacl does"
        )
    if not path.is_file():
        raise ValueError(
            f"{chosen} isn't finished; resume it with: bcfl resume {shlex.quote(str(folder))}"
        )
    return path


def _written(graph: nx.Graph[str], format: GraphFormat) -> str:
    import networkx as nx

    if format is GraphFormat.JSON:
        return json.dumps(nx.node_link_data(graph, edges="edges"), indent=1)
    buffer = BytesIO()
    if format is GraphFormat.GEXF:
        nx.write_gexf(graph, buffer)
    else:
        nx.write_graphml(graph, buffer)
    return buffer.getvalue().decode()
