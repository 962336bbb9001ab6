"""Log evidence by a handful of points in a low-dimensional subspace of the parameters."""

from __future__ import annotations

import math
from dataclasses import dataclass

import torch
from torch import Tensor
from torch.func import grad, hessian

from posteriors.curvature.likelihood import LogLikelihood
from posteriors.gaussians.gaussian import DiagonalGaussian

NEWTON_STEPS = 30
"""Largest number of steps towards the mode in the subspace."""


@dataclass(frozen=True)
class SigmaPointEvidence:
    """A log evidence in a subspace.

    Attributes:
        log_evidence: Nats.
        num_points: Points at which the likelihood counted, 2 x directions + 1.
        num_floored: Directions in which the log likelihood curved upwards, so that the points were
            spread as the prior alone would.
    """

    log_evidence: float
    num_points: int
    num_floored: int


def sharpest_directions(curvature: Tensor, prior: DiagonalGaussian, count: int) -> Tensor:
    """The axes along which data say most: where curvature / prior precision is largest.

    Args:
        curvature: Diagonal curvature of the log likelihood, (parameters,).
        prior: Proper prior, (parameters,).
        count: Number of directions, between 1 and the number of parameters.

    Returns:
        Unit vectors, (count, parameters), in the dtype of the prior.

    Raises:
        ValueError: If shapes don't fit or the count is out of range.
    """
    if curvature.shape != prior.mean.shape or curvature.ndim != 1:
        raise ValueError(
            f"curvature must have the prior's shape {tuple(prior.mean.shape)}, one axis, "
            f"got {tuple(curvature.shape)}"
        )
    if not 1 <= count <= len(curvature):
        raise ValueError(f"count must be between 1 and {len(curvature)}, got {count}")
    prior.require_proper()
    ratio = curvature.double() / prior.precision.double()
    places = ratio.argsort(descending=True, stable=True)[:count]
    directions = torch.zeros(count, len(curvature), dtype=prior.mean.dtype, device=places.device)
    return directions.scatter_(1, places.unsqueeze(1), 1.0)


def sigma_point_log_evidence(
    log_likelihood: LogLikelihood,
    prior: DiagonalGaussian,
    directions: Tensor,
    temperature: float = 1.0,
) -> SigmaPointEvidence:
    """Integrate the likelihood over a few directions around the prior mean, the rest held there.

    In coordinates in which the prior is standard the parameters are mean + deviation x (z D), z
    standard normal in k dimensions. Newton steps find the mode of the integrand in z; 2 k + 1 sigma
    points of the Laplace approximation there (Julier and Uhlmann, 1997, with 3 - k, at least 0, as
    the weight of the centre) average likelihood x prior / approximation. It is exact where the
    likelihood is Gaussian in z, and by far cheaper than the 2 P + 1 points of the whole space.

    Args:
        log_likelihood: Summed log likelihood of a parameter vector, nats, twice differentiable.
        prior: Proper prior, (parameters,).
        directions: Orthonormal rows D, (k, parameters).
        temperature: Positive number by which the log likelihood is divided; 1 is Bayes' rule.

    Raises:
        ValueError: If directions aren't orthonormal or the temperature is out of range.
    """
    _check(prior, directions, temperature)
    size = len(directions)
    mean, deviation = prior.mean.double(), prior.precision.double().rsqrt()
    spread = directions.double() * deviation

    def log_joint(point: Tensor) -> Tensor:
        value = log_likelihood(mean + point @ spread).double() / temperature
        return value - 0.5 * point.square().sum() - 0.5 * size * math.log(2 * math.pi)

    with torch.inference_mode(False), torch.enable_grad():
        mode = _climb(log_joint, torch.zeros(size, dtype=torch.float64, device=mean.device))
        bend = hessian(log_joint)(mode).detach()
    values, vectors = torch.linalg.eigh(-bend)
    floored = values < 1 - 1e-9
    values = values.clamp(min=1.0)
    points, log_weights = _sigma_points(mode, vectors * values.rsqrt())
    with torch.no_grad():
        joint = torch.stack([log_joint(point) for point in points])
    whitened = (points - mode) @ vectors * values.sqrt()
    constant = 0.5 * values.log().sum() - 0.5 * size * math.log(2 * math.pi)
    ratios = joint - (constant - 0.5 * whitened.square().sum(1))
    total = float((ratios + log_weights).logsumexp(0))
    return SigmaPointEvidence(total, len(points), int(floored.sum()))


def _sigma_points(mode: Tensor, root: Tensor) -> tuple[Tensor, Tensor]:
    """Points (2 k + 1, k) around the mode along the columns of a root, and their log weights."""
    size = len(mode)
    centre = max(3.0 - size, 0.0)
    steps = math.sqrt(size + centre) * root.T
    points = torch.cat([mode.unsqueeze(0), mode + steps, mode - steps])
    weights = torch.full((2 * size + 1,), 0.5, dtype=torch.float64, device=mode.device)
    weights[0] = centre
    return points, (weights / (size + centre)).log()


def _climb(log_joint: LogLikelihood, point: Tensor) -> Tensor:
    """Newton's method with eigenvalues kept at 1 or above, halving steps that don't climb."""
    value = log_joint(point).detach()
    for _ in range(NEWTON_STEPS):
        slope = grad(log_joint)(point).detach()
        values, vectors = torch.linalg.eigh(-hessian(log_joint)(point).detach())
        step = vectors @ ((vectors.T @ slope) / values.clamp(min=1.0))
        if float(slope @ step) < 1e-16 * (1 + abs(float(value))):
            break
        while float(step.abs().max()) > 1e-14:
            candidate = log_joint(point + step).detach()
            if bool(candidate >= value):
                point, value = point + step, candidate
                break
            step = step / 2
        else:
            break
    return point


def _check(prior: DiagonalGaussian, directions: Tensor, temperature: float) -> None:
    prior.require_proper()
    if directions.ndim != 2 or directions.shape[1:] != prior.mean.shape or len(directions) == 0:
        raise ValueError(
            f"directions must have shape (k, {prior.num_parameters}) with at least one row, "
            f"got {tuple(directions.shape)}"
        )
    product = directions.double() @ directions.double().T
    identity = torch.eye(len(directions), dtype=torch.float64, device=product.device)
    if not bool(((product - identity).abs() < 1e-5).all()):
        raise ValueError("directions must be orthonormal rows")
    if not (math.isfinite(temperature) and temperature > 0):
        raise ValueError(f"temperature must be positive and finite, got {temperature}")
