"""Regularisers of the parameters during local training, of one model or batched over models."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass

import torch
from torch import Tensor

from bcfl.architecture.model import Model
from bcfl.executors.flat_slices import FlatSlices
from bcfl.hypotheses.posterior import Posterior
from bcfl.protocol.loss_terms import ClosedForm, Regularizer, Shrinking
from bcfl.protocol.objective import Objective
from bcfl.protocol.requests import Train


@dataclass(frozen=True, eq=False)
class ParameterTerm:
    """A regulariser of the parameters, with its references.

    Attributes:
        term: the term.
        chosen: parameters that it penalises.
        start: (..., parameters) of the model that the client starts from.
        references: (..., references, chosen) of the referenced models.
    """

    term: Regularizer
    chosen: FlatSlices
    start: Tensor
    references: Tensor

    def add_gradient(self, parameters: Tensor, gradients: Tensor) -> None:
        """Add the gradient of the weighted term, in place.

        Args:
            parameters: (..., parameters) current parameters.
            gradients: (..., parameters) gradient of the loss, changed in place.
        """
        live, start = self.chosen.take(parameters), self.chosen.take(self.start)
        of = self.term.gradient if isinstance(self.term, ClosedForm) else self._by_autograd
        self.chosen.add(gradients, of(live, start, self.references), self.term.weight)

    def _by_autograd(self, live: Tensor, start: Tensor, references: Tensor) -> Tensor:
        def penalty(live: Tensor, start: Tensor, references: Tensor) -> Tensor:
            return self.term.penalty(live, start, references.unbind())

        gradient: Callable[..., Tensor] = torch.func.grad(penalty)
        for _ in range(live.ndim - 1):
            gradient = torch.func.vmap(gradient)
        return gradient(live, start, references)


def sees_parameters(term: Regularizer | Shrinking) -> bool:
    """Whether a regulariser is a smooth function of the parameters."""
    return not isinstance(term, Shrinking) and term.sees == "parameters"


def terms_of(
    objective: Objective, model: Model, start: Tensor, references: Sequence[Tensor]
) -> list[ParameterTerm]:
    """The smooth regularisers of the parameters of an objective.

    Args:
        objective: of the training.
        model: the architecture.
        start: (..., parameters) of the model that the client starts from.
        references: (..., references, chosen) for each of these terms, see `references_of`.
    """
    terms = filter(sees_parameters, objective.regularizers)
    return [
        ParameterTerm(term, FlatSlices.of(model.chosen(term.part)), start, some)
        for term, some in zip(terms, references, strict=True)
    ]


def references_of(
    request: Train, model: Model, models: Mapping[str, Posterior], like: Tensor
) -> list[Tensor]:
    """The referenced models of each smooth regulariser of the parameters, (references, chosen).

    Args:
        request: the training.
        model: the architecture.
        models: posteriors by key.
        like: a tensor of the parameters' device and dtype.
    """
    stacks = []
    for term, keys in zip(request.objective.regularizers, request.references, strict=True):
        if sees_parameters(term):
            mask = model.chosen(term.part)
            chosen = FlatSlices.of(mask)
            means = [chosen.take(models[key].mean(model)) for key in keys]
            stacks.append(torch.stack(means) if means else like.new_empty(0, int(mask.sum())))
    return stacks
