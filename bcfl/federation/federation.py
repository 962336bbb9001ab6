"""A federation: clients, a model and a method; running it gives a `Run`."""

from __future__ import annotations

from collections.abc import Callable, Iterable
from dataclasses import dataclass, replace
from functools import cached_property

import torch

from bcfl.clients import TRAIN, ClientData, pooled, sorted_clients, with_validation
from bcfl.devices import checked_threads, device_named, limited_threads
from bcfl.executors import Choice, Executor, ExecutorName, Unreliable
from bcfl.executors.stepwise import Stepwise
from bcfl.federation.checks import check_fit, check_model
from bcfl.federation.method import Method
from bcfl.federation.round import Setting, participants, server_round
from bcfl.federation.run import Run
from bcfl.federation.state import FederationState, RoundRecord, initial_state
from bcfl.model import Model
from bcfl.policies import Policy
from bcfl.streams import Schedule, at_step

OnRound = Callable[[FederationState, RoundRecord], None]


@dataclass(frozen=True, eq=False)
class Federation:
    """Clients whose data are in this process, and the method that associates them.

    Attributes:
        clients: the clients; their order never matters.
        model: the architecture that all clusters use, or that the method makes its own of.
        method: a method, or a policy of one's own (then tracked greedily).
        seed: decides everything random.
        participation: share of the clients asked per round, in (0, 1].
        drop_out: probability that an asked client drops out of a round.
        device: `auto`, `cpu`, `cuda` or `cuda:N`.
        dtype: floating-point type of the parameters.
        evaluates: whether clients test their models after each round.
        threads: of torch, BLAS and OpenMP while it runs; None leaves them as they are. Small
            networks lose more to waking threads than they gain.
        executor: who answers for the clients: a name, or a `bcfl.executors.Choice` with further
            options.
        memory: bytes that the executor may take for its work; None takes what suits the device, or
            what the choice says.

    Raises:
        ValueError: an argument is out of range, or the clients do not fit the model.
    """

    clients: Iterable[ClientData]
    model: Model
    method: Method | Policy
    seed: int = 0
    participation: float = 1.0
    drop_out: float = 0.0
    device: str = "auto"
    dtype: torch.dtype = torch.float32
    evaluates: bool = True
    threads: int | None = 1
    executor: ExecutorName | Choice = "auto"
    memory: int | None = None

    def __post_init__(self) -> None:
        if not isinstance(self.seed, int) or self.seed < 0:
            raise ValueError(f"seed must be a whole number of at least 0, got {self.seed!r}")
        checked_threads(self.threads)
        choice = self.choice
        if isinstance(self.method, str):
            raise TypeError(
                f"method must be a method or a policy, got {self.method!r}; by its name: "
                f"bcfl.methods.build({self.method!r})"
            )
        if not isinstance(self.method, Method):
            object.__setattr__(self, "method", Method(self.method))
        object.__setattr__(self, "model", self.recipe.adapted(self.model))
        share = self.recipe.validation
        split = (with_validation(data, share, self.seed) for data in self.clients)
        object.__setattr__(self, "clients", sorted_clients(split))
        if not 0 < self.participation <= 1:
            raise ValueError(f"participation must lie in (0, 1], got {self.participation}")
        if not 0 <= self.drop_out <= 1:
            raise ValueError(f"drop_out must lie between 0 and 1, got {self.drop_out}")
        names = [data.client for data in self.data]
        asked = participants(names, self.participation, self.seed, 0)
        self.recipe.check(len(names), len(asked))
        if self.dtype not in (torch.float32, torch.float64):
            raise ValueError(f"dtype must be torch.float32 or torch.float64, got {self.dtype}")
        for data in self.data:
            check_fit(data, self.model)
        choice.resolved(self.model, device_named(self.device))
        shape = tuple(self.data[0].views[TRAIN].inputs.shape[1:])
        memory = self.recipe.aggregation.memory
        check_model(self.model, self.recipe.policy.objective, shape, memory)

    def __repr__(self) -> str:
        return f"Federation({len(self.data)} clients, {self.model!r}, {self.recipe.name})"

    @property
    def data(self) -> tuple[ClientData, ...]:
        """The clients, sorted by name."""
        return self.clients  # type: ignore[return-value]

    @property
    def recipe(self) -> Method:
        """The method with its tracker and aggregation."""
        return self.method  # type: ignore[return-value]

    @property
    def choice(self) -> Choice:
        """The executor with its options."""
        chosen = self.executor if isinstance(self.executor, Choice) else Choice(self.executor)
        return chosen if self.memory is None else replace(chosen, memory=self.memory)

    @cached_property
    def engine(self) -> Executor:
        """Answers for the clients, with their data of the first time step."""
        return self._executor(0)

    def _executor(self, step: int) -> Executor:
        present = [at_step(data, step) for data in self.data]
        pool = (pooled(present),) if self.recipe.centralised else ()
        local = self.choice.build(
            (*present, *pool), self.model, self.seed, device_named(self.device), self.dtype
        )
        return Unreliable(local, self.drop_out, self.seed) if self.drop_out else local

    def initial_state(self) -> FederationState:
        """The state before the first round."""
        names = [data.client for data in self.data]
        device = device_named(self.device)
        return initial_state(self.recipe, self.model, names, self.seed, device, self.dtype)

    def run(
        self,
        rounds: int,
        *,
        planned_rounds: int | None = None,
        state: FederationState | None = None,
        on_round: OnRound | None = None,
    ) -> Run:
        """Run until `rounds` rounds are done in all.

        Warm-ups, rounds named by their share of the run and time steps of the data follow the plan
        for the whole run, which a state carries with it. `run(5, planned_rounds=9)`, then
        `run(9, state=...)` is `run(9)` to the last bit; `run(5)`, then `run(9, state=...)` adds
        four rounds to a run of five, whose schedules are over.

        Args:
            rounds: rounds in all, those already done in `state` included.
            planned_rounds: rounds that the whole run is planned for; by default those that the
                state was planned for, or else `rounds`.
            state: where to go on; by default at the beginning.
            on_round: called after each round, for progress, logs and checkpoints.

        Raises:
            ValueError: `rounds` is below 1, `planned_rounds` below `rounds` or another number than
                the state was planned for, or `state` is of other clients.
        """
        if not isinstance(rounds, int) or rounds < 1:
            raise ValueError(f"rounds must be a whole number of at least 1, got {rounds}")
        state = self.initial_state() if state is None else state
        theirs, ours = state.hypotheses.best.association.clients, [d.client for d in self.data]
        if list(theirs) != ours:
            other = sorted(set(theirs) ^ set(ours))[:5]
            raise ValueError(f"state must be one of these clients, it differs in {other}")
        state = state.planned(rounds, planned_rounds)
        schedule = Schedule.of(self.data, state.planned_rounds or rounds)
        executor = self.engine
        if schedule.num_steps > 1:
            later = [self._executor(step) for step in range(1, schedule.num_steps)]
            executor = Stepwise([self.engine, *later], schedule)
        setting = Setting(self.seed, self.participation, self.evaluates, schedule)
        records: list[RoundRecord] = []
        with limited_threads(self.threads):
            while state.round < rounds:
                state, record = server_round(self.recipe, self.model, executor, state, setting)
                records.append(record)
                if on_round is not None:
                    on_round(state, record)
        groups = {data.client: data.group for data in self.data}
        return Run(self.model, state, tuple(records), groups, self.data)
