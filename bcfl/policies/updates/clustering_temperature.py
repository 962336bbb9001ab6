"""Clustering temperature: the trigger of one-shot clustering (OCFL).

Zuziak, Pellungrini and Rinzivillo, "One-Shot Clustering for Federated Learning" (OCFL), equations
2 to 4 and algorithm 1.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Literal, Protocol

import numpy as np
from numpy.typing import NDArray

from bcfl.policies.context import RoundContext, check_round, round_number


def clustering_temperature(distances: NDArray[np.float64], norm: float = 2.0) -> float:
    """T = ‖Γ‖_p / λ with λ = (n (n - 1) 2^p)^(1/p), in [0, 1] (OCFL, equations 2 to 4).

    Args:
        distances: (updates, updates) cosine distances Γ, zero on the diagonal.
        norm: p, at least 1.

    Raises:
        ValueError: there are fewer than two updates.
    """
    count = len(distances)
    if count < 2:
        raise ValueError(f"distances must be of at least 2 updates, got {count}")
    mean = float(((distances / 2.0) ** norm).sum()) / (count * (count - 1))
    return float(mean ** (1.0 / norm))


class Trigger(Protocol):
    """Decides in which round clients are clustered."""

    @property
    def norm(self) -> float:
        """Norm p of the clustering temperature."""
        ...

    def fires(self, temperature: float, before: float | None, context: RoundContext) -> bool:
        """Whether clients are clustered in this round.

        Args:
            temperature: clustering temperature of this round's updates.
            before: that of the last round with updates; None if there was none.
            context: read-only context of the round.
        """
        ...


@dataclass(frozen=True)
class TemperatureRise:
    """Cluster in the first round whose temperature is above that of the round before.

    Attributes:
        norm: p of the norm.
        rule: `rise` needs a strict rise and starts at T = +inf, so that it never fires in the
            first round, consistent with the paper's tables and the authors' code. `printed` is
            algorithm 1 as printed, T = -inf and "at least", which fires at once.
    """

    norm: float = 2.0
    rule: Literal["rise", "printed"] = "rise"

    def __post_init__(self) -> None:
        if not self.norm >= 1:
            raise ValueError(f"norm must be at least 1, got {self.norm}")
        if self.rule not in ("rise", "printed"):
            raise ValueError(f"rule must be 'rise' or 'printed', got {self.rule!r}")

    def fires(self, temperature: float, before: float | None, context: RoundContext) -> bool:
        """Whether the temperature has risen. See `Trigger.fires`."""
        del context
        if self.rule == "printed":
            return before is None or temperature >= before
        return before is not None and temperature > before


@dataclass(frozen=True)
class AtRound:
    """Cluster in a round that is fixed in advance (Briggs et al., 2020).

    Attributes:
        round: number of the round, from 0, or its share of the run below 1; the next one if too
            few clients answer in it.
        norm: p of the temperature that is logged.
    """

    round: float
    norm: float = 2.0

    def __post_init__(self) -> None:
        check_round("round", self.round)
        if not self.norm >= 1:
            raise ValueError(f"norm must be at least 1, got {self.norm}")

    def fires(self, temperature: float, before: float | None, context: RoundContext) -> bool:
        """Whether the round is reached, at any temperature. See `Trigger.fires`."""
        del temperature, before
        return context.round >= round_number(self.round, context)
