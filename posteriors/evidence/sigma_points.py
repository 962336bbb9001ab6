"""Log evidence by sigma points in a low-dimensional subspace of the parameters."""

from __future__ import annotations

import math
from dataclasses import dataclass

import torch
from torch import Tensor
from torch.func import grad, hessian

from posteriors.curvature.likelihood import LogLikelihood
from posteriors.gaussians.gaussian import DiagonalGaussian

NEWTON_STEPS = 30
"""Maximum number of Newton steps towards the mode in the subspace."""


@dataclass(frozen=True)
class SigmaPointEvidence:
    """A log evidence in a subspace.

    Attributes:
        log_evidence: Log evidence, nats.
        num_points: Number of sigma points, 2 x directions + 1.
        num_floored: Number of directions of positive curvature of the log likelihood, along which
            the points are spread as under the prior alone.
    """

    log_evidence: float
    num_points: int
    num_floored: int


def sharpest_directions(curvature: Tensor, prior: DiagonalGaussian, count: int) -> Tensor:
    """Parameter axes most constrained by the data: largest curvature / prior precision.

    Args:
        curvature: Diagonal curvature of the log likelihood, (parameters,).
        prior: Proper prior, (parameters,).
        count: Number of directions, between 1 and the number of parameters.

    Returns:
        Unit vectors, (count, parameters), in the dtype of the prior.

    Raises:
        ValueError: If shapes do not match or the count is out of range.
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
    """Log evidence in a subspace through the prior mean, by sigma points.

    With whitened coordinates z, standard normal in k dimensions, the parameters are mean +
    deviation x (z D). Newton's method finds the mode of the integrand in z; 2 k + 1 sigma points of
    the Laplace approximation there (Julier and Uhlmann, 1997, with centre weight max(3 - k, 0))
    average likelihood x prior / approximation. It is exact where the likelihood is Gaussian in z,
    and far cheaper than the 2 P + 1 points of the full parameter space.

    Args:
        log_likelihood: Summed log likelihood of a parameter vector, nats, twice differentiable.
        prior: Proper prior, (parameters,).
        directions: Orthonormal rows D, (k, parameters).
        temperature: Positive number by which the log likelihood is divided; 1 is Bayes' rule.

    Raises:
        ValueError: If directions are not orthonormal or the temperature is out of range.
    """
    _check(prior, directions, temperature)
    size = len(directions)
    mean, deviation = prior.mean.double(), prior.precision.double().rsqrt()
    spread = directions.double() * deviation

    def log_joint(point: Tensor) -> Tensor:
        value = log_likelihood(mean + point @ spread).double() / temperature
        return value - 0.5 * point.square().sum() - 0.5 * size * math.log(2 * math.pi)

    with torch.inference_mode(False), torch.enable_grad():
        mode = _maximise(log_joint, torch.zeros(size, dtype=torch.float64, device=mean.device))
        curvature = -hessian(log_joint)(mode).detach()
    values, vectors = torch.linalg.eigh(curvature)
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
    """Sigma points (2 k + 1, k) around the mode along the columns of `root`, and log weights."""
    size = len(mode)
    centre = max(3.0 - size, 0.0)
    steps = math.sqrt(size + centre) * root.T
    points = torch.cat([mode.unsqueeze(0), mode + steps, mode - steps])
    weights = torch.full((2 * size + 1,), 0.5, dtype=torch.float64, device=mode.device)
    weights[0] = centre
    return points, (weights / (size + centre)).log()


def _maximise(log_joint: LogLikelihood, point: Tensor) -> Tensor:
    """Newton's method with eigenvalues clamped to at least 1 and step halving."""
    value = log_joint(point).detach()
    for _ in range(NEWTON_STEPS):
        gradient = grad(log_joint)(point).detach()
        values, vectors = torch.linalg.eigh(-hessian(log_joint)(point).detach())
        step = vectors @ ((vectors.T @ gradient) / values.clamp(min=1.0))
        if float(gradient @ step) < 1e-16 * (1 + abs(float(value))):
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
