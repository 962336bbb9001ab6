"""Runs of a Python session, which have no folder: their report, and saving them in one."""

from __future__ import annotations

import json
from collections.abc import Mapping
from pathlib import Path
from tempfile import TemporaryDirectory

from bcfl import Run
from bcfl.analysis import rows, saving
from bcfl.runtime import as_path, whole_folder
from experiments.reports.report import render
from experiments.runs.files import Pair, RunFiles, write_aside
from experiments.runs.plan import versions
from experiments.runs.restore import FinishedRun, FinishedRuns
from experiments.runs.run_folder import RunFolder
from experiments.runs.summary import as_csv, summarise

Runs = Run | FinishedRun | FinishedRuns | Mapping[str | tuple[str, int], Run | FinishedRun]
Named = dict[tuple[str, int], Run]


def report(runs: Runs, path: str | Path, *, name: str = "run") -> Path:
    """Write the report of a run, or of several by name, as one HTML file that opens offline.

    It has the contents of the report of `bcfl run`, except what only a scenario has: the partition,
    and samples that no client holds.

    Args:
        runs: a run, several by name, or several by name and seed, such as those that
            `experiments.open` returns.
        path: the file; written aside and renamed.
        name: title of the report.

    Returns:
        The path of the report.

    Raises:
        ValueError: no run is given, or its name cannot be that of a folder.
        TypeError: `runs` holds anything but runs.
        IsADirectoryError: `path` is a folder.

    Example:
        With `run` of the example of `bcfl.Federation`:

        >>> import experiments
        >>> path = experiments.report(run, "report.html")  # doctest: +SKIP
    """
    named = _named(runs, name)
    saving.check_saved(named, {})
    target = as_path("path", path)
    if target.is_dir():
        raise IsADirectoryError(f"path {path} must be a file, such as report.html, not a folder")
    with TemporaryDirectory() as folder:
        _write(named, name, RunFiles(Path(folder)), {})
        page = render(RunFolder.read(Path(folder)))
    write_aside(target, page)
    return target


def save(
    runs: Runs,
    folder: str | Path,
    *,
    name: str = "run",
    federation: str | Mapping[str, str] | None = None,
) -> Path:
    """Save a run, or several by name, in a folder like those of `bcfl run`, with their report.

    `open` and the commands report, compare, graph, explain and uncertainty take the folder. The
    last two need samples and network: these are not saved, but found by `federation`.
    `bcfl.Run.save` saves one run without the report.

    Args:
        runs: a run, several by name, or several by name and seed, such as those that
            `experiments.open` returns.
        folder: new, or empty.
        name: of the run.
        federation: `module:object` of the federation, or of a function that makes it again; by name
            of the run where they differ.

    Returns:
        The folder.

    Raises:
        FileExistsError: the folder holds something, or is a file.
        ValueError: as in `report`, or `federation` is not of the form `module:object`.
    """
    named, target = _named(runs, name), as_path("folder", folder)
    places: Mapping[str, str | None] = (
        federation
        if isinstance(federation, Mapping)
        else dict.fromkeys((method for method, _ in named), federation)
    )
    saving.check_saved(named, places)
    known = {method: where for method, where in places.items() if where is not None}
    with whole_folder(target) as place:
        files = RunFiles(place)
        write_aside(files.rounds, as_csv(_write(named, name, files, known)))
        write_aside(files.report, render(RunFolder.read(place)))
    return target


def _named(runs: Runs, name: str) -> Named:
    """Runs by name and seed.

    Raises:
        TypeError: there is something else among them.
        ValueError: there is none, or the seed of a key is another than that of its run.
    """
    if not isinstance(runs, Run | FinishedRun | Mapping):
        raise TypeError(f"runs must be a Run, or a mapping of names to runs, got {runs!r}")
    given = runs if isinstance(runs, Mapping) else {name: runs}
    named: Named = {}
    for key, one in given.items():
        run = one.run if isinstance(one, FinishedRun) else one
        if not isinstance(run, Run):
            raise TypeError(
                f"runs must hold runs by name, or by (name, seed) where a name has several, got "
                f"{run!r}"
            )
        method, seed = key if isinstance(key, tuple) and len(key) == 2 else (key, None)
        known = run.state.origin.seed
        if None not in (seed, known) and seed != known and not isinstance(one, FinishedRun):
            raise ValueError(f"keys of runs must have their seeds, got {key!r} for seed {known}")
        pair = method, seed if known is None and seed is not None else saving.seed_of(run)
        if pair in named:
            raise ValueError(f"runs must differ by name or seed, got {pair!r} twice")
        named[pair] = run
    if not named:
        raise ValueError("runs must hold at least one run, got none")
    return named


def _write(
    runs: Named, name: str, files: RunFiles, federations: Mapping[str, str]
) -> dict[Pair, list[rows.Row]]:
    """Write all files but the table of rounds and the report, and return the rounds."""
    facts = {"versions": versions()}
    logged = {
        Pair(*pair): done
        for pair, done in saving.write(runs, files.folder, name, federations, facts).items()
    }
    write_aside(files.summary, json.dumps(summarise(name, logged)))
    return logged
