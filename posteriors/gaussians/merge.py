"""Collapse of a Gaussian mixture to one Gaussian, by three named rules."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Literal, get_args

import numpy as np
import torch
from numpy.typing import ArrayLike, NDArray
from torch import Tensor

from posteriors.gaussians.gaussian import DiagonalGaussian

MergeRule = Literal["moment_matched", "reverse_kl", "wasserstein"]


def merge(gaussians: Sequence[DiagonalGaussian], log_weights: ArrayLike) -> DiagonalGaussian:
    """Collapse a mixture to the Gaussian with its mean and variances (moment matching).

    A component given several times has its summed weight; a mixture of a single component is
    returned as that object. Accumulates in float64, returns the dtype of the components.

    Args:
        gaussians: Components of equal shape, (..., parameters).
        log_weights: Log weights in nats, (components,), of any common offset; -inf drops one.

    Returns:
        The Gaussian, (..., parameters).

    Raises:
        ValueError: If there is no component of positive weight, numbers or shapes differ, a log
            weight is NaN or +inf, or one of several components has a zero precision.

    References:
        "A Bayesian framework for clustered federated learning", equations 19 and 20.

    Example:
        >>> import torch
        >>> from posteriors import DiagonalGaussian, merge
        >>> parts = [DiagonalGaussian(torch.tensor([m]), torch.tensor([1.0])) for m in (-1.0, 1.0)]
        >>> merged = merge(parts, [0.0, 0.0])
        >>> merged.mean, merged.variance
        (tensor([0.]), tensor([2.]))
    """
    return merge_by("moment_matched", gaussians, log_weights)


def merge_by(
    rule: MergeRule, gaussians: Sequence[DiagonalGaussian], log_weights: ArrayLike
) -> DiagonalGaussian:
    """Collapse a mixture to one Gaussian by a named criterion.

    With w_i the weights, m_i the means, P_i the precisions and S_i = 1/P_i the variances:

    - `moment_matched`: mean Σ w_i m_i, variance Σ w_i (S_i + (m_i - mean)²), that of the mixture
      (arithmetic pool); minimises Σ w_i KL(i || q). Mass-covering.
    - `reverse_kl`: precision Σ w_i P_i, mean Σ w_i P_i m_i / Σ w_i P_i, the geometric mixture
      (logarithmic pool); minimises Σ w_i KL(q || i). Mode-seeking.
    - `wasserstein`: mean Σ w_i m_i, deviation Σ w_i sqrt(S_i), the barycentre in the
      2-Wasserstein distance (Agueh and Carlier, 2011, section 6.3). Ignores the variance of means.

    A component given several times has its summed weight; a mixture of a single component is
    returned as that object. Accumulates in float64, returns the dtype of the components.

    Args:
        rule: Name of the rule.
        gaussians: Components of equal shape, (..., parameters).
        log_weights: Log weights in nats, (components,), of any common offset; -inf drops one.

    Raises:
        ValueError: If the rule is unknown, there is no component of positive weight, numbers or
            shapes differ, a log weight is NaN or +inf, or one of several components has a zero
            precision.
    """
    if rule not in get_args(MergeRule):
        raise ValueError(f"rule must be one of {', '.join(get_args(MergeRule))}, got {rule!r}")
    distinct, weights = _distinct(gaussians, log_weights)
    if len(distinct) == 1:
        return distinct[0]
    _check_several(distinct)
    if rule == "moment_matched":
        return _match_moments(distinct, weights)
    if rule == "reverse_kl":
        return _pool_logarithms(distinct, weights)
    return _wasserstein_barycentre(distinct, weights)


def _distinct(
    gaussians: Sequence[DiagonalGaussian], log_weights: ArrayLike
) -> tuple[list[DiagonalGaussian], list[float]]:
    """Distinct components of positive weight with their summed weights."""
    components: dict[int, DiagonalGaussian] = {}
    totals: dict[int, float] = {}
    weights = _normalise(len(gaussians), log_weights)
    for gaussian, weight in zip(gaussians, weights, strict=True):
        if weight > 0:
            components[id(gaussian)] = gaussian
            totals[id(gaussian)] = totals.get(id(gaussian), 0.0) + float(weight)
    return list(components.values()), list(totals.values())


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
    mean = _weighted_mean(gaussians, weights)
    variance = torch.zeros_like(mean)
    for gaussian, weight in zip(gaussians, weights, strict=True):
        spread = (gaussian.mean.double() - mean).square()
        variance.add_(spread + gaussian.precision.double().reciprocal(), alpha=weight)
    return _in_dtype_of(gaussians, mean, variance.reciprocal())


def _pool_logarithms(gaussians: list[DiagonalGaussian], weights: list[float]) -> DiagonalGaussian:
    precision = torch.zeros_like(gaussians[0].mean, dtype=torch.float64)
    for gaussian, weight in zip(gaussians, weights, strict=True):
        precision.add_(gaussian.precision.double(), alpha=weight)
    mean = torch.zeros_like(precision)
    for gaussian, weight in zip(gaussians, weights, strict=True):
        share = weight * gaussian.precision.double() / precision
        mean.addcmul_(share, gaussian.mean.double())
    return _in_dtype_of(gaussians, mean, precision)


def _wasserstein_barycentre(
    gaussians: list[DiagonalGaussian], weights: list[float]
) -> DiagonalGaussian:
    deviation = torch.zeros_like(gaussians[0].mean, dtype=torch.float64)
    for gaussian, weight in zip(gaussians, weights, strict=True):
        deviation.add_(gaussian.precision.double().rsqrt(), alpha=weight)
    mean = _weighted_mean(gaussians, weights)
    return _in_dtype_of(gaussians, mean, deviation.square().reciprocal())


def _weighted_mean(gaussians: list[DiagonalGaussian], weights: list[float]) -> Tensor:
    mean = torch.zeros_like(gaussians[0].mean, dtype=torch.float64)
    for gaussian, weight in zip(gaussians, weights, strict=True):
        mean.add_(gaussian.mean.double(), alpha=weight)
    return mean


def _in_dtype_of(
    gaussians: list[DiagonalGaussian], mean: Tensor, precision: Tensor
) -> DiagonalGaussian:
    """Of proper components the merged one is proper: no precision rounds to zero."""
    dtype = gaussians[0].mean.dtype
    rounded = precision.to(dtype)
    rounded.masked_fill_(rounded == 0, torch.finfo(dtype).tiny)
    return DiagonalGaussian(mean.to(dtype), rounded)
