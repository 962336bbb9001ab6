"""Collapsing a mixture of Gaussians into one Gaussian."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np
import torch
from numpy.typing import ArrayLike, NDArray

from posteriors.gaussian import DiagonalGaussian


def merge(gaussians: Sequence[DiagonalGaussian], log_weights: ArrayLike) -> DiagonalGaussian:
    """Match mean and variance of a mixture by one Gaussian, squaring around the mixture's mean.

    A component given several times counts with its summed weight, and a mixture of a single
    component is that very object. Accumulates in float64, returns the dtype of the components.

    Args:
        gaussians: Components of equal shape, (..., parameters).
        log_weights: Log weights in nats, (components,), of any common offset; -inf drops one.

    Raises:
        ValueError: If there is no component of positive weight, numbers or shapes differ, a log
            weight is NaN or +inf, or one of several components has a zero precision.

    Source: "A Bayesian framework for clustered federated learning", equations 19 and 20.
    """
    weights = _normalise(len(gaussians), log_weights)
    components: dict[int, DiagonalGaussian] = {}
    totals: dict[int, float] = {}
    for gaussian, weight in zip(gaussians, weights, strict=True):
        if weight > 0:
            components[id(gaussian)] = gaussian
            totals[id(gaussian)] = totals.get(id(gaussian), 0.0) + float(weight)
    distinct = list(components.values())
    if len(distinct) == 1:
        return distinct[0]
    _check_several(distinct)
    return _match_moments(distinct, list(totals.values()))


def _normalise(count: int, log_weights: ArrayLike) -> NDArray[np.float64]:
    logs = np.asarray(log_weights, dtype=np.float64)
    if count == 0 or logs.shape != (count,):
        raise ValueError(
            f"log_weights must hold one number per Gaussian (at least one), "
            f"got shape {logs.shape} for {count}"
        )
    if np.isnan(logs).any() or logs.max() in (np.inf, -np.inf):
        raise ValueError(
            f"log_weights must be below +inf, not NaN and not all -inf, got {logs.tolist()}"
        )
    unscaled = np.exp(logs - logs.max())
    weights: NDArray[np.float64] = unscaled / unscaled.sum()
    return weights


def _check_several(gaussians: list[DiagonalGaussian]) -> None:
    first = gaussians[0].mean
    for gaussian in gaussians:
        if gaussian.mean.shape != first.shape:
            raise ValueError(
                f"gaussians must have equal shapes, got {tuple(first.shape)} "
                f"and {tuple(gaussian.mean.shape)}"
            )
        if not gaussian.is_proper:
            raise ValueError("gaussians must have positive precision to be merged with others")


def _match_moments(gaussians: list[DiagonalGaussian], weights: list[float]) -> DiagonalGaussian:
    mean = torch.zeros_like(gaussians[0].mean, dtype=torch.float64)
    for gaussian, weight in zip(gaussians, weights, strict=True):
        mean.add_(gaussian.mean.double(), alpha=weight)
    variance = torch.zeros_like(mean)
    for gaussian, weight in zip(gaussians, weights, strict=True):
        spread = (gaussian.mean.double() - mean).square()
        variance.add_(spread + gaussian.precision.double().reciprocal(), alpha=weight)
    dtype = gaussians[0].mean.dtype
    return DiagonalGaussian(mean.to(dtype), variance.reciprocal().to(dtype))
