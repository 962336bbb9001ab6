"""The terms of an objective, evaluated while a client trains."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass

import torch
from torch import Tensor, nn
from torch.func import functional_call

from bcfl.architecture.model import Model
from bcfl.executors.sequential.flat_module import FlatSlices
from bcfl.hypotheses.posterior import Posterior
from bcfl.protocol.regularizers import Regularizer
from bcfl.protocol.requests import Train


@dataclass(frozen=True, eq=False)
class ParameterTerm:
    """A term of the parameters, with what it compares them to.

    Attributes:
        term: the term.
        chosen: parameters that it is about.
        start: (chosen,) of the model that the client starts from.
        references: (chosen,) of each referenced model.
    """

    term: Regularizer
    chosen: FlatSlices
    start: Tensor
    references: Sequence[Tensor]

    def gradient(self, parameters: Tensor) -> Tensor:
        """(chosen,) gradient of the weighted term."""
        live = self.chosen.take(parameters).detach().requires_grad_()
        with torch.enable_grad():
            loss = self.term.weight * self.term.penalty(live, self.start, self.references)
        (gradient,) = torch.autograd.grad(loss, live)
        return gradient


@dataclass(frozen=True, eq=False)
class OutputTerm:
    """A term of the outputs, with the networks whose outputs it compares them to.

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
        """The weighted term on one batch."""
        with torch.no_grad():
            start, *others = (
                functional_call(self.module, dict(tensors), (inputs,))
                for tensors in (self.start, *self.references)
            )
        return self.term.weight * self.term.penalty(outputs, start, others)


@dataclass(frozen=True, eq=False)
class Penalties:
    """All that one training adds to the likelihood's loss.

    Attributes:
        of_parameter: terms of the parameters.
        of_output: terms of the outputs.
        weight_decay: factor of the parameters themselves.
        anchor: (parameters,) mean of the prior that the client was sent.
        pull: (parameters,) precision of that prior per sample, or None where it is left out.
    """

    of_parameter: Sequence[ParameterTerm]
    of_output: Sequence[OutputTerm]
    weight_decay: float
    anchor: Tensor
    pull: Tensor | None

    @classmethod
    def of(
        cls, request: Train, model: Model, models: Mapping[str, Posterior], num_samples: int
    ) -> Penalties:
        """What a request's objective asks for.

        Args:
            request: the training.
            model: the architecture.
            models: posteriors by the keys that the request names.
            num_samples: training samples of the client.
        """
        objective, prior = request.objective, models[request.start]
        parameter, output = [], []
        for term, keys in zip(request.objective.regularizers, request.references, strict=True):
            posteriors = [models[key] for key in (request.start, *keys)]
            if term.sees == "parameters":
                means = [posterior.mean(model) for posterior in posteriors]
                chosen = FlatSlices.of(model.chosen(term.part))
                start, *others = map(chosen.take, means)
                parameter.append(ParameterTerm(term, chosen, start, others))
            else:
                named = [_named(model, posterior) for posterior in posteriors]
                output.append(OutputTerm(term, model.at_rest, named[0], named[1:]))
        pull = (
            objective.prior_weight / num_samples * prior.prior_precision(model)
            if objective.prior_weight > 0
            else None
        )
        return cls(parameter, output, objective.weight_decay, prior.mean(model), pull)

    def of_outputs(self, outputs: Tensor, inputs: Tensor) -> Tensor | float:
        """What the terms of the outputs add to the loss of one batch."""
        return sum((term.loss(outputs, inputs) for term in self.of_output), start=0.0)

    def add_gradients(self, parameters: Tensor, gradients: Tensor) -> None:
        """Add the gradients of what depends on the parameters alone, in place."""
        if self.weight_decay:
            gradients.add_(parameters, alpha=self.weight_decay)
        if self.pull is not None:
            gradients.addcmul_(self.pull, parameters - self.anchor)
        for term in self.of_parameter:
            term.chosen.add(gradients, term.gradient(parameters))


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
