"""A federation: clients, a model and a method; running it gives a `Run`."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import replace
from functools import cached_property
from typing import Any

import torch

from bcfl.analysis.run import Run
from bcfl.analysis.true_groups import TrueGroups
from bcfl.architecture.model import Model
from bcfl.architecture.probing import Network
from bcfl.data.agreement import sorted_clients
from bcfl.data.clients import ClientData, pooled, with_validation
from bcfl.data.frames import are_numbered
from bcfl.data.scales import input_spans, training_span, warn_of_input_scales
from bcfl.data.streams import Schedule, at_step
from bcfl.executors import (
    Executor,
    ExecutorConfig,
    ExecutorName,
    Privacy,
    Randomized,
    Unreliable,
    build_executor,
    select_executor,
)
from bcfl.executors.wrappers import Stepwise
from bcfl.methods.names import closest
from bcfl.policies import Centralised, Policy
from bcfl.rounds.arguments import (
    as_method,
    check_callables,
    check_layers,
    check_order,
    check_starts,
    checked_privacy,
    checked_rounds,
    checked_seed,
    checked_shares,
    checked_switches,
    knowing_groups,
)
from bcfl.rounds.fitting import check_model, fitted, largest, lowest_class, model_of
from bcfl.rounds.method import Method
from bcfl.rounds.round import RoundConfig, participants
from bcfl.rounds.running import OnRound, run_rounds
from bcfl.rounds.settings import settings_of
from bcfl.rounds.state import FederationState, Origin, initial_state
from bcfl.rounds.targets import warn_of_kind, warn_of_probabilities, warn_of_scale
from bcfl.runtime.devices import checked_threads, device_named, limited_threads
from posteriors.torch_state import standard_switches


class Federation:
    """Clients with their samples, a network, and the method that clusters the clients.

    All samples are in this process. Arguments are checked on construction; the object is not
    changed afterwards.

    Its attributes are the arguments, except that `clients` are sorted by name and have the
    validation samples that the method needs, `model` is the network of the method, derived from
    the one that was given, and a policy given as `method` is one that is tracked greedily. Besides,
    `input_span` has the lowest and the highest training input.

    Example:
        Two groups of clients, whose labels are opposite:

        >>> import bcfl
        >>> import numpy as np
        >>> from torch import nn
        >>> def samples(sign):
        ...     x = np.random.default_rng(0).normal(size=(40, 2))
        ...     return x, (sign * x[:, 0] > 0).astype(int)
        >>> signs = {"ann": 1, "bob": 1, "cem": -1, "dan": -1}
        >>> clients = [
        ...     bcfl.ClientData.from_arrays(name, samples(sign), samples(sign), group=sign)
        ...     for name, sign in signs.items()
        ... ]
        >>> method = bcfl.methods.build("ifca", num_clusters=2)
        >>> federation = bcfl.Federation(clients, lambda: nn.Linear(2, 2), method, seed=0)
        >>> run = federation.run(rounds=3)
        >>> run.association_probabilities().round(2)
        array([[0., 1.],
               [0., 1.],
               [1., 0.],
               [1., 0.]])
    """

    @standard_switches()
    def __init__(  # noqa: PLR0913 - keywords with defaults
        self,
        clients: Iterable[ClientData] | Mapping[str, ClientData],
        model: Network,
        method: Method | Policy,
        seed: int = 0,
        *,
        client_fraction: float = 1.0,
        drop_out: float = 0.0,
        device: str = "auto",
        dtype: torch.dtype = torch.float32,
        evaluate: bool = True,
        objectives: bool = False,
        threads: int | None = 1,
        executor: ExecutorName | ExecutorConfig = "auto",
        memory: int | None = None,
        privacy: Privacy | None = None,
        concepts: Mapping[str, Sequence[int | None]] | None = None,
    ) -> None:
        """Check the arguments, and that clients, model and method fit one another.

        Args:
            clients: the clients, or a mapping whose values they are; their order never matters.
            model: the architecture that all clusters use, or that the method makes its own of: a
                `Model`, a function that builds a `torch.nn.Module`, or a module. It is tried on
                samples of the client with most training samples. Where it is no `Model`, targets
                say what is predicted: whole numbers are classes, rows of whole numbers or Booleans
                several labels, floating-point numbers values. Networks that a function builds are
                initialised from the seed; those of a module begin with its weights.
            method: a method, or a policy of one's own (then tracked greedily).
            seed: at least 0.
            client_fraction: in (0, 1].
            drop_out: in [0, 1].
            device: `auto`, `cpu`, `cuda` or `cuda:N`.
            dtype: `torch.float32` or `torch.float64`.
            evaluate: whether clients test their models after each round.
            objectives: whether the objectives of clustering and learning are measured in each
                round, among the facts of its record; the clients score their training samples.
            threads: at least 1, or None. Small networks lose more to waking threads than they gain.
            executor: a name, or a `bcfl.executors.ExecutorConfig` with further options.
            memory: bytes that the executor may take for its work; None takes what suits the device,
                or what `executor` says.
            privacy: clients clip and noise what they send; the noise is drawn from the seed, so
                that a run can be repeated.
            concepts: true group of each client at each time step, for analysis only, where it
                changes; of other clients it is `ClientData.group` at all steps. By default those of
                the attribute `concepts` of `clients`, which streams of `experiments.partitions`
                have.

        Raises:
            ValueError: an argument is out of range, or the clients do not fit the model.
            TypeError: the method is a name, the model no network, or an option of another type.

        Warns:
            SameStartWarning: the method begins with several networks, and all would be the same,
                since `model` is a module, which keeps its weights, and no function that builds one.
            OutputsWarning: the network of a classification, or of labels, seems to return
                probabilities and not logits.
            InputsWarning: those of some clients or views are from 0 to 1, others from 0 to more
                than 16.
            TargetsWarning: targets look like those of another kind of prediction than their type
                says, or those of a regression are far from noise of variance 1.
        """
        self.seed = checked_seed(seed)
        self.threads = checked_threads(threads)
        config = executor if isinstance(executor, ExecutorConfig) else ExecutorConfig(executor)
        self.executor = config if memory is None else replace(config, memory=memory)
        check_order(model, method)
        if isinstance(method, str):
            near = closest(method)
            hint = f"; by its name: bcfl.methods.build({near!r})" * bool(near)
            raise TypeError(f"method must be a method or a policy, got {method!r}{hint}")
        self.method = as_method(method)
        share = self.method.validation
        brought = getattr(clients, "concepts", None)
        known = brought if concepts is None and isinstance(brought, Mapping) else concepts
        self.clients = tuple(with_validation(c, share, seed) for c in sorted_clients(clients))
        self.model = self.method.adapted(model_of(model, self.clients))
        self._groups = TrueGroups.of(self.clients, known)
        self.method = knowing_groups(self.method, [data.group for data in self.clients])
        self.client_fraction, self.drop_out = checked_shares(client_fraction, drop_out)
        if dtype not in (torch.float32, torch.float64):
            raise ValueError(f"dtype must be torch.float32 or torch.float64, got {dtype!r}")
        self.evaluate, self.objectives = checked_switches(evaluate=evaluate, objectives=objectives)
        self.dtype, self.privacy = dtype, checked_privacy(privacy)
        self.device = device_named(device)
        names = [data.client for data in self.clients]
        self._num_participants = len(participants(names, self.client_fraction, self.seed, 0))
        self.method.check(len(names), self._num_participants)
        lowest = lowest_class(self.clients)
        self.clients = tuple(fitted(data, self.model, dtype, lowest) for data in self.clients)
        self._check_fit()
        if not isinstance(model, Model):
            warn_of_kind(self.model, self.clients)
        warn_of_scale(self.model, self.clients)
        spans = input_spans(self.clients)
        self.input_span = training_span(spans)
        warn_of_input_scales(self.clients, spans)

    def _check_fit(self) -> None:
        """Check that model, method and executor fit one another."""
        select_executor(self.executor, self.model, self.device)
        tried = largest(self.clients)
        memory = self.method.aggregation.memory
        objective = self.method.policy.objective
        check_model(self.model, objective, tried, memory)
        warn_of_probabilities(self.model, tried)
        check_layers(self.method.policy, self.model)
        check_starts(self.method, self.model, len(self.clients))
        if self.privacy is not None:
            self.method.check_private(self.model)

    def __repr__(self) -> str:
        return f"Federation({len(self.clients)} clients, {self.model!r}, {self.method.name})"

    @property
    def groups(self) -> TrueGroups:
        """True group of each client, where known, at the first time step; for analysis only."""
        return self._groups

    @cached_property
    def engine(self) -> Executor:
        """Answers for the clients, with their data of the first time step, and drops out."""
        return self._dropping_out(self._first)

    @cached_property
    def _first(self) -> Executor:
        return self._executor(0)

    def _dropping_out(self, executor: Executor) -> Executor:
        return Unreliable(executor, self.drop_out, self.seed) if self.drop_out else executor

    @property
    def answering(self) -> tuple[str, ...]:
        """Names that requests are sent to, of the clients and of pools of their samples."""
        return (*(data.client for data in self.clients), *self._pools)

    @property
    def _pools(self) -> Mapping[str, Sequence[str]]:
        """The clients in each pool of samples of a centralised method."""
        policy, names = self.method.policy, [data.client for data in self.clients]
        return policy.pools(names) if isinstance(policy, Centralised) else {}

    @standard_switches()
    def _executor(self, step: int) -> Executor:
        present = [at_step(data, step) for data in self.clients]
        by_name, pools = {data.client: data for data in present}, self._pools
        pooling = (pooled([by_name[c] for c in inside], name) for name, inside in pools.items())
        executor = build_executor(
            self.executor, (*present, *pooling), self.model, self.seed, self.device, self.dtype
        )
        if self.privacy is None:
            return executor
        return Randomized(executor, self.privacy, self.model, self.seed)

    @standard_switches()
    def executor_of(self, planned_rounds: int) -> Executor:
        """Answers for all clients, without drop-outs, with the data that they hold in each round.

        Args:
            planned_rounds: rounds of the whole run, over which time steps are spread.

        Returns:
            An executor, such as `bcfl.Federation.run` takes as `executor`.
        """
        schedule = Schedule.of(self.clients, planned_rounds)
        if schedule.num_steps == 1:
            return self._first
        later = [self._executor(step) for step in range(1, schedule.num_steps)]
        return Stepwise([self._first, *later], schedule)

    def check(self, rounds: int, state: FederationState | None = None) -> None:
        """Check, without any work, that a run of so many rounds can be done.

        Args:
            rounds: rounds in all.
            state: state to begin from; by default the initial one.

        Raises:
            ValueError: the clients' data have more time steps than there are rounds, or the tracker
                could not follow its hypotheses to the end. Clients may differ in their steps: one
                without new samples at a step keeps those that it has.
        """
        planned = None if state is None else state.planned_rounds
        Schedule.of(self.clients, planned or rounds)
        count = self.method.starts if state is None else len(state.hypotheses)
        left = range(0 if state is None else state.round, rounds)
        self.method.check_rounds(count, self._num_participants, left)

    @standard_switches()
    def initial_state(self) -> FederationState:
        """The state before the first round.

        Returns:
            A state without rounds: the hypotheses that the method starts with, drawn from the seed.
        """
        names = [data.client for data in self.clients]
        return initial_state(self.method, self.model, names, self.seed, self.device, self.dtype)

    @standard_switches()
    def run(
        self,
        rounds: int,
        *,
        planned_rounds: int | None = None,
        state: FederationState | Run | None = None,
        on_round: OnRound | None = None,
        belief_every: int | None = None,
        executor: Executor | None = None,
    ) -> Run:
        """Run until `rounds` rounds are done in all.

        Schedules follow the number of rounds that the whole run is planned for: those of warm-ups,
        of rounds given as a share of the run, and of time steps of the data. A state carries this
        plan with it. `run(5, planned_rounds=9)` and then `run(9, state=...)` give the bits of
        `run(9)`. After `run(5)`, whose schedules are over, `run(9, state=...)` adds four rounds.

        Args:
            rounds: rounds in all, those already done in `state` included.
            planned_rounds: rounds that the whole run is planned for; by default those that the
                state was planned for, or else `rounds`.
            state: state to resume from, or a run, whose records are kept then, so that the new run
                has those of all rounds; by default the initial state.
            on_round: called after each round, for progress, logs and checkpoints; the run stops
                after the round for which it returns True, and is the run of so many rounds with the
                same plan. The stopping round is computed twice where beliefs are recorded.
            belief_every: rounds between those after which clients score all clusters once more, so
                that beliefs are recorded; by default after the last round alone. With 0 clients are
                never asked for these losses, as where they send trained models only. Association
                probabilities are then the association by which clients train, 0 or 1 within a
                hypothesis, unless the method has others of its own (`scored_by="cavity"`).
            executor: answers for the clients, wherever they are; by default the federation's own.

        Returns:
            A `bcfl.Run` after `rounds` rounds, with the state, a record of each round, and the
            means to predict. With `on_round` it may have fewer rounds.

        Raises:
            ValueError: `rounds` is below 1, `belief_every` below 0, `rounds` below those that
                `state` has done, `planned_rounds` below `rounds` or another number than the state
                was planned for, or `state` is of other clients, another number of parameters,
                another dtype, another seed or another kind of policy; or no client could answer
                anything, in any round; or code of the network raised the same exception for every
                client in the first round, or in the test after it, which is the cause of this
                error; or the method asks for what `privacy` doesn't cover.
            TypeError: `state`, `on_round` or `executor` is of another type.

        Warns:
            UntrainedWarning: clients failed, and none sent a usable model in any round, or none was
                asked to train.
            FailingClientWarning: a client's work, or its test, failed in every round that it took
                part in.
            OtherMethodWarning: `state` is of a method of another name with the same kind of policy.

        Example:
            With `federation` of the example of `bcfl.Federation`, three rounds, then two more:

            >>> run = federation.run(3)
            >>> longer = federation.run(5, state=run)
            >>> longer.rounds
            [1, 2, 3, 4, 5]
        """
        rounds = checked_rounds(rounds, belief_every)
        check_callables(on_round, executor)
        earlier, logged = (state.records, state.logged) if isinstance(state, Run) else ((), ())
        state = self._started(state.state if isinstance(state, Run) else state, rounds)
        state = state.planned(rounds, planned_rounds)
        planned = state.planned_rounds or rounds
        if executor is None and self.executor.name == "flower":
            raise ValueError(
                "executor must be given to run where its name is 'flower': a "
                "bcfl.executors.RemoteExecutor on a grid of bcfl.flower"
            )
        self.check(rounds, state)
        reliable = self.executor_of(planned) if executor is None else executor
        config = RoundConfig(
            seed=self.seed,
            client_fraction=self.client_fraction,
            evaluate=self.evaluate,
            schedule=Schedule.of(self.clients, planned),
            last_round=rounds - 1,
            belief_every=belief_every,
            objectives=self.objectives,
        )
        with limited_threads(self.threads):
            state, records = run_rounds(
                self.method, self.model, self._dropping_out(reliable), state, config, on_round
            )
        return Run(
            model=self.model,
            state=state,
            records=(*earlier, *records),
            groups=self.groups.after(state.round, planned),
            executor=reliable,
            logged=logged,
            pooling=self.method.pooling,
            columns=self.columns,
            target_columns=self.target_columns,
            classes=self.classes,
            input_span=self.input_span,
            settings=self.settings,
            privacy=self.privacy,
        )

    @property
    def columns(self) -> tuple[Any, ...]:
        """Names of the columns of the clients' inputs, where these have names."""
        return _first_named([data.columns for data in self.clients])

    @property
    def target_columns(self) -> tuple[Any, ...]:
        """Names of the columns of the clients' targets, where these have names."""
        return _first_named([data.target_columns for data in self.clients])

    @property
    def classes(self) -> tuple[Any, ...]:
        """Labels of the classes in the order of their numbers, where clients were given labels."""
        return next((data.classes for data in self.clients if data.classes), ())

    @property
    def settings(self) -> dict[str, Any]:
        """Settings of method, network and federation as plain values, for files and reports."""
        return settings_of(
            self.method,
            self.model,
            seed=self.seed,
            client_fraction=self.client_fraction,
            drop_out=self.drop_out,
            device=str(self.device),
            dtype=str(self.dtype),
            privacy=self.privacy,
        )

    def _started(self, state: FederationState | None, rounds: int) -> FederationState:
        """The state to begin from, which must be one of this federation."""
        if state is None:
            return self.initial_state()
        if not isinstance(state, FederationState):
            raise TypeError(
                f"state must be a FederationState or a Run, got {state!r}; a folder of checkpoints "
                "gives one by checkpoint.load(checkpoint.newest(folder)), a folder of saved runs "
                "by experiments.open(folder)[name, seed].state"
            )
        names = [data.client for data in self.clients]
        origin = Origin.of(self.method, len(names), self.seed)
        state.check_continues(names, self.model.layout.num_parameters, self.dtype, origin)
        if state.round > rounds:
            raise ValueError(
                f"rounds must be at least the {state.round} that state has done, got {rounds}; "
                "they are the rounds in all"
            )
        return state


def _first_named(columns: Sequence[tuple[Any, ...]]) -> tuple[Any, ...]:
    """The first columns that are not only numbered, or else the first; none without any."""
    known = [names for names in columns if names]
    return next((names for names in known if not are_numbered(names)), next(iter(known), ()))
