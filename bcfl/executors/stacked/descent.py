"""Stochastic gradient descent batched over models, in steps that can be replayed."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass

import torch
from torch import Tensor

from bcfl.architecture.model import Model
from bcfl.executors.regularization import terms_of
from bcfl.executors.sgd import SgdStep
from bcfl.executors.stacked.network import Network, Stacked, Weights, weights_of
from bcfl.executors.stacked.samples import Samples
from bcfl.protocol.objective import Objective
from posteriors.curvature.likelihood import loss_gradient

Descent = Callable[["StackedTraining", Objective], tuple[Tensor, Tensor]]
"""From trainings to the final parameters (problems, parameters) and running statistics (problems,
buffers)."""


@dataclass(frozen=True, eq=False, kw_only=True)
class StackedTraining:
    """Local trainings of one objective with mini-batches of one length.

    Attributes:
        network: batched over models.
        model: its architecture.
        samples: the clients' training samples.
        parameters: (problems, parameters) to start from.
        buffers: (problems, buffers) running statistics to start from.
        pull: (problems, parameters) precision of the prior per sample, or None without prior term.
        references: (problems, references, chosen) of each regulariser, see `references_of`.
        rows: (steps, problems, batch) which samples each step uses.
        shares: (problems, batch) weight of each of them: 1 / batch size, or 0 for padding.
    """

    network: Network
    model: Model
    samples: Samples
    parameters: Tensor
    buffers: Tensor
    pull: Tensor | None
    references: Sequence[Tensor] = ()
    rows: Tensor
    shares: Tensor

    def grad_output(self, targets: Tensor) -> Callable[[Tensor], Tensor]:
        """From outputs to the gradient of the mean loss of each problem."""
        return lambda outputs: loss_gradient(outputs, targets, self.model.likelihood, self.shares)


@dataclass(frozen=True, eq=False, kw_only=True)
class StackedSgd:
    """SGD with momentum batched over models, in place.

    A step works on fixed tensors, never synchronises with the device and has the same shapes
    for all data, so that it can be captured as a CUDA graph and replayed.

    Attributes:
        problems: the trainings; a step reads all but their `rows`.
        update: the step.
        parameters: (problems, parameters), current.
        buffers: (problems, buffers) running statistics, current.
        velocity: (problems, parameters).
        gradients: (problems, parameters) of the last step.
        stacked: views of parameters and buffers.
        gradient_views: views of gradients by parameter tensor.
    """

    problems: StackedTraining
    update: SgdStep
    parameters: Tensor
    buffers: Tensor
    velocity: Tensor
    gradients: Tensor
    stacked: Stacked
    gradient_views: Weights

    @classmethod
    def of(cls, problems: StackedTraining, objective: Objective) -> StackedSgd:
        """The state before the first step.

        Args:
            problems: trainings of equal shapes.
            objective: of all of them.
        """
        parameters, buffers = problems.parameters.clone(), problems.buffers.clone()
        gradients = torch.empty_like(parameters)
        layout = problems.model.layout
        return cls(
            problems=problems,
            update=SgdStep(
                objective=objective,
                anchor=problems.parameters,
                pull=problems.pull,
                terms=terms_of(objective, problems.model, problems.parameters, problems.references),
            ),
            parameters=parameters,
            buffers=buffers,
            velocity=torch.zeros_like(parameters),
            gradients=gradients,
            stacked=Stacked.of(layout, parameters, buffers),
            gradient_views=weights_of(layout, gradients),
        )

    def restart(self) -> None:
        """Return to the state before the first step, from the current tensors of `problems`."""
        self.parameters.copy_(self.problems.parameters)
        self.buffers.copy_(self.problems.buffers)
        self.velocity.zero_()

    def step(self, rows: Tensor) -> None:
        """One step on mini-batches of samples (problems, batch)."""
        problems = self.problems
        grad_output = problems.grad_output(problems.samples.targets[rows])
        problems.network.gradients(
            self.stacked, problems.samples.inputs[rows], grad_output, self.gradient_views
        )
        self.update(self.parameters, self.gradients, self.velocity)


def descend(problems: StackedTraining, objective: Objective) -> tuple[Tensor, Tensor]:
    """All steps of SGD with momentum, in turn; see `bcfl.executors.stacked.descent.Descent`."""
    sgd = StackedSgd.of(problems, objective)
    for rows in problems.rows:
        sgd.step(rows)
    return sgd.parameters, sgd.buffers
