"""Gaussians over a flat parameter vector in the structures that Laplace approximations use."""

from __future__ import annotations

import math
from dataclasses import dataclass
from typing import Protocol

import torch
from torch import Tensor

from posteriors.gaussians.gaussian import DiagonalGaussian


class Covariance(Protocol):
    """A covariance of network parameters that can be pushed through a linear map and sampled."""

    @property
    def indices(self) -> Tensor | None:
        """Places of the uncertain parameters in the flat vector; None for all of them."""
        ...

    def of_outputs(self, jacobians: Tensor) -> Tensor:
        """Covariance of linear maps of the uncertain parameters.

        Args:
            jacobians: The maps, (samples, outputs, uncertain).

        Returns:
            Covariances, (samples, outputs, outputs), float64.
        """
        ...

    def deviations(self, count: int, generator: torch.Generator) -> Tensor:
        """Draw deviations from the mean, (count, uncertain), float64."""
        ...

    def log_density(self, deviations: Tensor) -> Tensor:
        """Log density of deviations (count, uncertain): float64 nats, (count,)."""
        ...


@dataclass(frozen=True, eq=False)
class DiagonalCovariance:
    """Independent parameters.

    Attributes:
        precision: Inverse variances, positive, (uncertain,).
        indices: Places of the uncertain parameters in the flat vector; None for all of them.

    Raises:
        ValueError: If a precision isn't positive or the shape isn't (uncertain,).
    """

    precision: Tensor
    indices: Tensor | None = None

    def __post_init__(self) -> None:
        """Check shape and range."""
        if self.precision.ndim != 1 or not bool((self.precision > 0).all()):
            raise ValueError(
                f"precision must be positive numbers (uncertain,), got shape "
                f"{tuple(self.precision.shape)}, smallest {float(self.precision.min())}"
            )

    def of_outputs(self, jacobians: Tensor) -> Tensor:
        """Covariances (samples, outputs, outputs) of the maps (samples, outputs, uncertain)."""
        scaled = jacobians.double() * self.precision.double().rsqrt()
        return scaled @ scaled.transpose(1, 2)

    def deviations(self, count: int, generator: torch.Generator) -> Tensor:
        """Draw deviations from the mean, (count, uncertain), float64."""
        noise = standard_normal((count, len(self.precision)), generator, self.precision)
        return noise * self.precision.double().rsqrt()

    def log_density(self, deviations: Tensor) -> Tensor:
        """Log density of deviations (count, uncertain): float64 nats, (count,)."""
        centred = DiagonalGaussian(torch.zeros_like(self.precision), self.precision)
        return centred.log_density(deviations)


@dataclass(frozen=True, eq=False)
class DenseCovariance:
    """Jointly uncertain parameters, all or some; the others are known.

    Attributes:
        factor: Lower Cholesky factor of the inverse covariance, (uncertain, uncertain), float64.
        indices: Places of the uncertain parameters in the flat vector, (uncertain,).
    """

    factor: Tensor
    indices: Tensor

    @classmethod
    def from_precision(cls, precision: Tensor, indices: Tensor) -> DenseCovariance:
        """Factor an inverse covariance, symmetric and positive definite, (uncertain, uncertain).

        Raises:
            ValueError: If the shapes don't fit or the matrix isn't positive definite.
        """
        size = len(indices)
        if precision.shape != (size, size):
            raise ValueError(
                f"precision must have shape ({size}, {size}), got {tuple(precision.shape)}"
            )
        factor, failed = torch.linalg.cholesky_ex(precision.double())
        if int(failed) != 0:
            raise ValueError("precision must be positive definite, its Cholesky factor fails")
        return cls(factor, indices)

    def of_outputs(self, jacobians: Tensor) -> Tensor:
        """Covariances (samples, outputs, outputs) of the maps (samples, outputs, uncertain)."""
        flat = jacobians.double().flatten(0, 1)
        solved: Tensor = torch.linalg.solve_triangular(self.factor, flat.T, upper=False)
        scaled = solved.T.reshape(jacobians.shape)
        return scaled @ scaled.transpose(1, 2)

    def deviations(self, count: int, generator: torch.Generator) -> Tensor:
        """Draw deviations from the mean, (count, uncertain), float64."""
        noise = standard_normal((count, len(self.indices)), generator, self.factor)
        solved: Tensor = torch.linalg.solve_triangular(self.factor.T, noise.T, upper=True)
        return solved.T

    def log_density(self, deviations: Tensor) -> Tensor:
        """Log density of deviations (count, uncertain): float64 nats, (count,)."""
        whitened = deviations.double() @ self.factor
        log_scale = self.factor.diagonal().log().sum()
        normaliser = log_scale - 0.5 * len(self.indices) * math.log(2 * math.pi)
        return normaliser - 0.5 * whitened.square().sum(1)


@dataclass(frozen=True, eq=False)
class StructuredGaussian:
    """A Gaussian over network parameters, some of which may be known.

    Attributes:
        mean: Means, (parameters,).
        covariance: Covariance of the uncertain parameters.
    """

    mean: Tensor
    covariance: Covariance

    @classmethod
    def from_diagonal(cls, gaussian: DiagonalGaussian) -> StructuredGaussian:
        """The same Gaussian, for one vector (parameters,) of positive precision.

        Raises:
            ValueError: If a precision is zero or the mean has leading axes.
        """
        precision = gaussian.precision.expand(gaussian.mean.shape)
        return cls(gaussian.mean, DiagonalCovariance(precision))

    def sample(self, count: int, generator: torch.Generator) -> Tensor:
        """Draw parameter vectors, (count, parameters), in the dtype of the mean."""
        deviations = self.covariance.deviations(count, generator)
        indices = self.covariance.indices
        if indices is None:
            return (self.mean.double() + deviations).to(self.mean.dtype)
        vectors = self.mean.expand(count, -1).clone()
        vectors[:, indices] = (self.mean[indices].double() + deviations).to(self.mean.dtype)
        return vectors

    def log_density(self, vectors: Tensor) -> Tensor:
        """Log density in the uncertain parameters of (count, parameters): nats, (count,)."""
        deviations = vectors.double() - self.mean.double()
        indices = self.covariance.indices
        return self.covariance.log_density(
            deviations if indices is None else deviations[:, indices]
        )


def standard_normal(shape: tuple[int, ...], generator: torch.Generator, like: Tensor) -> Tensor:
    """Standard normal numbers drawn where the generator lives, float64, on the device of `like`."""
    noise = torch.randn(shape, generator=generator, dtype=torch.float64, device=generator.device)
    return noise.to(like.device)
