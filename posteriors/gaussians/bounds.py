"""Clamping of precisions to an interval, with counts of the clamped parameters."""

from __future__ import annotations

import math
from dataclasses import dataclass

from posteriors.gaussians.gaussian import DiagonalGaussian


@dataclass(frozen=True, eq=False)
class Bounded:
    """A Gaussian with clamped precisions.

    Attributes:
        posterior: Gaussian with every precision inside the bounds.
        num_floored: Number of parameters whose precision was raised.
        num_capped: Number of parameters whose precision was lowered.
    """

    posterior: DiagonalGaussian
    num_floored: int
    num_capped: int


def bound_precision(
    posterior: DiagonalGaussian, lowest: float = 0.0, highest: float = math.inf
) -> Bounded:
    """Clamp each precision to an interval and keep the means.

    A posterior already within the bounds is returned as the same object.

    Args:
        posterior: Diagonal Gaussian, (..., parameters).
        lowest: Lower bound of the precision, at least 0.
        highest: Upper bound of the precision, at least `lowest` and above 0.

    Returns:
        The clamped Gaussian and the number of clamped parameters.

    Raises:
        ValueError: If the bounds are not such an interval.
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
