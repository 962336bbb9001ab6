"""Diagonal Gaussian posteriors over a flat vector of network parameters, in information form."""

from __future__ import annotations

import math
from dataclasses import dataclass

import torch
from torch import Tensor

from posteriors.checks import (
    require_broadcastable,
    require_finite,
    require_float,
    require_non_negative,
)


@dataclass(frozen=True, eq=False, repr=False)
class DiagonalGaussian:
    """A Gaussian with diagonal covariance, stored as mean and precision.

    A zero precision is an improper flat factor: such a Gaussian can be fused and carried to the
    next round, but has no density, sample, entropy or divergence. Values are immutable and compared
    by identity, so that hypotheses can share one object.

    Attributes:
        mean: Mean, (..., parameters), float32 or float64.
        precision: Inverse variances, at least 0, of the same dtype and device, broadcastable to
            `mean`. A scalar, shape () or (1,), is an isotropic Gaussian and is stored as such.

    Raises:
        TypeError: If a tensor is not floating-point, or the two differ in dtype or device.
        ValueError: If shapes do not match, the mean is not finite, or the precision is negative or
            not finite.

    Example:
        >>> import torch
        >>> from posteriors import DiagonalGaussian
        >>> gaussian = DiagonalGaussian(torch.zeros(3), torch.tensor([1.0, 2.0, 4.0]))
        >>> gaussian.variance
        tensor([1.0000, 0.5000, 0.2500])
    """

    mean: Tensor
    precision: Tensor

    def __post_init__(self) -> None:
        """Check dtypes, shapes and ranges."""
        require_float("mean", self.mean)
        require_float("precision", self.precision)
        if (self.mean.dtype, self.mean.device) != (self.precision.dtype, self.precision.device):
            raise TypeError(
                "mean and precision must share dtype and device, got "
                f"{self.mean.dtype} on {self.mean.device} and "
                f"{self.precision.dtype} on {self.precision.device}"
            )
        if self.mean.ndim == 0 or self.mean.numel() == 0:
            raise ValueError(
                f"mean must have shape (..., parameters) with at least one parameter, "
                f"got {tuple(self.mean.shape)}"
            )
        require_broadcastable("precision", self.precision, self.mean)
        require_finite("mean", self.mean)
        require_non_negative("precision", self.precision)

    @classmethod
    def isotropic(cls, mean: Tensor, precision: float) -> DiagonalGaussian:
        """Build a Gaussian with the same precision for all parameters, stored as a scalar.

        Args:
            mean: Mean, (..., parameters), float32 or float64.
            precision: Inverse variance, at least 0.

        Raises:
            TypeError: If the mean is not float32 or float64.
            ValueError: If the mean is not finite, or the precision is negative or not finite.
        """
        require_float("mean", mean)
        return cls(mean, torch.tensor(precision, dtype=mean.dtype, device=mean.device))

    @property
    def num_parameters(self) -> int:
        """Number of parameters, the length of the last axis."""
        return self.mean.shape[-1]

    @property
    def variance(self) -> Tensor:
        """Variances of the shape of `precision`; infinite where the precision is zero."""
        return self.precision.reciprocal()

    @property
    def shift(self) -> Tensor:
        """Natural parameter of the mean, which is precision times mean, (..., parameters)."""
        return self.precision * self.mean

    @property
    def is_proper(self) -> bool:
        """Whether every precision is positive."""
        return bool((self.precision > 0).all())

    def log_density(self, x: Tensor) -> Tensor:
        """Log density.

        Args:
            x: Parameter vectors, (..., parameters).

        Returns:
            Log densities in nats, (...), float64.

        Raises:
            ValueError: If a precision is zero.
        """
        self.require_proper()
        mean, precision = self.mean.double(), self.precision.double()
        nats = precision.log() - precision * (x.double() - mean).square() - math.log(2 * math.pi)
        return 0.5 * nats.sum(-1)

    def entropy(self) -> Tensor:
        """Differential entropy in nats, (...), float64.

        Raises:
            ValueError: If a precision is zero.
        """
        self.require_proper()
        nats = math.log(2 * math.pi * math.e) - self.precision.double().log()
        return 0.5 * nats.expand(self.mean.shape).sum(-1)

    def sample(self, generator: torch.Generator, shape: tuple[int, ...] = ()) -> Tensor:
        """Draw parameter vectors.

        Args:
            generator: Source of randomness, on the device of the mean.
            shape: Leading axes of the result.

        Returns:
            Vectors, (*shape, ..., parameters), in the dtype of the mean.

        Raises:
            ValueError: If a precision is zero.
        """
        self.require_proper()
        noise = torch.randn(
            *shape,
            *self.mean.shape,
            generator=generator,
            dtype=self.mean.dtype,
            device=self.mean.device,
        )
        return self.mean + noise * self.precision.rsqrt()

    def require_proper(self) -> None:
        """Check that the Gaussian has a density.

        Raises:
            ValueError: If a precision is zero.
        """
        if not self.is_proper:
            count = int((self.precision == 0).expand(self.mean.shape).sum())
            raise ValueError(
                f"precision is zero for {count} parameters: a flat Gaussian has no density, "
                "sample, entropy or divergence"
            )

    def __repr__(self) -> str:
        low, high = (float(edge) for edge in self.precision.aminmax())
        batch = f"batch {tuple(self.mean.shape[:-1])}, " if self.mean.ndim > 1 else ""
        spread = f"{low:.4g}" if low == high else f"{low:.4g} to {high:.4g}"
        dtype = str(self.mean.dtype).removeprefix("torch.")
        size = f"{batch}{self.num_parameters} parameters"
        return f"DiagonalGaussian({size}, precision {spread}, {dtype})"
