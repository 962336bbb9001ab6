"""What a term of the training loss is.

Every term composes with every method: it names the reference models that the client needs besides
its start, and defines the penalty. Gradients flow into the client's own parameters alone.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Literal, Protocol, runtime_checkable

from torch import Tensor

from bcfl.architecture.layout import Part
from bcfl.hypotheses.posterior import Posterior

Sees = Literal["parameters", "outputs"]


class Regularizer(Protocol):
    """A term of the training loss.

    Attributes:
        weight: factor in front of the term.
        part: parameters that it penalises.
        sees: what `penalty` is given, `parameters` or `outputs`.
    """

    @property
    def weight(self) -> float:
        """Factor in front of the term."""
        ...

    @property
    def part(self) -> Part:
        """Parameters that it penalises."""
        ...

    @property
    def sees(self) -> Sees:
        """Argument of `penalty`, `parameters` or `outputs`."""
        ...

    def references(
        self, clusters: Sequence[Posterior], shares: Sequence[float], start: str
    ) -> tuple[Posterior, ...]:
        """Models that the client must be sent beside the one that it starts from.

        Args:
            clusters: of the hypothesis that the client trains for.
            shares: of the samples that are in each cluster, summing to 1.
            start: key of the model that the client starts from.
        """
        ...

    def penalty(self, live: Tensor, start: Tensor, references: Sequence[Tensor]) -> Tensor:
        """The term without its weight, a scalar, differentiable in `live`.

        Args:
            live: parameters (chosen,) of the part, or outputs (batch, outputs), of the network
                in training.
            start: the same of the model that the client started from.
            references: the same of the referenced models.
        """
        ...


@runtime_checkable
class ClosedForm(Protocol):
    """A regulariser of the parameters whose gradient needs no automatic differentiation."""

    def gradient(self, live: Tensor, start: Tensor, references: Tensor) -> Tensor:
        """Gradient of `penalty` in `live`, (..., chosen).

        Args:
            live: (..., chosen) parameters of the part, of one model or of many.
            start: (..., chosen) of the model that the client started from.
            references: (..., references, chosen) of the referenced models.
        """
        ...


@runtime_checkable
class Shrinking(Protocol):
    """A term that is not smooth; each step of training ends with its proximal operator."""

    @property
    def part(self) -> Part:
        """Parameters that it penalises."""
        ...

    def proximal(self, live: Tensor, step_size: float) -> Tensor:
        """(chosen,) argmin over x of step_size weight penalty(x) + 1/2 ||x - live||^2.

        Args:
            live: (chosen,) parameters after the step on all other terms.
            step_size: learning rate.
        """
        ...


class SelfContained:
    """A term that needs no cluster model besides the start."""

    def references(
        self, clusters: Sequence[Posterior], shares: Sequence[float], start: str
    ) -> tuple[Posterior, ...]:
        """None that follow from the clusters; see `Regularizer.references`."""
        del clusters, shares, start
        return ()


def check_weight(name: str, weight: float) -> None:
    """Check the weight of a term.

    Args:
        name: of the argument, for the message.
        weight: its value.

    Raises:
        ValueError: it is not positive and finite; the message names it.
    """
    if not 0 < weight < float("inf"):
        raise ValueError(f"{name} must be positive and finite, got {weight}")
