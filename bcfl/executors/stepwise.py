"""Executors for data that change over time: one for each time step."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass

from bcfl.executors.executor import Executor, Outcomes
from bcfl.posterior import Posterior
from bcfl.requests import Request
from bcfl.streams import Schedule


@dataclass(frozen=True, eq=False)
class Stepwise:
    """Hands each round's requests to the executor of its time step.

    Attributes:
        executors: one for each time step.
        schedule: which step a round belongs to.
    """

    executors: Sequence[Executor]
    schedule: Schedule

    def answer(
        self, requests: Sequence[Request], models: Mapping[str, Posterior], round: int
    ) -> Outcomes:
        """Answer with the data of the round's time step; see `Executor`."""
        return self.executors[self.schedule.step(round)].answer(requests, models, round)
