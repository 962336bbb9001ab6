"""Coordinate-wise median and trimmed mean of local models (Yin et al., 2018).

Yin, Chen, Ramchandran and Bartlett, "Byzantine-Robust Distributed Learning: Towards Optimal
Statistical Rates" (2018), definitions 1 and 2, with weights.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Literal, Protocol, get_args

import torch
from torch import Tensor

from bcfl.aggregation.contributions import Contribution
from bcfl.protocol.objective import Objective
from posteriors import FusionRule

ROUNDING = 1e-9
"""Relative tolerance between sums of weights."""


Weighting = Literal["clients", "samples"]
"""`clients`: a local model weighs what the policy gives it in the cluster. `samples`: this times
the number of samples, which is the client's own word."""


class RobustMean(Protocol):
    """A coordinate-wise estimate of where most values are."""

    @property
    def weighting(self) -> Weighting:
        """What a local model weighs."""
        ...

    def of(self, values: Tensor, weights: Tensor) -> Tensor:
        """The estimate of each coordinate.

        Args:
            values: (parties, ...), at least one party.
            weights: (parties,) positive.

        Returns:
            (...), in the type of the values.
        """
        ...


@dataclass(frozen=True)
class Median:
    """The weighted median; between two values that halve the weight it is their midpoint.

    Attributes:
        weighting: what a local model weighs.
    """

    weighting: Weighting = "clients"

    def __post_init__(self) -> None:
        _check_weighting(self.weighting)

    def of(self, values: Tensor, weights: Tensor) -> Tensor:
        """The median of each coordinate; see `RobustMean.of`."""
        ordered, sorted_weights = _ordered(values, weights)
        reached = sorted_weights.cumsum(dim=0)
        half = reached[-1:] / 2
        lower = (reached < half * (1 - ROUNDING)).sum(dim=0, keepdim=True)
        upper = (reached <= half * (1 + ROUNDING)).sum(dim=0, keepdim=True)
        middle = ordered.gather(0, lower) / 2 + ordered.gather(0, upper) / 2
        return middle[0].to(values.dtype)


@dataclass(frozen=True)
class TrimmedMean:
    """The weighted mean without the lowest and the highest values.

    From either end whole parties are left out until at least `share` of the weight is gone, so that
    at least one is, however few there are. Where none remains the estimate is the median.

    Attributes:
        share: β, of the weight at either end, in (0, 0.5).
        weighting: what a local model weighs.
    """

    share: float = 0.2
    weighting: Weighting = "clients"

    def __post_init__(self) -> None:
        _check_weighting(self.weighting)
        if not 0 < self.share < 0.5:
            raise ValueError(f"share must lie in (0, 0.5), got {self.share}")

    def of(self, values: Tensor, weights: Tensor) -> Tensor:
        """The trimmed mean of each coordinate; see `RobustMean.of`."""
        ordered, sorted_weights = _ordered(values, weights)
        reached = sorted_weights.cumsum(dim=0)
        total = reached[-1:]
        least = (self.share - ROUNDING) * total
        kept = (reached - sorted_weights >= least) & (total - reached >= least)
        kept_weights = sorted_weights * kept
        mass = kept_weights.sum(dim=0)
        mean = (kept_weights * ordered).sum(dim=0) / mass.clamp(min=torch.finfo(mass.dtype).tiny)
        return torch.where(mass > 0, mean.to(values.dtype), Median().of(values, weights))


def robust_mean(
    rule: RobustMean, values: Sequence[Tensor], inputs: Sequence[Contribution]
) -> Tensor:
    """The robust mean of what clients contribute to a block.

    Args:
        rule: the estimate.
        values: of each contribution, of equal shapes.
        inputs: the contributions, at least one.
    """
    counts = [c.reply.num_samples if rule.weighting == "samples" else 1 for c in inputs]
    weights = [c.weight * count for c, count in zip(inputs, counts, strict=True)]
    stacked = torch.stack(list(values))
    return rule.of(stacked, torch.tensor(weights, dtype=torch.float64, device=stacked.device))


def check_averaged(rule: RobustMean, objective: Objective, fusion: FusionRule) -> None:
    """Check that a robust mean can take the place of the mean.

    Args:
        rule: the estimate.
        objective: of local training.
        fusion: rule by which local posteriors are fused.

    Raises:
        ValueError: the models are not averaged, or not wholly sent.
    """
    needs = []
    if objective.reports_precision:
        needs.append(
            "models that are averaged: curvature must be 'samples' or 'uniform', got "
            f"{objective.curvature!r}, by which Gaussians are fused parameter by parameter"
        )
    if fusion != "precision_weighted":
        needs.append(f"fusion 'precision_weighted', got {fusion!r}")
    if objective.upload is not None:
        needs.append(f"all parameters of each client, got {objective.upload!r}")
    if needs:
        raise ValueError(f"a robust mean, {rule!r}, needs {'; and '.join(needs)}")


def _check_weighting(weighting: str) -> None:
    if weighting not in get_args(Weighting):
        raise ValueError(
            f"weighting must be one of {', '.join(get_args(Weighting))}, got {weighting!r}"
        )


def _ordered(values: Tensor, weights: Tensor) -> tuple[Tensor, Tensor]:
    """Values in ascending order per coordinate, float64, and the weights in that order."""
    ordered, order = values.double().sort(dim=0, stable=True)
    return ordered, weights.double()[order]
