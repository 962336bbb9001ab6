"""The regularisers of an objective, evaluated during local training."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass

import torch
from torch import Tensor, nn
from torch.func import functional_call

from bcfl.architecture.model import Model
from bcfl.executors.flat_slices import FlatSlices
from bcfl.executors.regularization import ParameterTerm, references_of, terms_of
from bcfl.hypotheses.posterior import Posterior
from bcfl.protocol.loss_terms import Regularizer, Shrinking
from bcfl.protocol.requests import Train
from posteriors.networks.functional import own_copy


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
        objective, mean = request.objective, models[request.start].mean(model)
        references = references_of(request, model, models, mean)
        output = []
        for term, keys in zip(objective.regularizers, request.references, strict=True):
            if not isinstance(term, Shrinking) and term.sees == "outputs":
                start, *others = (_named(model, models[key]) for key in (request.start, *keys))
                output.append(OutputTerm(term, model.at_rest, start, others))
        return cls(terms_of(objective, model, mean, references), output)

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
