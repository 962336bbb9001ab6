"""The report of runs in a Python session, which have no folder."""

from __future__ import annotations

import json
from collections.abc import Mapping
from pathlib import Path
from tempfile import TemporaryDirectory

from bcfl import Run, checkpoint
from experiments.reports.report import render
from experiments.runs import rows
from experiments.runs.files import Pair, RunFiles, write_aside
from experiments.runs.plan import FORMAT
from experiments.runs.run_folder import RunFolder
from experiments.runs.runner import write_graphs
from experiments.runs.summary import summarise

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
    named = {name: runs} if isinstance(runs, Run) else dict(runs)
    if not named:
        raise ValueError("runs must hold at least one run, got none")
    for method, run in named.items():
        _check(method, run)
    with TemporaryDirectory() as folder:
        _write(named, name, RunFiles(Path(folder)))
        page = render(RunFolder.read(Path(folder)))
    write_aside(Path(path), page)
    return Path(path)


def _check(method: str, run: Run) -> None:
    if not method or Path(method).name != method:
        raise ValueError(f"names of runs must be names of folders, got {method!r}")
    if [record.round for record in run.records] != list(range(1, run.state.round + 1)):
        raise ValueError(
            f"run {method!r} must hold the records of all its {run.state.round} rounds; one that "
            "went on from a state, or was read from a folder, does not"
        )


def _write(runs: Mapping[str, Run], name: str, files: RunFiles) -> None:
    """Write what the report reads: description, rounds, checkpoints, graphs and summary."""
    first = next(iter(runs.values()))
    groups = {group for group in first.groups.values() if group is not None}
    description = {
        "format": FORMAT,
        "scenario": {"name": name},
        "methods": list(runs),
        "seeds": [SEED],
        "data": {"clients": len(first.clients), "groups": len(groups)},
    }
    files.run.write_text(json.dumps(description), encoding="utf-8")
    logged = {}
    for method, run in runs.items():
        pair = Pair(method, SEED)
        logged[pair] = [
            rows.round_row(record, run.groups, sum(record.ledger.seconds.values()))
            for record in run.records
        ]
        rows.write(files.of(pair).metrics, logged[pair])
        checkpoint.save(run.state, files.of(pair).checkpoints)
        write_graphs(run, files.of(pair))
    files.summary.write_text(json.dumps(summarise(name, logged)), encoding="utf-8")
