"""Clients and newest checkpoint of a method with a seed, from the folder of its run."""

from __future__ import annotations

import tomllib
from collections.abc import Mapping
from dataclasses import dataclass, field
from functools import cached_property
from pathlib import Path
from typing import TYPE_CHECKING, Any

from bcfl import Run, checkpoint
from bcfl.analysis import rows
from bcfl.runtime import as_path, counted, nearest
from experiments.runs.files import Pair, RunFiles
from experiments.runs.index import read_contents, read_index
from experiments.runs.plan import FolderError, read_plan
from experiments.runs.runner import Experiment

if TYPE_CHECKING:
    import pandas

    from bcfl import ClientData, Federation, FederationState, Model
    from bcfl.hypotheses import HypothesisSet


@dataclass(frozen=True, eq=False)
class Restored:
    """A run at its newest checkpoint.

    Attributes:
        setup: the scenario with its data set, on the CPU; None for a run without one.
        state: the newest checkpoint.
        federation: of the method, on the CPU.
        rows: of the rounds that are done.
    """

    setup: Experiment | None
    state: FederationState
    federation: Federation
    rows: tuple[rows.Row, ...] = ()

    @property
    def model(self) -> Model:
        """The method's network."""
        return self.federation.model

    @property
    def clients(self) -> tuple[ClientData, ...]:
        """The clients' data, sorted by name, divided as the method divides them."""
        return self.federation.clients

    @property
    def run(self) -> Run:
        """The run, with rows in place of its records."""
        planned = self.state.planned_rounds or self.state.round
        return Run(
            model=self.model,
            state=self.state,
            records=(),
            groups=self.federation.groups.after(self.state.round, planned),
            executor=self.federation.executor_of(planned),
            logged=self.rows,
            pooling=self.federation.method.pooling,
            columns=self.federation.columns,
            target_columns=self.federation.target_columns,
            classes=self.federation.classes,
            input_span=self.federation.input_span,
            settings=self.federation.settings,
            privacy=self.federation.privacy,
        )


@dataclass(frozen=True, eq=False, kw_only=True)
class FinishedRun:
    """One method with one seed whose rounds are all done.

    Attributes:
        folder: folder of the whole run.
        pair: the method and seed.
        config: its scenario, defaults filled in; empty for a run without one.
        rows: metrics of each round, see `bcfl.analysis.rows`.
        setup: the scenario with its data set, on the CPU; None for a run without one.
    """

    folder: Path
    pair: Pair
    config: Mapping[str, Any] = field(repr=False)
    rows: tuple[rows.Row, ...] = field(repr=False)
    setup: Experiment | None = field(repr=False)

    def __repr__(self) -> str:
        """Method, seed and rounds."""
        method, seed = self.pair.method, self.pair.seed
        rounds = counted(len(self.rows), "round")
        return f"FinishedRun({method}, seed {seed}, {rounds}, folder {str(self.folder)!r})"

    @cached_property
    def run(self) -> Run:
        """The run, from its last checkpoint, with `rows` in place of the records of its rounds.

        It needs the clients' samples; `hypotheses` does not.

        Raises:
            ValueError: the checkpoint is missing, damaged or of other clients, or the data are
                missing.
        """
        return restore(self.folder, self.pair, self.setup).run

    @cached_property
    def state(self) -> FederationState:
        """The state after the last round, from the last checkpoint.

        `federation.run(rounds, state=finished.state)` goes on from it, with the same federation.

        Raises:
            ValueError: the checkpoint is missing or damaged.
        """
        return _state(self.folder, self.pair)

    @property
    def hypotheses(self) -> HypothesisSet:
        """The association hypotheses after the last round, from the last checkpoint.

        Raises:
            ValueError: the checkpoint is missing or damaged.
        """
        return self.state.hypotheses

    def to_dataframe(self) -> pandas.DataFrame:
        """A line for each round, with its metrics; see `bcfl.analysis.rows.to_dataframe`."""
        return rows.to_dataframe(self.rows)


class FinishedRuns(dict[tuple[str, int], FinishedRun]):
    """Finished runs by method and seed; an unknown key is told from those that are there."""

    def __repr__(self) -> str:
        """Methods with their seeds and rounds."""
        seeds: dict[str, dict[int, list[int]]] = {}
        for (method, seed), run in self.items():
            seeds.setdefault(method, {}).setdefault(len(run.rows), []).append(seed)
        parts = [
            f"{method} (seed{'s' * (len(alike) > 1)} {', '.join(map(str, alike))}; "
            f"{counted(rounds, 'round')})"
            for method, by_rounds in seeds.items()
            for rounds, alike in by_rounds.items()
        ]
        return f"<FinishedRuns: {', '.join(parts)}>"

    def to_dataframe(self) -> pandas.DataFrame:
        """A line for each round of each run, with its metrics after `method` and `seed`.

        Raises:
            ModuleNotFoundError: pandas is not installed.
        """
        logged = [
            {"method": method, "seed": seed, **rows.numbers(row)}
            for (method, seed), run in self.items()
            for row in run.rows
        ]
        return rows.as_dataframe(logged)

    def __missing__(self, key: object) -> FinishedRun:
        """Raise a `KeyError` that lists the keys."""
        if not isinstance(key, tuple) or len(key) != 2:
            got = repr(key) if isinstance(key, tuple) else f"{key!r} alone"
            raise KeyError(f"a run has a method and a seed, got {got}; there are {list(self)}")
        method, seed = key
        seeds = [str(number) for name, number in self if name == method]
        if seeds:
            raise KeyError(
                f"{method!r} has no finished run of seed {seed!r}, only of {', '.join(seeds)}"
            )
        hint = nearest(method, [name for name, _ in self])
        raise KeyError(
            f"no finished run {key!r}.{hint} By method and seed: {', '.join(map(str, self))}"
        )


