"""Running one method with one seed: rounds, metrics, checkpoints, graphs."""

from __future__ import annotations

import warnings
from collections.abc import Callable
from dataclasses import dataclass, field
from functools import cached_property
from importlib import import_module
from time import perf_counter
from typing import TYPE_CHECKING

from bcfl import Federation, FederationState, Method, Model, RoundRecord, checkpoint
from bcfl.analysis import TrueGroups, rows, write_graphs
from bcfl.executors import Executor, ExecutorConfig, check_accountant, select_executor
from bcfl.rounds import FailingClientWarning, UntrainedWarning
from bcfl.runtime import device_named, locked
from experiments import datasets, models, partitions
from experiments.config.sections import in_section
from experiments.config.variants import Pair, Variant
from experiments.runs.files import PairFiles
from experiments.runs.grids import write_held_out
from experiments.scores.costs import models_used
from experiments.scores.generalisation import HoldOut

if TYPE_CHECKING:
    from experiments.config.scenario import Scenario
    from experiments.datasets import Dataset
    from experiments.partitions import Partition


class Interrupted(Exception):
    """A run that stopped on request after a round, with a checkpoint."""


@dataclass(frozen=True)
class RunCallbacks:
    """Callbacks for the progress of a run and for its interruption.

    Attributes:
        on_start: called at the start with the rounds done so far.
        on_round: called with each new round.
        should_stop: called after each round; whether to stop.
    """

    on_start: Callable[[Pair, list[rows.Row]], None] = lambda pair, done: None
    on_round: Callable[[Pair, rows.Row], None] = lambda pair, row: None
    should_stop: Callable[[], bool] = lambda: False


@dataclass(frozen=True, eq=False, kw_only=True)
class Experiment:
    """A scenario with its data, read when first needed.

    Attributes:
        scenario: the experiment.
        device: of models and samples.
        executor: executor of the clients' work, with its options.
        threads: limit for torch, BLAS and OpenMP; None is no limit.
        reach: makes the executor that reaches the clients of a federation elsewhere; None where
            they are in this process.
        samples: of all clients, where they have been read before.
    """

    scenario: Scenario
    device: str
    executor: ExecutorConfig = field(default_factory=ExecutorConfig)
    threads: int | None = 1
    reach: Callable[[Federation, Pair], Executor] | None = None
    samples: Dataset | None = None
    _divided: dict[int, Partition] = field(default_factory=dict, init=False, repr=False)

    @cached_property
    def dataset(self) -> Dataset:
        """The samples of all clients."""
        if self.samples is not None:
            return self.samples
        data = self.scenario.data
        return datasets.load(data.dataset, data.data_dir, **data.scaling)

    @cached_property
    def model(self) -> Model:
        """The network, fitted to the samples and classes."""
        samples, chosen = self.dataset, self.scenario.model
        with in_section("model"):
            return models.build_for(samples, chosen.name, chosen.options)

    @property
    def executor_name(self) -> str:
        """Name of the executor that `auto` selects for the network."""
        return select_executor(self.executor, self.model, device_named(self.device))[0]

    def method(self, name: str) -> Method:
        """A method of the run with the scenario's options."""
        return self.scenario.build(name)

    def partition(self, seed: int) -> Partition:
        """The clients of a seed; those of the last seed are cached."""
        if seed not in self._divided:
            self._divided.clear()
            samples, chosen = self.dataset, self.scenario.partition
            with in_section("partition"):
                options = {**chosen.options, "seed": seed}
                self._divided[seed] = partitions.build(chosen.name, samples, options)
        return self._divided[seed]

    def federation(self, pair: Pair, *, evaluate: bool = True) -> Federation:
        """Clients, network and method, ready to run.

        Args:
            pair: the method and seed.
            evaluate: whether clients test their models after each round.
        """
        rules = self.scenario.federation
        return Federation(
            self.partition(pair.seed),
            self.model,
            self.method(pair.method),
            seed=pair.seed,
            client_fraction=rules.client_fraction,
            drop_out=rules.drop_out,
            device=self.device,
            evaluate=evaluate,
            objectives=rules.objectives,
            executor=self.executor,
            threads=self.threads,
            privacy=self.scenario.privacy,
        )

    def hold_out(self, federation: Federation, seed: int) -> HoldOut | None:
        """The samples that no client of a federation holds; None if its partition has none.

        Args:
            federation: whose clients' samples are left out.
            seed: of the partition.
        """
        return HoldOut.of(self.dataset, self.partition(seed), federation)

    def check(self) -> None:
        """Build everything once, so that errors show before the first round.

        Raises:
            ValueError: a name is unknown, data are missing, or a number doesn't fit the others.
        """
        if self.scenario.privacy is not None:
            check_accountant()
        for name in self.scenario.methods:
            self._check_method(name)
        device_named(self.device)
        try:
            for pair in reversed(self.scenario.pairs):
                self.federation(pair).check(self.scenario.federation.rounds)
        except TypeError as error:
            raise ValueError(f"the scenario holds a value of the wrong type: {error}") from error

    def _check_method(self, name: str) -> None:
        try:
            self.method(name)
        except ValueError as error:
            named = str(error).startswith(f"method {name!r}")
            raise ValueError(str(error) if named else f"method {name}: {error}") from error


