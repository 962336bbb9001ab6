"""Time steps: equally long stretches of a run, in each of which the data stay as they are."""

from __future__ import annotations

from dataclasses import dataclass

from bcfl.policies.policy import RoundContext


@dataclass(frozen=True)
class TimeSteps:
    """How many time steps a run has.

    Attributes:
        count: number of time steps; static data are one.
    """

    count: int = 1

    def __post_init__(self) -> None:
        if self.count < 1:
            raise ValueError(f"count must be at least 1, got {self.count}")

    def number(self, context: RoundContext) -> int:
        """The time step of a round, from 0; of 100 rounds where nobody knows how many there are."""
        return self._of(context.round, context)

    def begins(self, context: RoundContext) -> bool:
        """Whether a round is the first of a time step that follows another one."""
        return context.round > 0 and self._of(context.round - 1, context) < self.number(context)

    def ends(self, context: RoundContext) -> bool:
        """Whether a round is the last of a time step that another one follows."""
        after = self._of(context.round + 1, context)
        return self.number(context) < after < self.count

    def _of(self, round: int, context: RoundContext) -> int:
        return self.count * round // (100 if context.num_rounds is None else context.num_rounds)
