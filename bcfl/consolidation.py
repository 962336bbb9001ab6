"""A pull towards an earlier model, strong where its loss was curved: elastic weight consolidation.

Kirkpatrick et al., "Overcoming catastrophic forgetting in neural networks" (2017), with one anchor
as in Schwarz et al., "Progress & Compress" (2018).
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import ClassVar

from torch import Tensor

from bcfl.model import ALL, Part
from bcfl.posterior import Posterior
from bcfl.terms import Sees


@dataclass(frozen=True)
class Consolidation:
    """weight / 2 sum fisher (parameters - anchor)^2.

    The references are the client's own: the anchor, and a model whose parameters are the diagonal
    of the Fisher information per sample. Whoever asks for the training names them.

    Attributes:
        weight: lambda; loss and Fisher information are both means over samples.
        part: parameters that are held.
    """

    weight: float = 10.0
    part: Part = ALL
    sees: ClassVar[Sees] = "parameters"

    def __post_init__(self) -> None:
        if not 0 < self.weight < float("inf"):
            raise ValueError(f"weight must be positive and finite, got {self.weight}")

    def references(
        self, clusters: Sequence[Posterior], shares: Sequence[float], start: str
    ) -> tuple[Posterior, ...]:
        """None that follow from the clusters."""
        del clusters, shares, start
        return ()

    def penalty(self, live: Tensor, start: Tensor, references: Sequence[Tensor]) -> Tensor:
        """Half the squared distance from the anchor, weighted by the Fisher information."""
        del start
        anchor, fisher = references
        return 0.5 * (fisher * (live - anchor).square()).sum()
