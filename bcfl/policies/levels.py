"""The hierarchy of FAACL: partitions that are joined two by two until one is left."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass


def paired(partitions: Sequence[int]) -> tuple[int, ...]:
    """Join partition i with partition last - i; the middle one of an odd number stays alone.

    The thesis (algorithm 6) pairs at random; its program pairs like this.

    Args:
        partitions: partition of each cluster, numbered from 0 without gaps.
    """
    last = max(partitions, default=0)
    return tuple(min(index, last - index) for index in partitions)


def num_levels(devices: int) -> int:
    """Levels from one partition for each device to one for all: ceil(log2 devices) + 1."""
    return (max(devices, 1) - 1).bit_length() + 1


@dataclass(frozen=True)
class LevelSchedule:
    """Which levels are worked on in which round.

    Each level gets `repeats` passes, one a round, fewer where the rounds do not suffice; where
    there are fewer rounds than levels, several levels are passed in one round.

    Attributes:
        levels: number of levels, at least 1.
        rounds: rounds that are available, at least 1.
        repeats: most passes for each level.
    """

    levels: int
    rounds: int
    repeats: int = 3

    def __post_init__(self) -> None:
        for name in ("levels", "rounds", "repeats"):
            if getattr(self, name) < 1:
                raise ValueError(f"{name} must be at least 1, got {getattr(self, name)}")

    def at(self, step: int) -> tuple[int, ...]:
        """Levels, from 0, of the passes of a round; none when all are done.

        Args:
            step: rounds since the first pass.
        """
        repeats = max(1, min(self.repeats, self.rounds // self.levels))
        passes = repeats * self.levels
        steps = min(passes, self.rounds)
        if not 0 <= step < steps:
            return ()
        first, end = step * passes // steps, (step + 1) * passes // steps
        return tuple(index // repeats for index in range(first, end))
