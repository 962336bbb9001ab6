"""Runs of a Python session, which have no folder: their report, and saving them in one."""

from __future__ import annotations

import json
from collections.abc import Mapping
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import Any

from bcfl import Run, checkpoint
from bcfl.analysis import rows, write_graphs
from bcfl.runtime import RUN_FORMAT
from experiments.reports.report import render
from experiments.runs.files import Pair, RunFiles, write_aside
from experiments.runs.index import FEDERATIONS
from experiments.runs.plan import check_free, versions
from experiments.runs.run_folder import RunFolder
from experiments.runs.summary import as_csv, summarise

SEED = 0


def report(runs: Run | Mapping[str, Run], path: str | Path, *, name: str = "run") -> Path:
    """Write the report of a run, or of several by name, as one HTML file that opens offline.

    It has the contents of the report of `bcfl run`, except what only a scenario has: the partition,
    samples that no client holds, and several seeds.

    Args:
        runs: a run, or several by name, each with the records of all its rounds.
        path: the file; written aside and renamed.
        name: title of the report.

    Returns:
        The path of the report.

    Raises:
        ValueError: no run is given, a run lacks records of its rounds, or its name cannot be that
            of a folder.
    """
    named = _checked(runs, name)
    with TemporaryDirectory() as folder:
        _write(named, name, RunFiles(Path(folder)), {})
        page = render(RunFolder.read(Path(folder)))
    write_aside(Path(path), page)
    return Path(path)


def save(
    runs: Run | Mapping[str, Run],
    folder: str | Path,
    *,
    name: str = "run",
    federation: str | Mapping[str, str] | None = None,
) -> Path:
    """Save a run, or several by name, in a folder like those of `bcfl run`.

    `open` and the commands report, compare, graph, explain and uncertainty take the folder. The
    last two need samples and network: these are not saved, but found by `federation`.

    Args:
        runs: a run, or several by name, each with the records of all its rounds.
        folder: new, or empty.
        name: of the run.
        federation: `module:object` of the federation, or of a function that makes it again; by name
            of the run where they differ.

    Returns:
        The folder.

    Raises:
        FolderError: the folder holds something.
        ValueError: as in `report`, or `federation` is not of the form `module:object`.
    """
    named, files = _checked(runs, name), RunFiles(Path(folder))
    places = federation if isinstance(federation, Mapping) else dict.fromkeys(named, federation)
    for place in places.values():
        if place is not None and ":" not in place:
            raise ValueError(f"federation must be written module:object, got {place!r}")
    check_free(files.folder)
    files.folder.mkdir(parents=True, exist_ok=True)
    known = {method: place for method, place in places.items() if place is not None}
    rounds = _write(named, name, files, {FEDERATIONS: known})
    write_aside(files.rounds, as_csv(rounds))
    write_aside(files.report, render(RunFolder.read(files.folder)))
    return files.folder


def _checked(runs: Run | Mapping[str, Run], name: str) -> dict[str, Run]:
    named = {name: runs} if isinstance(runs, Run) else dict(runs)
    if not named:
        raise ValueError("runs must hold at least one run, got none")
    for method, run in named.items():
        _check(method, run)
    return named


def _check(method: str, run: Run) -> None:
    if not method or Path(method).name != method:
        raise ValueError(f"names of runs must be names of folders, got {method!r}")
    if [record.round for record in run.records] != list(range(1, run.state.round + 1)):
        raise ValueError(
            f"run {method!r} must hold the records of all its {run.state.round} rounds; one that "
            "went on from a state, or was read from a folder, does not"
        )


def _write(
    runs: Mapping[str, Run], name: str, files: RunFiles, facts: Mapping[str, Any]
) -> dict[Pair, list[rows.Row]]:
    """Write description, rounds, checkpoints, graphs and summary, and return the rounds."""
    first = next(iter(runs.values()))
    groups = {group for group in first.groups.values() if group is not None}
    description = {
        "format": RUN_FORMAT,
        "scenario": {"name": name},
        "methods": list(runs),
        "seeds": [SEED],
        "data": {"clients": len(first.clients), "groups": len(groups)},
        "versions": versions(),
        **facts,
    }
    files.run.write_text(json.dumps(description), encoding="utf-8")
    logged = {}
    for method, run in runs.items():
        pair = Pair(method, SEED)
        logged[pair] = run.rows()
        rows.write(files.of(pair).metrics, logged[pair])
        checkpoint.save(run.state, files.of(pair).checkpoints)
        write_graphs(run, files.of(pair).graph)
    files.summary.write_text(json.dumps(summarise(name, logged)), encoding="utf-8")
    return logged
