"""What a network must offer to be evaluated for many models at one time."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass, replace
from typing import Protocol, TypeAlias

import torch
from torch import Tensor, nn

from bcfl.architecture.layout import Layout, Slot
from bcfl.architecture.model import Model

NORMS = (nn.BatchNorm1d, nn.BatchNorm2d, nn.BatchNorm3d)


def chain_of(model: Model) -> list[tuple[nn.Module, tuple[int | None, int | None]]] | None:
    """The layers of a model in order, each with the places of its weight and its bias.

    Places count the tensors of `model.layout.parameters`. None where the model is no chain that
    trains all its parameters: `Sequential`s may be nested, anything else with parts may not.
    Nor may parameters be shared. Buffers are the running means and variances of batch
    normalisation, two for each such layer in the order of the chain, and no others.
    """
    module = model.module()
    slots = model.layout.parameters
    leaves = list(_leaves(module, ""))
    statistics = [
        f"{name}running_{kind}"
        for name, leaf in leaves
        if isinstance(leaf, NORMS) and leaf.track_running_stats
        for kind in ("mean", "var")
    ]
    others = statistics != [slot.name for slot in model.layout.buffers]
    if others or not all(p.requires_grad for p in module.parameters()):
        return None
    if any(list(leaf.children()) for _, leaf in leaves):
        return None
    places = {slot.name: index for index, slot in enumerate(slots)}
    chain = [
        (leaf, (places.get(f"{name}weight"), places.get(f"{name}bias"))) for name, leaf in leaves
    ]
    claimed = [place for _, own in chain for place in own if place is not None]
    return chain if sorted(claimed) == list(range(len(slots))) and claimed else None


def _leaves(module: nn.Module, name: str) -> Iterator[tuple[str, nn.Module]]:
    """What is left when nested `Sequential`s are opened, with the prefix of its parameters.

    A `Sequential` in which a layer is repeated stays closed, since each layer is named only once.
    """
    children = list(module.named_children())
    if type(module) is nn.Sequential and len(children) == len(module):
        for child_name, child in children:
            yield from _leaves(child, f"{name}{child_name}.")
    else:
        yield name, module


Weights: TypeAlias = Sequence[Tensor]
"""One tensor (problems, *shape) for each parameter tensor of the model."""


@dataclass(frozen=True, eq=False)
class Stacked:
    """Many models of one architecture.

    Attributes:
        weights: their parameters.
        buffers: their running statistics, (problems, *shape) each.
        training: whether layers normalise by the statistics of the batch, and move the running
            ones towards them, in place.
    """

    weights: Weights
    buffers: Sequence[Tensor] = ()
    training: bool = False

    @classmethod
    def of(cls, layout: Layout, parameters: Tensor, buffers: Tensor) -> Stacked:
        """Views of parameters (problems, parameters) and buffers (problems, buffers)."""
        return cls(weights_of(layout, parameters), _views(layout.buffers, buffers))

    def live(self) -> Stacked:
        """The same with weights in which derivatives are taken."""
        weights = [weight.detach().requires_grad_() for weight in self.weights]
        return replace(self, weights=weights)


class Network(Protocol):
    """A network evaluated for many models side by side, each on samples of its own.

    What one problem gives never depends on the problems beside it, beyond rounding.
    """

    @property
    def mixes_samples(self) -> bool:
        """Whether samples of a training batch change what the others give; padding must not."""
        ...

    def outputs(self, stacked: Stacked, inputs: Tensor) -> Tensor:
        """(problems, batch, outputs) for inputs (problems, batch, *shape)."""
        ...

    def outputs_of_one(self, stacked: Stacked, inputs: Tensor) -> Tensor:
        """The outputs of one model, whose tensors are (1, *shape), on the samples of many."""
        ...

    def gradients(
        self,
        stacked: Stacked,
        inputs: Tensor,
        grad_output: Callable[[Tensor], Tensor],
        into: Weights,
    ) -> None:
        """Write the gradients of each problem's loss in its weights.

        Layers are in training mode, unless batches hold one sample: it has no variance, so running
        statistics stay as they are.

        Args:
            stacked: models; their running statistics move.
            inputs: (problems, batch, *shape).
            grad_output: from outputs to the gradient of the loss in them, both
                (problems, batch, outputs).
            into: where the gradients go, shaped as the weights.
        """
        ...

    def diag_ggn(
        self,
        stacked: Stacked,
        inputs: Tensor,
        factors: Callable[[Tensor], Tensor],
        into: Weights,
    ) -> None:
        """Write the sums of squared gradients that some factors at the outputs cause.

        Layers are in evaluation mode. Each sample and each column has a gradient of its own.

        Args:
            stacked: models.
            inputs: (problems, batch, *shape).
            factors: from outputs (problems, batch, outputs) to (columns, problems, batch, outputs).
            into: where the sums go, shaped as the weights.
        """
        ...

    def peak_numel(self, stacked: Stacked, inputs: Tensor) -> int:
        """How many numbers `diag_ggn` holds for one sample of one model, at most.

        Args:
            stacked: one model.
            inputs: (1, 1, *shape), any sample.
        """
        ...


def gradients_by_autograd(
    outputs: Callable[[Stacked], Tensor],
    stacked: Stacked,
    grad_output: Callable[[Tensor], Tensor],
    into: Weights,
) -> None:
    """Write the gradients of each problem's loss, by going back through recorded operations.

    Args:
        outputs: from models to what they give.
        stacked: the models.
        grad_output: from outputs to the gradient of the loss in them.
        into: where the gradients go, shaped as the weights.
    """
    with torch.enable_grad():
        live = stacked.live()
        given = outputs(live)
        found = torch.autograd.grad(given, live.weights, grad_output(given.detach()))
    for place, gradient in zip(into, found, strict=True):
        place.copy_(gradient)


def weights_of(layout: Layout, parameters: Tensor) -> list[Tensor]:
    """Views (problems, *shape) of the tensors inside parameters (problems, parameters)."""
    return _views(layout.parameters, parameters)


def _views(slots: Sequence[Slot], flat: Tensor) -> list[Tensor]:
    return [flat[:, slot.start : slot.stop].view(-1, *slot.shape) for slot in slots]
