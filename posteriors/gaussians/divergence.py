"""Divergence between diagonal Gaussians, in float64 nats."""

from __future__ import annotations

from torch import Tensor

from posteriors.gaussians.gaussian import DiagonalGaussian


def kl(p: DiagonalGaussian, q: DiagonalGaussian) -> Tensor:
    """Kullback-Leibler divergence KL(p || q), the expectation of log p - log q under `p`.

    Args:
        p: First Gaussian, (..., parameters).
        q: Second Gaussian; leading axes broadcast.

    Returns:
        Divergence in nats, (...), float64, at least 0 up to rounding.

    Raises:
        ValueError: If a precision is zero or the numbers of parameters differ.
    """
    _check_pair(p, q)
    ratio = q.precision.double() / p.precision.double()
    distance = q.precision.double() * (p.mean.double() - q.mean.double()).square()
    return 0.5 * (ratio - 1 - ratio.log() + distance).sum(-1)


def _check_pair(p: DiagonalGaussian, q: DiagonalGaussian) -> None:
    if p.num_parameters != q.num_parameters:
        raise ValueError(
            f"p and q must have as many parameters, got {p.num_parameters} and {q.num_parameters}"
        )
    p.require_proper()
    q.require_proper()
