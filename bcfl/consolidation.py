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
from bcfl.terms import Sees, SelfContained, check_weight


@dataclass(frozen=True)
class Consolidation(SelfContained):
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
        check_weight("weight", self.weight)

    def penalty(self, live: Tensor, start: Tensor, references: Sequence[Tensor]) -> Tensor:
        """Half the squared distance from the anchor, weighted by the Fisher information."""
        del start
        anchor, fisher = references
        return 0.5 * (fisher * (live - anchor).square()).sum()
