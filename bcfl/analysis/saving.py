"""Runs of a Python session in a folder, laid out as those of `bcfl run`."""

from __future__ import annotations

import json
import sys
import warnings
from collections.abc import Mapping
from importlib.util import find_spec
from operator import attrgetter
from pathlib import Path
from typing import TYPE_CHECKING, Any

from bcfl.analysis import rows
from bcfl.analysis.graphs import write_graphs
from bcfl.analysis.true_groups import number_of_groups
from bcfl.architecture.model import Model
from bcfl.rounds import checkpoint
from bcfl.runtime.folders import (
    FEDERATIONS,
    PAIRS,
    RUN_FORMAT,
    MethodFiles,
    as_path,
    whole_folder,
    write_aside,
)

if TYPE_CHECKING:
    from bcfl.analysis.run import Run

LONGEST = 255
"""Bytes in the name of a folder."""


class FederationWarning(UserWarning):
    """The federation that a run is saved with cannot serve it."""


def save(  # noqa: D417 - a method of Run
    self: Run, folder: str | Path, *, name: str = "run", federation: str | None = None
) -> Path:
    """Save a run in a folder that `experiments.open` and the commands of `bcfl` read.

    It holds the last checkpoint, the metrics of all rounds, and the graphs. Samples and network are
    not saved: what needs them, such as `experiments.open(folder)[name, seed].run` and
    `bcfl explain`, finds them by `federation`. `experiments.save` takes several runs, and writes
    the report too.

    Of rounds without records, those before a checkpoint from which the run went on in another
    process, hypotheses are saved; their scores and costs are not known.

    Args:
        folder: new, or empty; after an error it is as it was.
        name: of the run, by which it is found in the folder.
        federation: `module:object` of the federation, or of a function that makes it again.

    Returns:
        The folder.

    Raises:
        FileExistsError: the folder holds something, or is a file.
        ValueError: the name of the run cannot be that of a folder, or `federation` is not of the
            form `module:object`, with a module that can be found.

    Warns:
        FederationWarning: the module of `federation` is loaded, and the object is not in it, or its
            network is another.

    Example:
        With `run` of the example of `bcfl.Federation`:

        >>> from tempfile import TemporaryDirectory
        >>> with TemporaryDirectory() as folder:
        ...     sorted(path.name for path in run.save(folder).iterdir())
        ['run', 'run.json']
    """
    path, named = as_path("folder", folder), {(name, seed_of(self)): self}
    check_saved(named, {name: federation})
    with whole_folder(path) as place:
        write(named, place, name, {} if federation is None else {name: federation})
    return path


def seed_of(run: Run) -> int:
    """Seed of a run; 0 where its first state, of an older version, does not tell."""
    return run.state.origin.seed or 0


def check_saved(runs: Mapping[tuple[str, int], Run], federations: Mapping[str, str | None]) -> None:
    """Check that runs can be saved under their names.

    Raises:
        ValueError: see `save`.
    """
    for name, _ in runs:
        _check_name(name)
    by_name = {name: run for (name, _), run in runs.items()}
    for name, place in federations.items():
        if not isinstance(place, str | None):
            raise TypeError(f"federation must be text, module:object, got {place!r}")
        if place is not None:
            _check_federation(place, by_name.get(name))


def _check_federation(place: str, run: Run | None) -> None:
    module, separator, path = place.partition(":")
    if not (module and separator):
        raise ValueError(f"federation must be written module:object, got {place!r}")
    if not _is_module(module):
        raise ValueError(f"federation {place!r}: no module {module!r} is found from here")
    if module not in sys.modules:
        return
    try:
        found = attrgetter(path)(sys.modules[module])
    except AttributeError as error:
        _warn(f"federation {place!r} is not found: {error}")
        return
    network = getattr(found, "model", None)
    if run and isinstance(network, Model) and network.layout != run.model.layout:
        _warn(f"federation {place!r} has another network than the run")


def _warn(message: str) -> None:
    where = f"the place to correct it is {FEDERATIONS!r} in run.json of the folder"
    warnings.warn(f"{message}; {where}", FederationWarning, stacklevel=5)  # the caller of save


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
    runs: Mapping[tuple[str, int], Run],
    folder: Path,
    name: str,
    federations: Mapping[str, str],
    facts: Mapping[str, Any] | None = None,
) -> dict[tuple[str, int], list[rows.Row]]:
    """Write description, rounds, checkpoints and graphs of runs that were checked.

    Args:
        runs: by name and seed.
        folder: of all of them; created if missing.
        name: of what they have in common, for tables.
        federations: `module:object` by name of a run, where it is known.
        facts: more for the description.

    Returns:
        The metrics of each round by name and seed of the run.
    """
    first = next(iter(runs.values()))
    description = {
        "format": RUN_FORMAT,
        "scenario": {"name": name, **_settings(runs)},
        "methods": list(dict.fromkeys(name for name, _ in runs)),
        "seeds": sorted({seed for _, seed in runs}),
        PAIRS: [list(pair) for pair in runs],
        "data": {"clients": len(first.clients), "groups": number_of_groups(first.groups)},
        FEDERATIONS: dict(federations),
        **(facts or {}),
    }
    write_aside(folder / "run.json", json.dumps(description, indent=2) + "\n")
    logged = {}
    for pair, run in runs.items():
        method, seed = pair
        files = MethodFiles(folder / method / f"seed-{seed}")
        logged[pair] = _all_rows(run)
        rows.write(files.metrics, logged[pair])
        checkpoint.save(run.state, files.checkpoints)
        write_graphs(run, files.graph)
    return logged


def _settings(runs: Mapping[tuple[str, int], Run]) -> dict[str, Any]:
    """Settings of runs but the seed: those that all have in common, then those of each run."""
    settings = {
        pair: {key: value for key, value in run.settings.items() if key != "seed"}
        for pair, run in runs.items()
    }
    first = next(iter(settings.values()))
    common = {
        key: value
        for key, value in first.items()
        if all(key in own and own[key] == value for own in settings.values())
    }
    own: dict[str, dict[str, Any]] = {}
    for (name, seed), given in settings.items():
        differing = {key: value for key, value in given.items() if key not in common}
        if own.setdefault(name, differing) != differing:
            own[f"{name}, seed {seed}"] = differing
    return {**common, "runs": {name: given for name, given in own.items() if given}}


def _all_rows(run: Run) -> list[rows.Row]:
    """Rows of all rounds: those of the run, after those that its history alone knows."""
    known = run.rows()
    first = known[0]["round"] if known else run.state.round + 1
    earlier = run.state.history[: first - 1]
    return [*(rows.snapshot_row(snapshot, run.groups) for snapshot in earlier), *known]
