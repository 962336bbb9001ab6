"""Runs of a Python session in a folder, laid out as those of `bcfl run`."""

from __future__ import annotations

import json
import sys
from collections.abc import Mapping
from importlib.util import find_spec
from pathlib import Path
from typing import TYPE_CHECKING, Any

from bcfl.analysis import rows
from bcfl.analysis.graphs import write_graphs
from bcfl.rounds import checkpoint
from bcfl.runtime.folders import RUN_FORMAT, MethodFiles, write_aside

if TYPE_CHECKING:
    from bcfl.analysis.run import Run

SEED = 0
LONGEST = 255
"""Bytes in the name of a folder."""


def save(run: Run, folder: str | Path, *, name: str = "run", federation: str | None = None) -> Path:
    """Save a run in a folder that `experiments.open` and the commands of `bcfl` read.

    It holds the last checkpoint, the metrics of all rounds, and the graphs. Samples and network are
    not saved: what needs them, such as `experiments.open(folder)[name, 0].run` and `bcfl explain`,
    finds them by `federation`. `experiments.save` takes several runs, and writes the report too.

    Args:
        run: with the records of all its rounds.
        folder: new, or empty.
        name: of the run, by which it is found in the folder.
        federation: `module:object` of the federation, or of a function that makes it again.

    Returns:
        The folder.

    Raises:
        FileExistsError: the folder holds something, or is a file.
        ValueError: the run lacks records of its rounds, its name cannot be that of a folder, or
            `federation` is not of the form `module:object`, with a module that can be found.
    """
    path, named = Path(folder), {name: run}
    check_saved(named, {name: federation})
    if path.exists() and not path.is_dir():
        raise FileExistsError(f"folder {path} must be new or empty, but it is a file")
    if path.is_dir() and any(path.iterdir()):
        raise FileExistsError(f"folder {path} must be new or empty, but it holds files")
    write(named, path, name, {} if federation is None else {name: federation})
    return path


def check_saved(runs: Mapping[str, Run], federations: Mapping[str, str | None]) -> None:
    """Check that runs can be saved under their names.

    Raises:
        ValueError: see `save`.
    """
    for name, run in runs.items():
        _check_name(name)
        if run.rounds != list(range(1, run.state.round + 1)):
            raise ValueError(
                f"run {name!r} must hold the records of all its {run.state.round} rounds; one that "
                "went on from a checkpoint does not; one that went on from a run, as in "
                "Federation.run(..., state=run), does"
            )
    for place in federations.values():
        if not isinstance(place, str | None):
            raise TypeError(f"federation must be text, module:object, got {place!r}")
        module, separator, _ = (place or "").partition(":")
        if place is not None and not (module and separator):
            raise ValueError(f"federation must be written module:object, got {place!r}")
        if place is not None and not _is_module(module):
            raise ValueError(f"federation {place!r}: no module {module!r} is found from here")


def _check_name(name: str) -> None:
    if not isinstance(name, str):
        raise TypeError(f"names of runs must be text, got {name!r}")
    odd = name in ("", "..") or Path(name).name != name or "\0" in name
    if odd or len(name.encode()) > LONGEST:
        raise ValueError(
            f"names of runs must be names of folders of at most {LONGEST} bytes, got {name!r}"
        )


def _is_module(name: str) -> bool:
    """Whether a module can be found; it is not imported, since it may be the script that runs."""
    try:
        return find_spec(name) is not None
    except (ImportError, ValueError):
        return name in sys.modules


def write(
    runs: Mapping[str, Run],
    folder: Path,
    name: str,
    federations: Mapping[str, str],
    facts: Mapping[str, Any] | None = None,
) -> dict[str, list[rows.Row]]:
    """Write description, rounds, checkpoints and graphs of runs that were checked.

    Args:
        runs: by name.
        folder: of all of them; created if missing.
        name: of what they have in common, for tables.
        federations: `module:object` by name of a run, where it is known.
        facts: more for the description.

    Returns:
        The metrics of each round by name of the run.
    """
    first = next(iter(runs.values()))
    groups = {group for group in first.groups.values() if group is not None}
    description = {
        "format": RUN_FORMAT,
        "scenario": {"name": name},
        "methods": list(runs),
        "seeds": [SEED],
        "data": {"clients": len(first.clients), "groups": len(groups)},
        "federations": dict(federations),
        **(facts or {}),
    }
    write_aside(folder / "run.json", json.dumps(description, indent=2) + "\n")
    logged = {}
    for method, run in runs.items():
        files = MethodFiles(folder / method / f"seed-{SEED}")
        logged[method] = run.rows()
        rows.write(files.metrics, logged[method])
        checkpoint.save(run.state, files.checkpoints)
        write_graphs(run, files.graph)
    return logged
