"""What `bcfl run` and `bcfl resume` print when a run is finished."""

from __future__ import annotations

import shlex
from collections.abc import Mapping
from pathlib import Path
from typing import TYPE_CHECKING, Any

import typer
from rich.console import Console

from experiments.commands.shared import NOTHING_MADE, line_width

if TYPE_CHECKING:
    from experiments.runs.plan import Plan
    from experiments.runs.run_folder import RunFolder


def show_results(screen: Console, plan: Plan, folder: Path) -> None:
    """Print the table of a run, what makes it doubtful, and what to do next.

    Args:
        screen: where to print.
        plan: of the run.
        folder: of the run.

    Raises:
        typer.Exit: with status 1, if no client has trained a model in any round.
    """
    from experiments.reports.compare import aligned, lengths, read_results
    from experiments.reports.run_warnings import fusion_warnings, untrained_methods
    from experiments.runs.files import RunFiles
    from experiments.runs.grids import choices
    from experiments.runs.plan import read_description
    from experiments.runs.run_folder import RunFolder

    _, results = read_results(folder)
    run = RunFolder.read(folder)
    data = read_description(folder)["data"]
    screen.print()
    for line in aligned(results, rounds=lengths([folder]), width=line_width(screen)):
        screen.print(line, soft_wrap=True)
    for choice in choices(results):
        screen.print(str(choice), soft_wrap=True)
    for warning in fusion_warnings(run):
        screen.print(f"warning: {warning}", soft_wrap=True)
    if told := agreement(results, data, one_group=run.one_group):
        screen.print(told, soft_wrap=True)
    untrained = untrained_methods(run)
    for line in failure_lines(run):
        screen.print(line, soft_wrap=True)
    quoted = shlex.quote(str(folder))
    steps = {
        "report": str(RunFiles(folder).report),
        "again": plan.command,
        "clients": f"bcfl explain {quoted}",
        "graph": f"bcfl graph {quoted} --format gexf --out graph.gexf",
    }
    for name, text in steps.items():
        screen.print(f"{name:8} {text}", soft_wrap=True)
    if len(untrained) == len(run.methods):
        raise typer.Exit(NOTHING_MADE)


def agreement(
    results: Mapping[str, Mapping[str, Any]], data: Mapping[str, Any], *, one_group: bool
) -> str:
    """A line on true groups and the methods that agree best with them; empty without any.

    Args:
        results: metrics by method, as in `summary.json`.
        data: of the description of the run.
        one_group: whether all clients share a group at every time step.
    """
    from bcfl.runtime import counted

    groups, steps = data["groups"] or 0, data.get("steps", 1)
    known = f"true groups: {groups}"
    if steps > 1:
        known = f"{counted(groups, 'concept')} in {counted(steps, 'time step')}"
    if one_group:
        shared = "all clients share one at every step" if steps > 1 else "all clients share it"
        return f"{known} · {shared}, so that ARI tells nothing of the methods"
    best = highest_ari(results) if groups > 1 and len(results) > 1 else []
    return f"{known} · highest ARI: {', '.join(best)}" if best else ""


def highest_ari(results: Mapping[str, Mapping[str, Any]]) -> list[str]:
    """The methods that agree best with the true groups; none where no agreement is above chance.

    Args:
        results: metrics by method, as in `summary.json`.
    """
    known = {name: round(row["ari"]["mean"] or 0.0, 2) for name, row in results.items()}
    highest = max(known.values(), default=0.0)
    return [name for name, ari in known.items() if ari == highest > 0]


def failure_lines(run: RunFolder) -> list[str]:
    """Lines about requests without a usable answer, if there are any.

    Args:
        run: the run.
    """
    from bcfl import rounds
    from experiments.reports.run_warnings import failures, untrained_methods

    counted = failures(run)
    if not counted:
        return []
    method, text, _ = counted[0]
    total = sum(times for *_, times in counted)
    where = "all are in the report" if len(counted) > 1 else method
    requests = "1 request" if total == 1 else f"{total} requests"
    lines = [f"failed   {requests} of clients; most often {rounds.with_remedy(text)} ({where})"]
    if untrained := untrained_methods(run):
        names = ", ".join(untrained)
        lines.append(f"failed   all clients in all rounds of {names}: no model was trained")
    return lines
