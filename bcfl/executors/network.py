"""What a network must offer to be evaluated for many models at one time."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Protocol, TypeAlias

from torch import Tensor

from bcfl.model import Layout

Weights: TypeAlias = Sequence[Tensor]
"""One tensor (problems, *shape) for each parameter tensor of the model."""


class Network(Protocol):
    """A network evaluated for many models side by side, each on samples of its own.

    What one problem gives never depends on the problems beside it, beyond rounding.
    """

    def outputs(self, weights: Weights, inputs: Tensor) -> Tensor:
        """(problems, batch, outputs) for inputs (problems, batch, *shape)."""
        ...

    def outputs_of_one(self, weights: Weights, inputs: Tensor) -> Tensor:
        """The outputs of one model, whose weights are (1, *shape), on the samples of many."""
        ...

    def gradients(
        self,
        weights: Weights,
        inputs: Tensor,
        slope: Callable[[Tensor], Tensor],
        into: Weights,
    ) -> None:
        """Write the gradients of each problem's loss in its weights.

        Args:
            weights: of each problem.
            inputs: (problems, batch, *shape).
            slope: from outputs to the gradient of the loss in them, both
                (problems, batch, outputs).
            into: where the gradients go, shaped as `weights`.
        """
        ...


def weights_of(layout: Layout, parameters: Tensor) -> list[Tensor]:
    """Views (problems, *shape) of the tensors inside parameters (problems, parameters)."""
    return [
        parameters[:, slot.start : slot.stop].view(-1, *slot.shape) for slot in layout.parameters
    ]
