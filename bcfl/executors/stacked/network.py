"""The interface of networks batched over models."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass, replace
from typing import Protocol, TypeAlias

import torch
from torch import Tensor, nn

from bcfl.architecture.layout import Layout, Slot
from bcfl.architecture.model import Model
from posteriors.networks.alterations import is_altered

NORMS = (nn.BatchNorm1d, nn.BatchNorm2d, nn.BatchNorm3d)


def chain_of(model: Model) -> list[tuple[nn.Module, tuple[int | None, int | None]]] | None:
    """The layers of a model in order, each with the indices of its weight and its bias.

    Indices are those of `model.layout.parameters`. None unless the model is a chain of layers, in
    `Sequential`s that may be nested, that trains all its parameters and shares none, without hooks
    and without a `forward` of their own. Its buffers must be the running means and variances of
    batch normalisation, two for each such layer in the order of the chain, and no others.
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
    if others or not model.trains_all or any(map(is_altered, module.modules())):
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
    """The leaves of nested `Sequential`s, with the prefix of their parameters' names.

    A `Sequential` that repeats a layer is a leaf itself, since each layer is named only once.
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
    """The tensors of many models of one architecture.

    Attributes:
        weights: their parameters.
        buffers: their running statistics, (problems, *shape) each.
        training: whether batch normalisation uses the statistics of the mini-batch and updates the
            running ones in place.
    """

    weights: Weights
    buffers: Sequence[Tensor] = ()
    training: bool = False

    @classmethod
    def of(cls, layout: Layout, parameters: Tensor, buffers: Tensor) -> Stacked:
        """Views of the tensors inside flat vectors.

        Args:
            layout: order and shapes of the tensors.
            parameters: (problems, parameters) flat parameters.
            buffers: (problems, buffers) running statistics.
        """
        return cls(weights_of(layout, parameters), _views(layout.buffers, buffers))

    def live(self) -> Stacked:
        """The same with weights that require a gradient."""
        weights = [weight.detach().requires_grad_() for weight in self.weights]
        return replace(self, weights=weights)


class Network(Protocol):
    """A network batched over models, each on samples of its own.

    The results of one problem depend on the other problems of the batch by rounding alone.
    """

    @property
    def mixes_samples(self) -> bool:
        """Whether outputs depend on the other samples of a mini-batch; it is not padded then."""
        ...

    def outputs(self, stacked: Stacked, inputs: Tensor) -> Tensor:
        """The outputs of each model on its own mini-batch, (problems, batch, outputs).

        Args:
            stacked: tensors of the models.
            inputs: (problems, batch, *input shape).
        """
        ...

    def outputs_of_one(self, stacked: Stacked, inputs: Tensor) -> Tensor:
        """The outputs of one model on all mini-batches, (problems, batch, outputs).

        Args:
            stacked: tensors of one model, (1, *shape).
            inputs: (problems, batch, *input shape).
        """
        ...

    def gradients(
        self,
        stacked: Stacked,
        inputs: Tensor,
        grad_output: Callable[[Tensor], Tensor],
        into: Weights,
    ) -> None:
        """Write the gradients of each problem's loss with respect to its weights.

        Layers are in training mode, unless batches hold one sample, which has no variance: then
        running statistics are frozen.

        Args:
            stacked: models; their running statistics are updated.
            inputs: (problems, batch, *shape).
            grad_output: from outputs to the gradient of the loss with respect to them, both
                (problems, batch, outputs).
            into: receives the gradients, shaped as the weights.
        """
        ...

    def diag_ggn(
        self,
        stacked: Stacked,
        inputs: Tensor,
        factors: Callable[[Tensor], Tensor],
        into: Weights,
    ) -> None:
        """Write the squared gradients summed over samples and columns of output factors.

        Layers are in evaluation mode. With the factors of the loss curvature at the outputs this is
        the diagonal of the generalised Gauss-Newton matrix.

        Args:
            stacked: models.
            inputs: (problems, batch, *shape).
            factors: from outputs (problems, batch, outputs) to (columns, problems, batch, outputs).
            into: receives the sums, shaped as the weights.
        """
        ...

    def peak_numel(self, stacked: Stacked, inputs: Tensor) -> int:
        """Peak number of tensor entries that `diag_ggn` holds for one sample of one model.

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
    """Write the gradients of each problem's loss by automatic differentiation.

    Args:
        outputs: from models to their outputs.
        stacked: the models.
        grad_output: from outputs to the gradient of the loss with respect to them.
        into: receives the gradients, shaped as the weights.
    """
    with torch.enable_grad():
        live = stacked.live()
        values = outputs(live)
        gradients = torch.autograd.grad(values, live.weights, grad_output(values.detach()))
    for place, gradient in zip(into, gradients, strict=True):
        place.copy_(gradient)


def weights_of(layout: Layout, parameters: Tensor) -> list[Tensor]:
    """Views (problems, *shape) of the tensors inside flat parameters.

    Args:
        layout: order and shapes of the tensors.
        parameters: (problems, parameters) flat parameters.
    """
    return _views(layout.parameters, parameters)


def _views(slots: Sequence[Slot], flat: Tensor) -> list[Tensor]:
    return [flat[:, slot.start : slot.stop].view(-1, *slot.shape) for slot in slots]
