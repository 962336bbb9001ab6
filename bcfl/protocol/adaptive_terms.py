"""Terms of decomposed weights: sparse adaptive parts, and weights of earlier time steps.

Yoon, Kim, Yang and Hwang, "Scalable and Order-robust Continual Learning with Additive Parameter
Decomposition" (2020), equation 3.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import ClassVar

from torch import Tensor
from torch.nn.functional import huber_loss, softshrink

from bcfl.architecture.decomposition import ADAPTIVE_PART, SHARED_PART
from bcfl.architecture.layout import Part
from bcfl.protocol.loss_terms import Sees, SelfContained, check_weight


@dataclass(frozen=True)
class Sparsity(SelfContained):
    """weight sum |parameters|: the L1 penalty of a client's own parameters.

    Each step ends with its proximal operator, the soft threshold, which sets small parameters to
    0; a subgradient sets none.

    Attributes:
        weight: lambda_1.
        part: parameters that are penalised.
    """

    weight: float = 4e-4
    part: Part = ADAPTIVE_PART
    sees: ClassVar[Sees] = "parameters"

    def __post_init__(self) -> None:
        check_weight("weight", self.weight)

    def penalty(self, live: Tensor, start: Tensor, references: Sequence[Tensor]) -> Tensor:
        """Summed absolute values; see `bcfl.protocol.Regularizer.penalty`."""
        del start, references
        return live.abs().sum()

    def proximal(self, live: Tensor, step_size: float) -> Tensor:
        """The soft threshold; see `bcfl.protocol.loss_terms.Shrinking.proximal`."""
        return softshrink(live, step_size * self.weight)


@dataclass(frozen=True)
class Retention(SelfContained):
    """The cost of keeping the weights of an earlier time step, its adaptive part trained along.

    Over the shared part and the adaptive part of the earlier step, weight / 2 ||kept - shared mask
    - adaptive||^2 + sparsity ||adaptive||_1: the weight is halved as in the authors' program, and
    whole in the paper. Its least over the adaptive part is a Huber loss of kept - shared mask,
    whose gradient never exceeds `sparsity`; the adaptive part that attains it is the soft threshold
    of the residual at sparsity / weight.

    The references are the client's own: `kept`, the weights at the end of the earlier step, and its
    `mask` after the sigmoid, both in the places of the shared part. The request for the training
    names them.

    Attributes:
        weight: lambda_2.
        sparsity: lambda_1.
        part: the shared part.
    """

    weight: float = 100.0
    sparsity: float = 4e-4
    part: Part = SHARED_PART
    sees: ClassVar[Sees] = "parameters"

    def __post_init__(self) -> None:
        check_weight("weight", self.weight)
        check_weight("sparsity", self.sparsity)

    @property
    def threshold(self) -> float:
        """Largest residual that the adaptive part leaves, which is sparsity / weight."""
        return self.sparsity / self.weight

    def penalty(self, live: Tensor, start: Tensor, references: Sequence[Tensor]) -> Tensor:
        """Huber loss of the residual; see `bcfl.protocol.Regularizer.penalty`."""
        del start
        kept, mask = references
        return huber_loss(live * mask, kept, reduction="sum", delta=self.threshold)

    def gradient(self, live: Tensor, start: Tensor, references: Tensor) -> Tensor:
        """The clipped residual times the mask.

        See `bcfl.protocol.loss_terms.ClosedForm.gradient`.
        """
        del start
        kept, mask = references.unbind(-2)
        return mask * (live * mask - kept).clamp_(-self.threshold, self.threshold)
