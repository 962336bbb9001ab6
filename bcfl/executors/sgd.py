"""The step of stochastic gradient descent, of one model or batched over models."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Protocol

from torch import Tensor

from bcfl.architecture.model import Model
from bcfl.hypotheses.posterior import Posterior
from bcfl.protocol.objective import Objective


class GradientTerm(Protocol):
    """A regulariser of the parameters."""

    def add_gradient(self, parameters: Tensor, gradients: Tensor) -> None:
        """Add the gradient of the weighted term, in place.

        Args:
            parameters: (..., parameters) current parameters.
            gradients: (..., parameters) gradient of the loss, changed in place.
        """
        ...


class ProximalTerm(Protocol):
    """A regulariser whose proximal operator ends each step."""

    def shrink(self, parameters: Tensor, step_size: float) -> None:
        """Apply the proximal operator, in place.

        Args:
            parameters: (..., parameters) parameters after a step, changed in place.
            step_size: learning rate.
        """
        ...


class FrozenEntries(Protocol):
    """Entries of a flat vector that are not trained."""

    def fill(self, vector: Tensor, value: float) -> None:
        """Set the entries to a value, in place.

        Args:
            vector: (..., parameters) tensor, changed in place.
            value: new value of the entries.
        """
        ...


@dataclass(frozen=True, eq=False, kw_only=True)
class SgdStep:
    """Classical momentum on the gradient of the loss with weight decay, prior and regularisers.

    With w the parameters, g the gradient of the mean loss of the batch and v the velocity:
    g += weight_decay w + pull (w - anchor) + gradients of the terms, 0 where frozen; v = (momentum
    v + g) / (1 + learning_rate pull); w -= learning_rate v. The prior's gradient is thereby that at
    the new parameters (an implicit, or proximal, step), so that no prior is too sharp for the
    learning rate; an explicit step diverges where learning_rate pull > 2. Without a prior v =
    momentum v + g. Proximal operators of terms that are not smooth come last. All tensors are
    (parameters,) of one model, or (models, parameters).

    Attributes:
        objective: learning rate, momentum and weight decay.
        anchor: mean of the prior.
        pull: precision of the prior per sample, see `prior_pull`; None leaves the prior out.
        terms: smooth regularisers of the parameters of one model.
        shrinking: those that are not smooth.
        frozen: entries of one model that are not trained.
    """

    objective: Objective
    anchor: Tensor
    pull: Tensor | None = None
    terms: Sequence[GradientTerm] = ()
    shrinking: Sequence[ProximalTerm] = ()
    frozen: FrozenEntries | None = None

    def __call__(self, parameters: Tensor, gradients: Tensor, velocity: Tensor) -> None:
        """Take one step, in place.

        Args:
            parameters: current parameters; updated.
            gradients: of the mean loss; those of the other terms are added.
            velocity: of the steps so far, zero before the first; updated.
        """
        self.add_gradients(parameters, gradients)
        velocity.mul_(self.objective.momentum).add_(gradients)
        if self.pull is not None:
            velocity.div_(1 + self.objective.learning_rate * self.pull)
        parameters.add_(velocity, alpha=-self.objective.learning_rate)
        for term in self.shrinking:
            term.shrink(parameters, self.objective.learning_rate)

    def add_gradients(self, parameters: Tensor, gradients: Tensor) -> None:
        """Add the gradients of weight decay, prior and regularisers, in place.

        Args:
            parameters: (..., parameters) current parameters.
            gradients: (..., parameters) gradient of the loss, changed in place.
        """
        if self.objective.weight_decay:
            gradients.add_(parameters, alpha=self.objective.weight_decay)
        if self.pull is not None:
            gradients.addcmul_(self.pull, parameters - self.anchor)
        for term in self.terms:
            term.add_gradient(parameters, gradients)
        if self.frozen is not None:
            self.frozen.fill(gradients, 0.0)


def prior_pull(
    objective: Objective, prior: Posterior, model: Model, num_samples: int
) -> Tensor | None:
    """Precision of the prior per sample times its weight in the loss, (parameters,).

    Args:
        objective: with the weight of the prior.
        prior: sent to the client.
        model: the architecture.
        num_samples: training samples of the client.

    Returns:
        None where the objective leaves the prior out.
    """
    if objective.prior_weight == 0:
        return None
    return objective.prior_weight / num_samples * prior.prior_precision(model)
