"""The regularisers of an objective, evaluated during local training."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass

import torch
from torch import Tensor, nn
from torch.func import functional_call

from bcfl.architecture.model import Model
from bcfl.executors.sequential.flat_module import FlatSlices
from bcfl.hypotheses.posterior import Posterior
from bcfl.protocol.regularizers import Regularizer, Shrinking
from bcfl.protocol.requests import Train
from posteriors.networks.functional import own_copy


@dataclass(frozen=True, eq=False)
class ParameterTerm:
    """A regulariser of the parameters, with its references.

    Attributes:
        term: the term.
        chosen: parameters that it penalises.
        start: (chosen,) of the model that the client starts from.
        references: (chosen,) of each referenced model.
    """

    term: Regularizer
    chosen: FlatSlices
    start: Tensor
    references: Sequence[Tensor]

    def add_gradient(self, parameters: Tensor, gradients: Tensor) -> None:
        """Add the gradient of the weighted term, in place.

        Args:
            parameters: (parameters,) current parameters.
            gradients: (parameters,) gradient of the loss, changed in place.
        """
        live = self.chosen.take(parameters).detach().requires_grad_()
        with torch.enable_grad():
            loss = self.term.weight * self.term.penalty(live, self.start, self.references)
        (gradient,) = torch.autograd.grad(loss, live)
        self.chosen.add(gradients, gradient)


@dataclass(frozen=True, eq=False)
class ShrinkingTerm:
    """A term whose proximal operator ends each step.

    Attributes:
        term: the term.
        chosen: parameters that it penalises and that are trained.
    """

    term: Shrinking
    chosen: FlatSlices

    def shrink(self, parameters: Tensor, step_size: float) -> None:
        """Apply the proximal operator, in place.

        Args:
            parameters: (parameters,) parameters after a step, changed in place.
            step_size: learning rate.
        """
        live = self.chosen.take(parameters)
        self.chosen.add(parameters, self.term.proximal(live, step_size) - live)


@dataclass(frozen=True, eq=False)
class OutputTerm:
    """A regulariser of the outputs, with its reference networks.

    Attributes:
        term: the term.
        module: a network of the architecture, in eval mode; its own parameters are never used.
        start: named tensors of the model that the client starts from.
        references: named tensors of each referenced model.
    """

    term: Regularizer
    module: nn.Module
    start: Mapping[str, Tensor]
    references: Sequence[Mapping[str, Tensor]]

    def loss(self, outputs: Tensor, inputs: Tensor) -> Tensor:
        """The weighted term on one mini-batch.

        Args:
            outputs: (batch, outputs) of the network in training.
            inputs: (batch, *input shape) of the mini-batch.
        """
        with torch.no_grad():
            start, *others = (
                functional_call(self.module, dict(tensors), (own_copy(inputs),))
                for tensors in (self.start, *self.references)
            )
        return self.term.weight * self.term.penalty(outputs, start, others)


@dataclass(frozen=True, eq=False)
class Penalties:
    """The regularisers of one local training.

    Attributes:
        of_parameter: smooth ones of the parameters.
        of_output: those of the outputs.
    """

    of_parameter: Sequence[ParameterTerm]
    of_output: Sequence[OutputTerm]

    @classmethod
    def of(cls, request: Train, model: Model, models: Mapping[str, Posterior]) -> Penalties:
        """The regularisers of a request's objective.

        Args:
            request: the training.
            model: the architecture.
            models: posteriors by the keys that the request names.
        """
        parameter, output = [], []
        for term, keys in zip(request.objective.regularizers, request.references, strict=True):
            if isinstance(term, Shrinking):
                continue
            posteriors = [models[key] for key in (request.start, *keys)]
            if term.sees == "parameters":
                means = [posterior.mean(model) for posterior in posteriors]
                chosen = FlatSlices.of(model.chosen(term.part))
                start, *others = map(chosen.take, means)
                parameter.append(ParameterTerm(term, chosen, start, others))
            else:
                named = [_named(model, posterior) for posterior in posteriors]
                output.append(OutputTerm(term, model.at_rest, named[0], named[1:]))
        return cls(parameter, output)

    @staticmethod
    def shrinking(request: Train, model: Model, trained: Tensor) -> list[ShrinkingTerm]:
        """The terms of a request's objective whose proximal operator ends each step.

        Args:
            request: the training.
            model: the architecture.
            trained: (parameters,) bool, which parameters are trained.
        """
        return [
            ShrinkingTerm(term, FlatSlices.of(model.chosen(term.part) & trained))
            for term in request.objective.regularizers
            if isinstance(term, Shrinking)
        ]

    def of_outputs(self, outputs: Tensor, inputs: Tensor) -> Tensor | float:
        """Sum of the weighted regularisers of the outputs on one mini-batch.

        Args:
            outputs: (batch, outputs) of the network in training.
            inputs: (batch, *input shape) of the mini-batch.
        """
        return sum((term.loss(outputs, inputs) for term in self.of_output), start=0.0)


def _named(model: Model, posterior: Posterior) -> dict[str, Tensor]:
    """A model's tensors by name, as `functional_call` takes them."""
    flat = (
        (posterior.mean(model), model.layout.parameters),
        (posterior.buffers(model), model.layout.buffers),
    )
    return {
        slot.name: vector[slot.start : slot.stop].view(slot.shape)
        for vector, slots in flat
        for slot in slots
    }
