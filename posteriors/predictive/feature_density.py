"""Gaussian densities of a network's features, from sums that are additive over data holders."""

from __future__ import annotations

import math
from dataclasses import dataclass

import torch
from torch import Tensor

RIDGE = 1e-3
"""Share of the mean variance added to each variance; regularises constant features."""
ROUNDING = 1e-9
"""Variances below this share of the mean square are rounding errors of zero."""


@dataclass(frozen=True, eq=False)
class FeatureSums:
    """Sufficient statistics of a Gaussian density of features.

    Attributes:
        count: number of samples, possibly fractional.
        first: (features,) sum, float64.
        second: (features, features) sum of outer products, float64.
    """

    count: float
    first: Tensor
    second: Tensor

    @classmethod
    def of(cls, features: Tensor) -> FeatureSums:
        """Compute the sums.

        Args:
            features: (samples, features) floats.
        """
        rows = features.double()
        return cls(float(len(rows)), rows.sum(0), rows.T @ rows)

    def __add__(self, other: FeatureSums) -> FeatureSums:
        return FeatureSums(
            self.count + other.count, self.first + other.first, self.second + other.second
        )

    def __mul__(self, share: float) -> FeatureSums:
        return FeatureSums(share * self.count, share * self.first, share * self.second)

    @property
    def mean(self) -> Tensor:
        """(features,) mean, float64."""
        return self.first / self.count

    @property
    def mean_square(self) -> float:
        """Mean square over samples and features."""
        return float(self.second.diagonal().mean()) / self.count

    @property
    def scatter(self) -> Tensor:
        """(features, features) scatter matrix around the mean, float64."""
        return self.second - self.count * torch.outer(self.mean, self.mean)


@dataclass(frozen=True, eq=False)
class GaussianDensity:
    """A Gaussian with a full covariance.

    Attributes:
        mean: (features,) float64.
        factor: lower Cholesky factor of the covariance, (features, features), float64.
    """

    mean: Tensor
    factor: Tensor

    @classmethod
    def of(cls, sums: FeatureSums, towards: Tensor) -> GaussianDensity:
        """Fit to sums, with the covariance shrunk towards a given one.

        The covariance is the mean of an inverse Wishart posterior whose prior has the weight of as
        many samples as there are features (Gelman et al., 2013, "Bayesian data analysis", section
        3.6), up to the degrees of freedom of the mean.

        Args:
            sums: sums over at least one sample.
            towards: (features, features) shrinkage target, positive definite.
        """
        strength = len(towards)
        covariance = (sums.scatter + strength * towards) / (sums.count + strength)
        return cls(sums.mean, torch.linalg.cholesky(covariance))

    def log_density(self, features: Tensor) -> Tensor:
        """(samples,) log density in nats, float64.

        Args:
            features: (samples, features) floats.
        """
        deviations = features.double() - self.mean
        whitened = torch.linalg.solve_triangular(self.factor, deviations.T, upper=False)
        normaliser = self.factor.diagonal().log().sum() + len(self.mean) / 2 * math.log(2 * math.pi)
        nats: Tensor = -0.5 * whitened.square().sum(0) - normaliser
        return nats


def ridged(covariance: Tensor, mean_square: float = 0.0) -> Tensor:
    """Covariance with a share of its mean variance added to the diagonal.

    A covariance of zeros, of constant features, becomes the identity.

    Args:
        covariance: (features, features) covariance.
        mean_square: mean square of the features; variances at its rounding error count as zero.

    Returns:
        (features, features) positive definite covariance.
    """
    mean = float(covariance.diagonal().mean())
    added = RIDGE * mean if mean > ROUNDING * mean_square else 1.0
    return covariance + added * torch.eye(len(covariance), dtype=covariance.dtype).to(covariance)
