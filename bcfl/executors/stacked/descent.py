"""Stochastic gradient descent for many models at one time, in steps that can be replayed."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass

import torch
from torch import Tensor

from bcfl.architecture.model import Model
from bcfl.executors.stacked.network import Network, Stacked, Weights, weights_of
from bcfl.executors.stacked.samples import Samples
from bcfl.protocol.objective import Objective
from posteriors.curvature.likelihood import loss_gradient

Descent = Callable[["StackedTraining", Objective], tuple[Tensor, Tensor]]
"""From problems to where they end: (problems, parameters), and running statistics (problems,
buffers)."""


@dataclass(frozen=True, eq=False)
class StackedTraining:
    """Trainings of one objective with batches of one length.

    Attributes:
        network: evaluated for all of them at one time.
        model: its architecture.
        samples: the clients' training samples.
        parameters: (problems, parameters) to start from.
        buffers: (problems, buffers) running statistics to start from.
        pull: (problems, parameters) precision of the prior per sample, or None without prior term.
        rows: (steps, problems, batch) which samples each step uses.
        shares: (problems, batch) weight of each of them: 1 / batch size, or 0 for padding.
    """

    network: Network
    model: Model
    samples: Samples
    parameters: Tensor
    buffers: Tensor
    pull: Tensor | None
    rows: Tensor
    shares: Tensor

    def grad_output(self, targets: Tensor) -> Callable[[Tensor], Tensor]:
        """From outputs to the gradient of the mean loss of each problem."""
        return lambda outputs: loss_gradient(outputs, targets, self.model.likelihood, self.shares)


@dataclass(frozen=True, eq=False)
class Sgd:
    """SGD with momentum for many problems; it works in place.

    A step reads and writes tensors that stay where they are, asks the device for no number and has
    the same shapes whatever the data, so that it can be captured once and replayed.

    Attributes:
        problems: what is solved; all but its `rows` is read in each step.
        objective: of all of them.
        parameters: (problems, parameters) now.
        buffers: (problems, buffers) running statistics now.
        velocity: (problems, parameters).
        gradients: (problems, parameters) of the last step.
        stacked: views of parameters and buffers.
        slopes: views of gradients.
    """

    problems: StackedTraining
    objective: Objective
    parameters: Tensor
    buffers: Tensor
    velocity: Tensor
    gradients: Tensor
    stacked: Stacked
    slopes: Weights

    @classmethod
    def of(cls, problems: StackedTraining, objective: Objective) -> Sgd:
        """Ready for the first step."""
        parameters, buffers = problems.parameters.clone(), problems.buffers.clone()
        gradients = torch.empty_like(parameters)
        layout = problems.model.layout
        return cls(
            problems,
            objective,
            parameters,
            buffers,
            torch.zeros_like(parameters),
            gradients,
            Stacked.of(layout, parameters, buffers),
            weights_of(layout, gradients),
        )

    def restart(self) -> None:
        """Be ready for the first step again, from what the problems' tensors hold now."""
        self.parameters.copy_(self.problems.parameters)
        self.buffers.copy_(self.problems.buffers)
        self.velocity.zero_()

    def step(self, rows: Tensor) -> None:
        """Go one step, on samples (problems, batch)."""
        problems, objective, gradients = self.problems, self.objective, self.gradients
        grad_output = problems.grad_output(problems.samples.targets[rows])
        problems.network.gradients(
            self.stacked, problems.samples.inputs[rows], grad_output, self.slopes
        )
        if objective.weight_decay:
            gradients.add_(self.parameters, alpha=objective.weight_decay)
        if problems.pull is not None:
            gradients.addcmul_(problems.pull, self.parameters - problems.parameters)
        self.velocity.mul_(objective.momentum).add_(gradients)
        self.parameters.add_(self.velocity, alpha=-objective.learning_rate)


def descend(problems: StackedTraining, objective: Objective) -> tuple[Tensor, Tensor]:
    """All steps of SGD with momentum, one after the other; see `Descent`."""
    sgd = Sgd.of(problems, objective)
    for rows in problems.rows:
        sgd.step(rows)
    return sgd.parameters, sgd.buffers
