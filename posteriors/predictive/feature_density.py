"""Gaussian densities of a network's features, from sums that several data holders add up."""

from __future__ import annotations

import math
from dataclasses import dataclass

import torch
from torch import Tensor

RIDGE = 1e-3
"""Share of the mean variance that is added to every variance, so that dead features do no harm."""
ROUNDING = 1e-9
"""Variances below this share of the mean square are what rounding leaves of none."""


@dataclass(frozen=True, eq=False)
class FeatureSums:
    """Sums over the features of some samples: all that has to leave a data holder.

    Attributes:
        count: number of samples, possibly a share of some.
        first: (features,) sum, float64.
        second: (features, features) sum of outer products, float64.
    """

    count: float
    first: Tensor
    second: Tensor

    @classmethod
    def of(cls, features: Tensor) -> FeatureSums:
        """Of samples (samples, features)."""
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
        """(features,)."""
        return self.first / self.count

    @property
    def mean_square(self) -> float:
        """Over samples and features."""
        return float(self.second.diagonal().mean()) / self.count

    @property
    def scatter(self) -> Tensor:
        """(features, features) sum of squared deviations from the mean."""
        return self.second - self.count * torch.outer(self.mean, self.mean)


@dataclass(frozen=True, eq=False)
class GaussianDensity:
    """A Gaussian with a full covariance.

    Attributes:
        mean: (features,), float64.
        factor: lower Cholesky factor of the covariance, (features, features), float64.
    """

    mean: Tensor
    factor: Tensor

    @classmethod
    def of(cls, sums: FeatureSums, towards: Tensor) -> GaussianDensity:
        """Fit to sums, with a covariance that few samples leave near a given one.

        It is the mean of the inverse Wishart posterior whose prior counts as many samples as there
        are features (Gelman et al., 2013, "Bayesian data analysis", section 3.6), but for the
        samples that the mean itself costs.

        Args:
            sums: of at least one sample.
            towards: (features, features) covariance, positive definite.
        """
        strength = len(towards)
        covariance = (sums.scatter + strength * towards) / (sums.count + strength)
        return cls(sums.mean, torch.linalg.cholesky(covariance))

    def log_density(self, features: Tensor) -> Tensor:
        """Log density, (samples,), of features (samples, features), float64 nats."""
        deviations = features.double() - self.mean
        whitened = torch.linalg.solve_triangular(self.factor, deviations.T, upper=False)
        normaliser = self.factor.diagonal().log().sum() + len(self.mean) / 2 * math.log(2 * math.pi)
        nats: Tensor = -0.5 * whitened.square().sum(0) - normaliser
        return nats


def ridged(covariance: Tensor, mean_square: float = 0.0) -> Tensor:
    """A covariance (features, features) with a share of its mean variance on the diagonal.

    A covariance of zeros, of features that never differ, becomes the unit matrix.

    Args:
        covariance: (features, features).
        mean_square: of the features from whose sums it comes; what is rounding beside it is zero.
    """
    mean = float(covariance.diagonal().mean())
    added = RIDGE * mean if mean > ROUNDING * mean_square else 1.0
    return covariance + added * torch.eye(len(covariance), dtype=covariance.dtype).to(covariance)
