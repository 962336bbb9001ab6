"""What everybody may know in a round."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field

from bcfl.architecture.model import Model


@dataclass(frozen=True)
class RoundContext:
    """What everybody may know in a round.

    Attributes:
        round: number of the round, from 0.
        participants: names of the clients that take part, sorted.
        num_samples: training samples of each participant.
        seed: seed of the run.
        model: the architecture.
        candidates_per_parent: how many associations the tracker will look at for each
            hypothesis; None is all of them.
        num_validation: validation samples of each participant; one that is not listed may have
            some.
        num_rounds: rounds of the whole run, by which schedules scale; None where nobody knows.
        step: time step that the clients' data belong to, from 0.
        rounds_in_step: rounds of that time step; None where nobody knows.
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

    def share_of_rounds(self, share: float) -> int:
        """So many rounds as make up a share of the run, at least one if the share is above 0.

        Args:
            share: in [0, 1); of 100 rounds where nobody knows how many there are.
        """
        rounds = 100 if self.num_rounds is None else self.num_rounds
        return max(int(share * rounds + 0.5), 1) if share > 0 else 0

    def validating(self, clients: Iterable[str]) -> list[str]:
        """Those of some clients that may have validation samples."""
        return [client for client in clients if self.num_validation.get(client, 1) > 0]


def round_number(round_or_share: float, context: RoundContext) -> int:
    """The number, from 0, of a round that is named by a whole number or by a share of the run.

    Args:
        round_or_share: a whole number, or a share in (0, 1).
        context: knows how many rounds there are.
    """
    return (
        int(round_or_share)
        if float(round_or_share).is_integer()
        else context.share_of_rounds(round_or_share)
    )


def check_round(name: str, round_or_share: float) -> None:
    """Check that a number names a round.

    Raises:
        ValueError: it does not; the message names the argument.
    """
    if round_or_share < 0 or (round_or_share > 1 and not float(round_or_share).is_integer()):
        raise ValueError(
            f"{name} must be a whole number from 0 or a share below 1, got {round_or_share}"
        )