def open_runs(folder: str | Path) -> FinishedRuns:
    """The finished runs in a folder that `bcfl run`, `save` or a server wrote, by method and seed.

    Checkpoints and data are read on access: `open_runs(folder)["ifca", 0].run`.

    Args:
        folder: folder of the run.

    Returns:
        A mapping from (method, seed) to the finished run, whose `rows` are the scores and costs of
        its rounds, and whose `run` is a `bcfl.Run`.

    Raises:
        ValueError: there is no run in the folder, none is finished, or a file that all need is
            damaged.

    Warns:
        DamagedRunWarning: the rounds of a method and seed are damaged or missing, so that it is
            left out.

    Example:
        With `run` of the example of `bcfl.Federation`:

        >>> import experiments
        >>> from tempfile import TemporaryDirectory
        >>> with TemporaryDirectory() as folder:
        ...     found = experiments.open(run.save(folder, name="ifca"))
        >>> list(found)
        [('ifca', 0)]
        >>> found["ifca", 0].rows[-1]["ari"]
        1.0
    """
    folder = as_path("folder", folder)
    index, setup, runs = read_index(folder), setup_of(folder), FinishedRuns()
    files = {pair: RunFiles(folder).of(pair) for pair in index.pairs}
    for pair, logged in read_contents(folder).rounds.items():
        if not files[pair].is_finished:
            continue
        config = _config(files[pair].config) if setup else {}
        runs[pair.method, pair.seed] = FinishedRun(
            folder=folder, pair=pair, config=config, rows=tuple(logged), setup=setup
        )
    if not runs:
        raise ValueError(f"no run in {folder} is finished; go on with: bcfl resume {folder}")
    return runs


def _config(path: Path) -> Mapping[str, Any]:
    try:
        return tomllib.loads(path.read_text(encoding="utf-8"))
    except (OSError, ValueError) as error:
        raise FolderError(f"{path} isn't as it was written: {error}") from error


def restore(folder: Path, pair: Pair, setup: Experiment | None = None) -> Restored:
    """Read the newest checkpoint of a method and seed, and divide the data again.

    Args:
        folder: folder of the run.
        pair: one that has a checkpoint.
        setup: of the same run, if it was made before.

    Raises:
        ValueError: a checkpoint is missing, damaged, of other clients or of another network, or
            the data are missing.
    """
    setup = setup or setup_of(folder)
    state, index = _state(folder, pair), read_index(folder)
    federation = setup.federation(pair) if setup else index.federation(pair.method, pair.seed)
    names = tuple(data.client for data in federation.clients)
    if state.hypotheses.best.association.clients != names:
        raise ValueError(f"the newest checkpoint of {pair} is of other clients than run.json says")
    _check_network(state, federation, pair)
    logged = tuple(rows.read_run(RunFiles(folder).of(pair))[: state.round])
    return Restored(setup, state, federation, logged)


def _check_network(state: FederationState, federation: Federation, pair: Pair) -> None:
    found = state.hypotheses.best.clusters[0].num_parameters
    expected = federation.model.layout.num_parameters
    if found != expected:
        raise ValueError(
            f"the newest checkpoint of {pair} is of a network with {found:,} parameters, its "
            f"federation has one with {expected:,}"
        )


def _state(folder: Path, pair: Pair) -> FederationState:
    state = newest_state(folder, pair)
    if state is None:
        raise ValueError(f"{pair} has no checkpoint in {folder}")
    return state


def setup_of(folder: Path) -> Experiment | None:
    """The experiment of a folder on the CPU; None for a run without one.

    Args:
        folder: folder of a run.

    Raises:
        FolderError: there is no run in it, or its `run.json` is malformed.
    """
    if not read_index(folder).has_scenario:
        return None
    return Experiment(scenario=read_plan(folder).scenario, device="cpu")


def newest_state(folder: Path, pair: Pair) -> FederationState | None:
    """The newest checkpoint of a method and seed; None if there is none.

    Args:
        folder: of the run.
        pair: method and seed.
    """
    path = checkpoint.newest(RunFiles(folder).of(pair).checkpoints)
    return None if path is None else checkpoint.load(path)
