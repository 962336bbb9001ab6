"""Read-only context of one server round, and schedules by the number of rounds."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field

from bcfl.architecture.model import Model


@dataclass(frozen=True, kw_only=True)
class RoundContext:
    """Read-only context of one server round.

    Attributes:
        round: number of the round, from 0.
        participants: names of the participating clients, sorted.
        num_samples: training samples of each participant.
        seed: seed of the run.
        model: the architecture.
        candidates_per_parent: associations that the tracker enumerates for each hypothesis; None
            is all of them.
        num_validation: validation samples of each participant; a client that is not listed may
            have some.
        num_rounds: rounds of the whole run, by which schedules scale; None if unknown.
        step: time step of the clients' data, from 0.
        rounds_in_step: rounds of that time step; None if unknown.
        records_belief: whether beliefs are recorded after the round, for which every hypothesis
            needs the cavities of its clusters.
        objectives: whether the quantities of the convergence analysis are measured.
    """

    round: int
    participants: tuple[str, ...]
    num_samples: Mapping[str, int]
    seed: int
    model: Model
    candidates_per_parent: int | None = 1
    num_validation: Mapping[str, int] = field(default_factory=dict)
    num_rounds: int | None = None
    step: int = 0
    rounds_in_step: int | None = None
    records_belief: bool = False
    objectives: bool = False

    def share_of_rounds(self, share: float) -> int:
        """Number of rounds in a share of the run, at least one if the share is above 0.

        Args:
            share: in [0, 1); of 100 rounds if the number of rounds is unknown.
        """
        rounds = 100 if self.num_rounds is None else self.num_rounds
        return max(int(share * rounds + 0.5), 1) if share > 0 else 0

    def validating(self, clients: Iterable[str]) -> list[str]:
        """Those of the given clients that may have validation samples."""
        return [client for client in clients if self.num_validation.get(client, 1) > 0]


def round_number(round_or_share: float, context: RoundContext) -> int:
    """Number of a round, from 0, given as such or as a share of the run.

    Args:
        round_or_share: a whole number, or a share in (0, 1).
        context: holds the number of rounds of the run.
    """
    return (
        int(round_or_share)
        if float(round_or_share).is_integer()
        else context.share_of_rounds(round_or_share)
    )


def check_round(name: str, round_or_share: float) -> None:
    """Check a round that is given by its number or as a share of the run.

    Args:
        name: name of the argument, for the message.
        round_or_share: a whole number from 0, or a share below 1.

    Raises:
        ValueError: it is neither.
    """
    if round_or_share < 0 or (round_or_share > 1 and not float(round_or_share).is_integer()):
        raise ValueError(
            f"{name} must be a whole number from 0 or a share below 1, got {round_or_share}"
        )
