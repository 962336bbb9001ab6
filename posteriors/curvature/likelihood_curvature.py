"""Curvatures of a log likelihood in several structures, to be combined with any prior."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Protocol

import torch
from torch import Tensor

from posteriors.gaussians.covariance import Covariance, DenseCovariance, DiagonalCovariance


class LikelihoodCurvature(Protocol):
    """Negative second derivative of a log likelihood, or its Gauss-Newton approximation."""

    @property
    def indices(self) -> Tensor | None:
        """Places of the uncertain parameters in the flat vector; None for all of them."""
        ...

    def diagonal(self) -> Tensor:
        """Diagonal in the uncertain parameters, (uncertain,), at least 0."""
        ...

    def under(self, prior_precision: Tensor) -> Covariance:
        """Posterior covariance under a prior of these precisions, (uncertain,), positive."""
        ...

    def log_determinant_ratio(self, prior_precision: Tensor) -> float:
        """Log of det(posterior precision) / det(prior precision), in nats, at least 0."""
        ...


@dataclass(frozen=True, eq=False)
class DiagonalCurvature:
    """Independent parameters.

    Attributes:
        values: Curvatures, at least 0, (uncertain,).
        indices: Places of the uncertain parameters in the flat vector; None for all of them.
    """

    values: Tensor
    indices: Tensor | None = None

    def diagonal(self) -> Tensor:
        """The curvatures, (uncertain,)."""
        return self.values

    def under(self, prior_precision: Tensor) -> DiagonalCovariance:
        """Posterior covariance under a prior of these precisions, (uncertain,), positive."""
        return DiagonalCovariance(prior_precision.double() + self.values.double(), self.indices)

    def log_determinant_ratio(self, prior_precision: Tensor) -> float:
        """Log of det(posterior precision) / det(prior precision), in nats."""
        return float(torch.log1p(self.values.double() / prior_precision.double()).sum())


@dataclass(frozen=True, eq=False)
class DenseCurvature:
    """A full matrix over all or some parameters; the others are known.

    Attributes:
        matrix: Curvature, symmetric and positive semi-definite, (uncertain, uncertain).
        indices: Places of the uncertain parameters in the flat vector, (uncertain,).
    """

    matrix: Tensor
    indices: Tensor

    def diagonal(self) -> Tensor:
        """Diagonal in the uncertain parameters, (uncertain,)."""
        return self.matrix.diagonal()

    def under(self, prior_precision: Tensor) -> DenseCovariance:
        """Posterior covariance under a prior of these precisions, (uncertain,), positive."""
        posterior = self.matrix.double() + torch.diag(prior_precision.double())
        return DenseCovariance.from_precision(posterior, self.indices)

    def log_determinant_ratio(self, prior_precision: Tensor) -> float:
        """Log of det(posterior precision) / det(prior precision), in nats."""
        scale = prior_precision.double().rsqrt()
        relative = self.matrix.double() * scale * scale.unsqueeze(1)
        relative.diagonal().add_(1.0)
        return float(torch.linalg.slogdet(relative).logabsdet)
