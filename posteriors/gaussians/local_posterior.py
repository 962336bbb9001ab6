"""Local posteriors, in the form in which they are fused."""

from __future__ import annotations

import math
from dataclasses import dataclass

from torch import Tensor

from posteriors.checks import (
    require_broadcastable,
    require_finite,
    require_float,
    require_non_negative,
)
from posteriors.gaussians.gaussian import DiagonalGaussian


@dataclass(frozen=True, eq=False, kw_only=True)
class LocalPosterior:
    """Local posterior of one data holder: trained parameters and curvature of its likelihood.

    Attributes:
        mean: Trained parameters, (..., parameters), float32 or float64.
        curvature: Precision of the likelihood alone (summed over the local samples, without the
            prior), at least 0, broadcastable to `mean`.
        used: Prior of the local training; None for the prior given to `fuse`.
        num_samples: Number of local samples, at least 1.
        weight: Exponent of the local factor, at least 0 (soft membership).

    Raises:
        TypeError: If a tensor is not float32 or float64.
        ValueError: If a shape does not match or a value is out of range.
    """

    mean: Tensor
    curvature: Tensor
    used: DiagonalGaussian | None
    num_samples: int
    weight: float = 1.0

    def __post_init__(self) -> None:
        """Check dtypes, shapes and ranges."""
        require_float("mean", self.mean)
        require_float("curvature", self.curvature)
        require_broadcastable("curvature", self.curvature, self.mean)
        require_finite("mean", self.mean)
        require_non_negative("curvature", self.curvature)
        if self.used is not None and self.used.mean.shape != self.mean.shape:
            raise ValueError(
                f"used must have the mean's shape {tuple(self.mean.shape)}, "
                f"got {tuple(self.used.mean.shape)}"
            )
        if self.num_samples < 1:
            raise ValueError(f"num_samples must be at least 1, got {self.num_samples}")
        if not (math.isfinite(self.weight) and self.weight >= 0):
            raise ValueError(f"weight must be finite and at least 0, got {self.weight}")


def likelihood_factor(local: LocalPosterior, used: DiagonalGaussian) -> tuple[Tensor, Tensor]:
    """Natural parameters of a local posterior divided by the prior of its training.

    Args:
        local: Local posterior with mean m and curvature F, (..., parameters).
        used: Prior with mean m_used and precision Λ_used.

    Returns:
        Precision F and shift (Λ_used + F) m - Λ_used m_used, float64, without the weight.
    """
    curvature, sent = local.curvature.double(), used.precision.double()
    mean = local.mean.double()
    return curvature, curvature * mean + sent * (mean - used.mean.double())