@dataclass(eq=False, kw_only=True)
class Log:
    """Records each round of a method and seed.

    Attributes:
        setup: the experiment.
        pair: the method and seed.
        files: where to write.
        callbacks: for progress and interruption.
        groups: true groups of the clients.
        hold_out: samples that no client holds, if there are any.
        since: when the round began.
    """

    setup: Experiment
    pair: Pair
    files: PairFiles
    callbacks: RunCallbacks
    groups: TrueGroups
    hold_out: HoldOut | None = None
    since: float = field(default_factory=perf_counter)

    def __call__(self, state: FederationState, record: RoundRecord) -> None:
        """Write the metrics, a checkpoint where one is due, and stop on request.

        Raises:
            Interrupted: the run is to stop, and there are rounds left.
        """
        planned = state.planned_rounds or self.setup.scenario.federation.rounds
        groups = self.groups.after(record.round, planned)
        held_out = self.hold_out.predicted(state.hypotheses) if self.hold_out else {}
        now = perf_counter()
        used = models_used(record, self.setup.model)
        row = rows.round_row(record, groups, now - self.since, held_out, used)
        row |= rows.privacy_columns(state.releases, self.setup.scenario.privacy)
        self.since = now
        rows.append(self.files.metrics, row)
        self.callbacks.on_round(self.pair, row)
        rules = self.setup.scenario.federation
        is_last, stops = state.round >= rules.rounds, self.callbacks.should_stop()
        if is_last or stops or state.round % rules.checkpoint_every == 0:
            checkpoint.save(state, self.files.checkpoints)
        if stops and not is_last:
            raise Interrupted


def run_pair(setup: Experiment, pair: Pair, files: PairFiles, callbacks: RunCallbacks) -> None:
    """Run a method with a seed to its end, from its newest checkpoint if there is one.

    Args:
        setup: the experiment.
        pair: the method and seed.
        files: where everything is written; the configuration is there already.
        callbacks: for progress and interruption.

    Raises:
        Interrupted: `callbacks` requested a stop.
        ValueError: the newest checkpoint is damaged or of another experiment.
    """
    if files.is_finished:
        callbacks.on_start(pair, rows.read(files.metrics))
        return
    with locked(files.folder):
        federation = setup.federation(pair)
        state = _restored(federation, files)
        callbacks.on_start(pair, rows.keep_rounds(files.metrics, state.round if state else 0))
        import_module("sklearn.cluster")  # else the first method that uses it pays for the import
        log = Log(
            setup=setup,
            pair=pair,
            files=files,
            callbacks=callbacks,
            groups=federation.groups,
            hold_out=setup.hold_out(federation, pair.seed),
        )
        rules = setup.scenario.federation
        with warnings.catch_warnings():
            for said in (UntrainedWarning, FailingClientWarning):  # by the table and the report
                warnings.simplefilter("ignore", said)
            run = federation.run(
                rules.rounds,
                state=state,
                on_round=log,
                belief_every=rules.checkpoint_every if rules.beliefs else 0,
                executor=setup.reach(federation, pair) if setup.reach else None,
            )
        if Variant.of(pair.method).options:
            write_held_out(federation, run, files)
        write_graphs(run, files.graph)


def _restored(federation: Federation, files: PairFiles) -> FederationState | None:
    newest = checkpoint.newest(files.checkpoints)
    if newest is None:
        return None
    state = checkpoint.load(newest, federation.device, federation.dtype)
    if state.hypotheses.best.association.clients != tuple(d.client for d in federation.clients):
        raise checkpoint.CheckpointError(
            f"checkpoint {newest} is of other clients than config.toml beside it describes"
        )
    return state
