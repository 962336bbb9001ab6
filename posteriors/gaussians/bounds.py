"""Keeping precisions within stated bounds, with a count of what was changed."""

from __future__ import annotations

import math
from dataclasses import dataclass

from posteriors.gaussians.gaussian import DiagonalGaussian


@dataclass(frozen=True, eq=False)
class Bounded:
    """A posterior within bounds, and how many parameters had to be changed for it.

    Attributes:
        posterior: The Gaussian with every precision inside the bounds.
        num_floored: Parameters whose precision was raised.
        num_capped: Parameters whose precision was lowered.
    """

    posterior: DiagonalGaussian
    num_floored: int
    num_capped: int


def bound_precision(
    posterior: DiagonalGaussian, lowest: float = 0.0, highest: float = math.inf
) -> Bounded:
    """Raise or lower each precision into an interval; means stay.

    Where no parameter is outside, the posterior is the very object given.

    Args:
        posterior: Any diagonal Gaussian.
        lowest: Smallest precision allowed, at least 0.
        highest: Largest precision allowed, at least `lowest` and above 0.

    Raises:
        ValueError: If the bounds are no interval of that kind.
    """
    if not (0 <= lowest < math.inf and lowest <= highest and highest > 0):
        raise ValueError(
            "lowest and highest must be a finite number of at least 0 and a positive number not "
            f"below it, got {lowest} and {highest}"
        )
    precision = posterior.precision
    repeats = posterior.mean.numel() // precision.numel()
    num_floored = repeats * int((precision < lowest).sum())
    num_capped = repeats * int((precision > highest).sum())
    if num_floored or num_capped:
        posterior = DiagonalGaussian(posterior.mean, precision.clamp(min=lowest, max=highest))
    return Bounded(posterior, num_floored, num_capped)
