"""Rounds that are named by their number or by their share of the run."""

from __future__ import annotations

from bcfl.policies.context import RoundContext


def round_number(when: float, context: RoundContext) -> int:
    """The number, from 0, of a round that is named by a whole number or by a share of the run.

    Args:
        when: a whole number, or a share in (0, 1).
        context: knows how many rounds there are.
    """
    return int(when) if float(when).is_integer() else context.share_of_rounds(when)


def check_when(name: str, when: float) -> None:
    """Check that a number names a round.

    Raises:
        ValueError: it does not; the message names the argument.
    """
    if when < 0 or (when > 1 and not float(when).is_integer()):
        raise ValueError(f"{name} must be a whole number from 0 or a share below 1, got {when}")
