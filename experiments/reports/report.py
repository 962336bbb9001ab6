"""The report of a run as one self-contained HTML file."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping
from pathlib import Path
from typing import TYPE_CHECKING, Any

from bcfl.methods import DEFAULT, RECIPES
from bcfl.runtime import counted
from experiments.reports.columns import Length, averaged
from experiments.reports.galleries.gallery import all_pictures
from experiments.reports.page import as_script_data, render_page
from experiments.reports.pictures.time_steps import Stream
from experiments.reports.results_table import agreement_table, results_table
from experiments.reports.round_history import FirstStates, has_alternatives, history
from experiments.reports.run_warnings import failures, notes, warnings
from experiments.runs.files import RunFiles, write_aside
from experiments.runs.grids import choices
from experiments.runs.run_folder import RunFolder

if TYPE_CHECKING:
    from experiments.runs.runner import Experiment


def headline(run: RunFolder) -> str:
    """One sentence on methods, data, rounds and seeds, and the description of the scenario."""
    data = run.description.get("data", {})
    parts = [of_asked(len(run.methods), len(run.rounds), "method")]
    if "dataset" in data:
        parts[0] += f" on {data['dataset']}"
    if "clients" in data:
        parts.append(counted(data["clients"], "client"))
        steps = _time_steps(run, data)
        if data.get("groups") and not steps:
            parts[-1] += f" in {counted(data['groups'], 'true group')}"
        parts += steps
    rounds = max(run.series(method, "round").shape[1] for method in run.methods)
    planned = run.scenario.get("federation", {}).get("rounds", rounds)
    parts.append(of_asked(rounds, planned, "round"))
    seeds = {seed for method in run.methods for seed in run.seeds(method)}
    parts.append(of_asked(len(seeds), len(run.description.get("seeds", seeds)), "seed"))
    description = str(run.scenario.get("description", "")).strip().rstrip(".")
    return ", ".join(parts) + "." + (f" {description}." if description else "")


def _time_steps(run: RunFolder, data: Mapping[str, Any]) -> list[str]:
    """Numbers of time steps and of concepts of a stream; empty for other data."""
    stream = Stream.of(run)
    steps = data.get("steps", max(stream.steps.of_round, default=0) + 1)
    if steps == 1:
        return []
    known = {concept for own in stream.concepts.values() for concept in own} - {None}
    concepts = len(known) or data.get("groups")
    return [counted(steps, "time step"), *([counted(concepts, "concept")] if concepts else [])]


def of_asked(number: int, asked: int, noun: str) -> str:
    """Number with noun, and how many were asked for where those are more: `1 of 2 methods`.

    Args:
        number: that are there.
        asked: that the run should have.
        noun: noun in singular.
    """
    return f"{number:,} of {counted(asked, noun)}" if number < asked else counted(number, noun)


def flat(settings: Mapping[str, Any], prefix: str = "") -> Iterator[tuple[str, str]]:
    """Flatten nested settings into dotted names and text.

    Args:
        settings: nested settings.
        prefix: prefix of all names.

    Yields:
        Dotted name and value as text.
    """
    for name, value in settings.items():
        if isinstance(value, Mapping):
            yield from flat(value, f"{prefix}{name}.")
        elif isinstance(value, list | tuple):
            yield prefix + name, ", ".join(map(str, value))
        else:
            yield prefix + name, str(value)


def write_report(run_dir: Path, experiment: Experiment | None = None) -> Path:
    """Write `report.html` into the folder of a finished or running run.

    The output is deterministic; the file is written to a temporary name and renamed.

    Args:
        run_dir: folder of the run.
        experiment: of the run, where it has been built before.

    Returns:
        Path of the report.

    Raises:
        ValueError: the folder holds no run, or one of its files cannot be read.
    """
    page = render(RunFolder.read(run_dir, experiment))
    path = RunFiles(run_dir).report
    write_aside(path, page)
    return path


def render(run: RunFolder) -> str:
    """Render the report of a run as HTML."""
    run = run.without_vain_scores()
    name = str(run.scenario.get("name", "run"))
    first = FirstStates.of(run)
    known = history(run, first.histories)
    absent = {pair.method for pair in run.left_out if not run.rounds[pair.method]}
    return render_page(
        "report.html.jinja",
        f"{name} – bcfl report",
        name=name,
        headline=headline(run),
        group=Stream.of(run).kind,
        command=run.description.get("command", ""),
        seeds=", ".join(map(str, run.description.get("seeds", []))),
        unfinished=[m for m in run.rounds if m not in run.summary and m not in absent],
        table=results_table(run),
        averaged=averaged(
            [Length.of(done for own in run.rounds.values() for done in own.values())]
        ),
        stand_ins=stand_ins(run.methods),
        grids=choices(run.summary),
        agreement=agreement_table(run),
        has_uncertainty_page=RunFiles(run.path).uncertainty_page.is_file(),
        has_models=bool(first.states),
        lacks_samples=run.lacks_samples,
        is_deployed=run.is_deployed,
        pictures=all_pictures(run, first.states),
        history=as_script_data(known) if known else "",
        alternatives=known is not None and has_alternatives(known),
        failures=failures(run),
        warnings=warnings(run, first.unreadable),
        notes=notes(run, first.histories),
        settings=list(flat(run.scenario)),
        surroundings=surroundings(run.description),
    )


def stand_ins(methods: Iterable[str]) -> str:
    """A sentence on which methods run under the name `default`; empty without any.

    Args:
        methods: names of the methods of a run.
    """
    told = []
    for name in methods:
        base, _, rest = name.partition("-")
        if base == "default":
            whole = f"{DEFAULT}-{rest}" if rest[:1].isdigit() else RECIPES[DEFAULT].example
            suffix = f"-{rest}" if rest and not rest[:1].isdigit() else ""
            told.append(f"{name} stands for {whole}{suffix}")
    return f"{'; '.join(told)}." if told else ""


def surroundings(description: Mapping[str, Any]) -> list[tuple[str, str]]:
    """Versions, machine and execution of a run, each value once.

    Args:
        description: contents of `run.json`.
    """
    known: dict[str, str] = {}
    for part in ("versions", "machine", "execution"):
        for name, value in flat(description.get(part, {})):
            if value != "None":
                known.setdefault(name, value)
    return list(known.items())
