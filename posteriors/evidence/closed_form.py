"""Log association weights and quadratic log evidence, in float64 nats."""

from __future__ import annotations

from numbers import Real
from typing import Literal

import numpy as np
from numpy.typing import ArrayLike, NDArray
from torch import Tensor

Temperature = float | Literal["mean"]


def log_association_weight(
    losses_sum: ArrayLike | Tensor, num_samples: ArrayLike | Tensor, temperature: Temperature
) -> NDArray[np.float64]:
    """Log association weight of each data set with each model, from the loss at the mean.

    The evidence is approximated by the likelihood at the mean ("A Bayesian framework for clustered
    federated learning", equation 9 with N = 1) and tempered: `"mean"` divides the summed loss by
    the number of samples (the average training loss of that paper, nearly uniform weights); a
    number T divides by T, and T = 1 is Bayes' rule.

    Args:
        losses_sum: Negative log likelihoods summed over samples, in nats, (..., models).
            +inf excludes a model.
        num_samples: Number of samples per data set, positive: one number, one per leading index
            (...), or an array broadcastable to `losses_sum` with as many axes.
        temperature: `"mean"` or a positive number.

    Returns:
        Unnormalised log weights in nats, float64, in the shape of `losses_sum`.

    Raises:
        ValueError: If the temperature is not `"mean"` or positive and finite, or so small that a
            weight overflows, a loss is NaN or -inf, a number of samples is not positive, or shapes
            do not match.
    """
    losses = _float64(losses_sum)
    if np.isnan(losses).any() or np.isneginf(losses).any():
        raise ValueError("losses_sum must hold numbers or +inf, found NaN or -inf")
    counts = _counts_like(losses, _float64(num_samples))
    if isinstance(temperature, str) and temperature == "mean":
        return -losses / counts
    if not _is_positive(temperature):
        raise ValueError(
            f"temperature must be 'mean' or a positive, finite number, got {temperature!r}"
        )
    with np.errstate(over="ignore"):
        weights = -losses / temperature
    if (np.isinf(weights) & np.isfinite(losses)).any():
        raise ValueError(f"temperature {temperature} is too small for these losses: overflow")
    return weights


def _is_positive(value: object) -> bool:
    """Whether it is a positive, finite number, also one that an array holds."""
    if isinstance(value, np.ndarray) and value.ndim == 0:
        value = value.item()
    return isinstance(value, Real) and 0 < float(value) < float("inf")


def quadratic_log_evidence(
    log_likelihood: ArrayLike | Tensor,
    gradient: ArrayLike | Tensor,
    curvature: ArrayLike | Tensor,
    prior_precision: ArrayLike | Tensor,
) -> np.float64 | NDArray[np.float64]:
    """Log evidence under a Gaussian prior from a quadratic expansion of the log likelihood.

    With log likelihood ll, gradient G and negative second derivative H at the prior's mean, and
    prior precision Λ: ll + Σ G² / (Λ + H) / 2 - Σ log(1 + H/Λ) / 2. It is exact for linear-Gaussian
    models. For data sets that share a model, sum their log likelihoods, gradients and curvatures
    first: the result is their joint evidence, which is not the sum of the individual ones.

    Args:
        log_likelihood: Summed log likelihood at the prior's mean, nats, (...).
        gradient: Gradient of the log likelihood (not of the loss) there, (..., parameters).
        curvature: Diagonal of its negative Hessian or of the generalised Gauss-Newton matrix, at
            least 0, broadcastable to (..., parameters).
        prior_precision: Prior precision, positive, broadcastable to (..., parameters).

    Returns:
        Log evidence in nats, (...), float64.

    Raises:
        ValueError: If a value is out of range or not finite, so large that the evidence overflows,
            or shapes do not match.
    """
    value, first = _float64(log_likelihood), _float64(gradient)
    second, prior = _float64(curvature), _float64(prior_precision)
    named = (("log_likelihood", value), ("gradient", first), ("curvature", second))
    for name, array in (*named, ("prior_precision", prior)):
        if not np.isfinite(array).all():
            raise ValueError(f"{name} must be finite")
    if first.ndim == 0:
        raise ValueError("gradient must have shape (..., parameters), got a single number")
    if (second < 0).any():
        raise ValueError(f"curvature must be at least 0, smallest is {second.min()}")
    if (prior <= 0).any():
        raise ValueError(f"prior_precision must be positive, smallest is {prior.min()}")
    first, second, prior = np.broadcast_arrays(first, second, prior)
    with np.errstate(over="ignore", invalid="ignore"):
        gain = first**2 / (prior + second) - np.log1p(second / prior)
        if not np.isfinite(gain).all():  # of intermediate results alone, it may be
            spread = np.where(second < 1.0, np.log1p(second / prior), np.log(second + prior))
            spread = np.where(second < 1.0, spread, spread - np.log(prior))
            gain = first * (first / (prior + second)) - spread
        result: np.float64 | NDArray[np.float64] = value + 0.5 * gain.sum(axis=-1)
    if not np.isfinite(result).all():
        raise ValueError("gradient and curvature are so large that the log evidence overflows")
    return result


def _float64(values: ArrayLike | Tensor) -> NDArray[np.float64]:
    if isinstance(values, Tensor):
        values = values.detach().cpu().numpy()
    return np.asarray(values, dtype=np.float64)


def _counts_like(losses: NDArray[np.float64], counts: NDArray[np.float64]) -> NDArray[np.float64]:
    if counts.ndim == losses.ndim - 1 and counts.shape == losses.shape[:-1]:
        counts = counts[..., np.newaxis]
    fits = counts.ndim in (0, losses.ndim) and all(
        have in (1, want) for have, want in zip(counts.shape, losses.shape, strict=False)
    )
    if not fits:
        raise ValueError(
            f"num_samples must be one number or one per leading index of losses_sum "
            f"{losses.shape}, got shape {counts.shape}"
        )
    if not (np.isfinite(counts) & (counts > 0)).all():
        raise ValueError(f"num_samples must be positive, smallest is {counts.min()}")
    return counts
