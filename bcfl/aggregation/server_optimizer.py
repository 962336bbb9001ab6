"""Server optimisers: the mean update of a round as the gradient of a server step.

Reddi, Charles, Zaheer, Garrett, Rush, Konečný, Kumar and McMahan, "Adaptive Federated Optimization"
(2021), algorithm 2, and Hsu, Qi and Brown, "Measuring the Effects of Non-Identical Data
Distribution for Federated Visual Classification" (2019) for momentum.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Literal, Protocol, get_args

import torch
from torch import Tensor

Rule = Literal["momentum", "adagrad", "yogi", "adam"]


class ServerOptimizer(Protocol):
    """How a block of a cluster's model moves to the mean of its clients' models."""

    def step(
        self, before: Tensor, mean: Tensor, moments: Tensor | None
    ) -> tuple[Tensor, Tensor | None]:
        """Parameters and moments after a round.

        Args:
            before: (parameters,) before the round.
            mean: (parameters,) weighted mean of the clients' parameters.
            moments: (2, parameters) first and second moment of the updates; None before the first.
        """
        ...


@dataclass(frozen=True)
class TakeMean:
    """The mean itself, as in FedAvg: a server step of rate 1 without momentum."""

    def step(
        self, before: Tensor, mean: Tensor, moments: Tensor | None
    ) -> tuple[Tensor, Tensor | None]:
        """The mean; see `ServerOptimizer.step`."""
        del before, moments
        return mean, None


TAKE_MEAN: ServerOptimizer = TakeMean()


@dataclass(frozen=True, kw_only=True)
class AdaptiveServer:
    """FedAvgM, FedAdagrad, FedYogi or FedAdam, without bias correction, as published.

    With Δ the mean update: m ← β1 m + (1 - β1) Δ; v ← v + Δ² (Adagrad), v - (1 - β2) Δ² sign(v -
    Δ²) (Yogi) or β2 v + (1 - β2) Δ² (Adam), v = τ² at first; x ← x + η m / (√v + τ). With momentum
    alone m ← β1 m + Δ; x ← x + η m.

    Attributes:
        rule: how the second moment is updated; `momentum` has none.
        learning_rate: η.
        first_decay: β1.
        second_decay: β2 of Yogi and Adam.
        adaptivity: τ; the larger, the less the step sizes of parameters differ.
    """

    rule: Rule
    learning_rate: float
    first_decay: float = 0.9
    second_decay: float = 0.99
    adaptivity: float = 1e-3

    def __post_init__(self) -> None:
        if self.rule not in get_args(Rule):
            raise ValueError(f"rule must be one of {', '.join(get_args(Rule))}, got {self.rule!r}")
        for name in ("learning_rate", "adaptivity"):
            if not 0 < getattr(self, name) < float("inf"):
                raise ValueError(f"{name} must be positive and finite, got {getattr(self, name)}")
        for name in ("first_decay", "second_decay"):
            if not 0 <= getattr(self, name) < 1:
                raise ValueError(f"{name} must lie in [0, 1), got {getattr(self, name)}")

    def step(
        self, before: Tensor, mean: Tensor, moments: Tensor | None
    ) -> tuple[Tensor, Tensor | None]:
        """One step along the mean update; see `ServerOptimizer.step`."""
        update = mean - before
        if moments is None:
            moments = torch.stack([torch.zeros_like(update), torch.full_like(update, self.floor)])
        first, second = moments
        if self.rule == "momentum":
            first = self.first_decay * first + update
            return before + self.learning_rate * first, torch.stack([first, second])
        first = self.first_decay * first + (1 - self.first_decay) * update
        second = self._second(second, update.square())
        scaled = first / (second.sqrt() + self.adaptivity)
        return before + self.learning_rate * scaled, torch.stack([first, second])

    @property
    def floor(self) -> float:
        """Second moment before the first round, τ²."""
        return self.adaptivity**2

    def _second(self, second: Tensor, squared: Tensor) -> Tensor:
        left = 1 - self.second_decay
        match self.rule:
            case "adagrad":
                return second + squared
            case "yogi":
                return second - left * squared * torch.sign(second - squared)
            case _:
                return self.second_decay * second + left * squared
