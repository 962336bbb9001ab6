"""Stable SGD: one model, trained at a learning rate that decays from time step to time step.

Mirzadeh, Farajtabar, Pascanu and Ghasemzadeh, "Understanding the Role of Training Regimes in
Continual Learning" (2020): wide minima forget less, and dropout, small batches and a large
learning rate that decays find them.
"""

from __future__ import annotations

from dataclasses import dataclass, replace

from bcfl.hypotheses.hypothesis import Hypothesis
from bcfl.policies.baselines.fedavg import FedAvg
from bcfl.policies.context import RoundContext
from bcfl.policies.policy import Ranking
from bcfl.protocol.objective import Objective
from bcfl.protocol.requests import Steps


@dataclass(frozen=True)
class StableSGD:
    """FedAvg with learning rate max(initial decay^t, least) in time step t, counted from 1.

    Static data are one time step.

    Attributes:
        objective: local objective; its learning rate is the initial one.
        decay: gamma.
        least: smallest learning rate.
    """

    objective: Objective
    decay: float = 0.8
    least: float = 5e-5

    def __post_init__(self) -> None:
        if not 0 < self.decay <= 1:
            raise ValueError(f"decay must lie in (0, 1], got {self.decay}")
        if not 0 <= self.least < float("inf"):
            raise ValueError(f"least must be finite and at least 0, got {self.least}")

    @property
    def num_clusters(self) -> int:
        """One."""
        return 1

    def associate(self, hypothesis: Hypothesis, context: RoundContext) -> Steps[Ranking]:
        """Associate without any request. See `bcfl.policies.Policy.associate`."""
        objective = replace(self.objective, learning_rate=self.rate(context.step))
        return (yield from FedAvg(objective).associate(hypothesis, context))

    def rate(self, step: int) -> float:
        """The learning rate of a time step.

        Args:
            step: its number, from 0.
        """
        return max(self.objective.learning_rate * self.decay ** (step + 1), self.least)
