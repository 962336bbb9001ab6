"""Executors that wrap others: time steps, client drop-out, and limits of threads."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass

from bcfl.data.streams import Schedule
from bcfl.executors.executor import Executor, Outcomes
from bcfl.hypotheses.posterior import Posterior
from bcfl.protocol.answers import Failure
from bcfl.protocol.requests import Describe, Request, Train
from bcfl.runtime.devices import limited_threads
from bcfl.runtime.seeds import generator
from posteriors.torch_state import standard_switches


@dataclass(frozen=True, eq=False)
class Stepwise:
    """Passes each round's requests to the executor of its time step.

    Attributes:
        executors: one for each time step.
        schedule: which step a round belongs to.
    """

    executors: Sequence[Executor]
    schedule: Schedule

    def answer(
        self, requests: Sequence[Request], models: Mapping[str, Posterior], round: int
    ) -> Outcomes:
        """Answer with the data of the round's time step; see `bcfl.executors.Executor`."""
        return self.executors[self.schedule.step(round)].answer(requests, models, round)


@dataclass(frozen=True, eq=False)
class Unreliable:
    """Lets each client drop out of a round with some probability.

    A client that drops out does not train; it still scores with probability 1/2. The draw depends
    on (seed, round, client) alone.

    Attributes:
        executor: answers for the clients that stay.
        probability: of dropping out, per client and round.
        seed: seed of the run.
    """

    executor: Executor
    probability: float
    seed: int

    def __post_init__(self) -> None:
        if not 0 <= self.probability <= 1:
            raise ValueError(f"drop_out must lie between 0 and 1, got {self.probability}")

    def answer(
        self, requests: Sequence[Request], models: Mapping[str, Posterior], round: int
    ) -> Outcomes:
        """Answer for the clients that stay; see `bcfl.executors.Executor`."""
        staying = [r for r in requests if not self._dropped(r, round)]
        failure = Failure("missing", "the client dropped out of the round")
        outcomes: Outcomes = dict.fromkeys(
            (r for r in requests if self._dropped(r, round)), failure
        )
        return outcomes | self.executor.answer(staying, models, round)

    def _dropped(self, request: Request, round: int) -> bool:
        if isinstance(request, Describe):
            return False
        if not isinstance(request, Train) and request.view == "test":
            return False
        random = generator(self.seed, round, request.client, "drop-out")
        drops, early = random.random() < self.probability, random.random() < 0.5
        return drops and (early or isinstance(request, Train))


@dataclass(frozen=True, eq=False)
class ThreadLimited:
    """Answers with limited threads, whatever switches of torch the process has set.

    Attributes:
        executor: answers.
        threads: limit for torch, BLAS and OpenMP; None is no limit.
    """

    executor: Executor
    threads: int | None

    def answer(
        self, requests: Sequence[Request], models: Mapping[str, Posterior], round: int
    ) -> Outcomes:
        """Answer; see `bcfl.executors.Executor`."""
        with limited_threads(self.threads), standard_switches():
            return self.executor.answer(requests, models, round)
