"""Gaussians over a flat parameter vector with diagonal or dense covariance of a subset."""

from __future__ import annotations

import math
from dataclasses import dataclass
from typing import Protocol

import torch
from torch import Tensor

from posteriors.gaussians.gaussian import DiagonalGaussian


class Covariance(Protocol):
    """Covariance of the uncertain parameters of a network."""

    @property
    def indices(self) -> Tensor | None:
        """Indices of the uncertain parameters in the flat vector, int64; None for all."""
        ...

    def of_outputs(self, jacobians: Tensor) -> Tensor:
        """Covariance of linear functions of the uncertain parameters.

        Args:
            jacobians: Jacobians of the functions, (samples, outputs, uncertain).

        Returns:
            Covariances, (samples, outputs, outputs), float64.
        """
        ...

    def deviations(self, count: int, generator: torch.Generator) -> Tensor:
        """Draw deviations from the mean.

        Args:
            count: Number of draws.
            generator: Source of randomness.

        Returns:
            Deviations, (count, uncertain), float64.
        """
        ...

    def log_density(self, deviations: Tensor) -> Tensor:
        """Log density of deviations from the mean.

        Args:
            deviations: Deviations, (count, uncertain).

        Returns:
            Log densities in nats, (count,), float64.
        """
        ...


@dataclass(frozen=True, eq=False)
class DiagonalCovariance:
    """Diagonal covariance.

    Attributes:
        precision: Inverse variances, positive, (uncertain,).
        indices: Indices of the uncertain parameters in the flat vector, (uncertain,), int64; None
            for all parameters.

    Raises:
        ValueError: If a precision is not positive or the shape is not (uncertain,).
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
        """See `Covariance.of_outputs`."""
        scaled = jacobians.double() * self.precision.double().rsqrt()
        return scaled @ scaled.transpose(1, 2)

    def deviations(self, count: int, generator: torch.Generator) -> Tensor:
        """See `Covariance.deviations`."""
        noise = standard_normal((count, len(self.precision)), generator, self.precision)
        return noise * self.precision.double().rsqrt()

    def log_density(self, deviations: Tensor) -> Tensor:
        """See `Covariance.log_density`."""
        centred = DiagonalGaussian(torch.zeros_like(self.precision), self.precision)
        return centred.log_density(deviations)


@dataclass(frozen=True, eq=False)
class DenseCovariance:
    """Dense covariance of all or some parameters; the others are known exactly.

    Attributes:
        factor: Lower Cholesky factor of the inverse covariance, (uncertain, uncertain), float64.
        indices: Indices of the uncertain parameters in the flat vector, (uncertain,), int64.
    """

    factor: Tensor
    indices: Tensor

    @classmethod
    def from_precision(cls, precision: Tensor, indices: Tensor) -> DenseCovariance:
        """Build from an inverse covariance by Cholesky factorisation.

        Args:
            precision: Symmetric positive definite matrix, (uncertain, uncertain).
            indices: Indices of the uncertain parameters in the flat vector, (uncertain,), int64.

        Raises:
            ValueError: If shapes do not match or the matrix is not positive definite.
        """
        size = len(indices)
        if precision.shape != (size, size):
            raise ValueError(
                f"precision must have shape ({size}, {size}), got {tuple(precision.shape)}"
            )
        factor, failed = torch.linalg.cholesky_ex(precision.double())
        if int(failed) != 0:
            raise ValueError(
                "precision must be positive definite, its Cholesky factorisation failed"
            )
        return cls(factor, indices)

    def of_outputs(self, jacobians: Tensor) -> Tensor:
        """See `Covariance.of_outputs`."""
        flat = jacobians.double().flatten(0, 1)
        solved: Tensor = torch.linalg.solve_triangular(self.factor, flat.T, upper=False)
        scaled = solved.T.reshape(jacobians.shape)
        return scaled @ scaled.transpose(1, 2)

    def deviations(self, count: int, generator: torch.Generator) -> Tensor:
        """See `Covariance.deviations`."""
        noise = standard_normal((count, len(self.indices)), generator, self.factor)
        solved: Tensor = torch.linalg.solve_triangular(self.factor.T, noise.T, upper=True)
        return solved.T

    def log_density(self, deviations: Tensor) -> Tensor:
        """See `Covariance.log_density`."""
        whitened = deviations.double() @ self.factor
        log_scale = self.factor.diagonal().log().sum()
        normaliser = log_scale - 0.5 * len(self.indices) * math.log(2 * math.pi)
        return normaliser - 0.5 * whitened.square().sum(1)


@dataclass(frozen=True, eq=False)
class StructuredGaussian:
    """A Gaussian over network parameters, some of which may be known exactly.

    Attributes:
        mean: Mean, (parameters,).
        covariance: Covariance of the uncertain parameters.
    """

    mean: Tensor
    covariance: Covariance

    @classmethod
    def from_diagonal(cls, gaussian: DiagonalGaussian) -> StructuredGaussian:
        """Convert a diagonal Gaussian over one parameter vector.

        Args:
            gaussian: Gaussian with mean (parameters,) and positive precision.

        Raises:
            ValueError: If a precision is zero or the mean has leading axes.
        """
        precision = gaussian.precision.expand(gaussian.mean.shape)
        return cls(gaussian.mean, DiagonalCovariance(precision))

    def sample(self, count: int, generator: torch.Generator) -> Tensor:
        """Draw parameter vectors.

        Args:
            count: Number of draws.
            generator: Source of randomness.

        Returns:
            Vectors, (count, parameters), in the dtype of the mean.
        """
        deviations = self.covariance.deviations(count, generator)
        indices = self.covariance.indices
        if indices is None:
            return (self.mean.double() + deviations).to(self.mean.dtype)
        vectors = self.mean.expand(count, -1).clone()
        vectors[:, indices] = (self.mean[indices].double() + deviations).to(self.mean.dtype)
        return vectors

    def log_density(self, vectors: Tensor) -> Tensor:
        """Log density over the uncertain parameters.

        Args:
            vectors: Parameter vectors, (count, parameters).

        Returns:
            Log densities in nats, (count,), float64.
        """
        deviations = vectors.double() - self.mean.double()
        indices = self.covariance.indices
        return self.covariance.log_density(
            deviations if indices is None else deviations[:, indices]
        )


def standard_normal(shape: tuple[int, ...], generator: torch.Generator, like: Tensor) -> Tensor:
    """Draw standard normal numbers on the device of the generator and move them.

    Args:
        shape: Shape of the result.
        generator: Source of randomness.
        like: Tensor on the target device.

    Returns:
        float64 numbers on the device of `like`.
    """
    noise = torch.randn(shape, generator=generator, dtype=torch.float64, device=generator.device)
    return noise.to(like.device)
