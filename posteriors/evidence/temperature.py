"""Temperature of model weights, tuned on sums over held-out samples."""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np
from numpy.typing import ArrayLike, NDArray
from scipy.special import logsumexp


@dataclass(frozen=True)
class TunedTemperature:
    """The temperature with the lowest held-out loss.

    Attributes:
        temperature: Divisor of summed losses before the softmax over models.
        log_loss: Held-out log loss of the weighted mixture, summed over samples, nats.
        on_edge: Whether it is the first or last of several candidates, so that a wider range may
            be better.
    """

    temperature: float
    log_loss: float
    on_edge: bool


def mixture_log_loss(
    losses_sum: ArrayLike, held_out_log_likelihoods: ArrayLike, temperatures: Sequence[float]
) -> NDArray[np.float64]:
    """Held-out log loss of a mixture of models at each temperature, for one data holder.

    The weight of a model is proportional to exp(-summed training loss / temperature). Results of
    several data holders are additive.

    Args:
        losses_sum: Training loss of each model, summed over samples, nats, (models,).
        held_out_log_likelihoods: Log likelihood of each held-out sample, nats, (samples, models).
        temperatures: Candidate temperatures, positive.

    Returns:
        Log losses summed over held-out samples, nats, (temperatures,), float64.

    Raises:
        ValueError: If shapes do not match, a loss is NaN or -inf, or a temperature is not positive.
    """
    losses = np.asarray(losses_sum, dtype=np.float64)
    held_out = np.asarray(held_out_log_likelihoods, dtype=np.float64)
    if losses.ndim != 1 or held_out.ndim != 2 or held_out.shape[1:] != losses.shape:
        raise ValueError(
            "losses_sum and held_out_log_likelihoods must have shapes (models,) and (samples, "
            f"models), got {losses.shape} and {held_out.shape}"
        )
    if np.isnan(losses).any() or not np.isfinite(losses.min()):
        raise ValueError("losses_sum must hold numbers or +inf, not NaN, -inf or only +inf")
    scale = np.asarray(temperatures, dtype=np.float64)
    if scale.ndim != 1 or not (np.isfinite(scale) & (scale > 0)).all():
        raise ValueError(f"temperatures must be positive and finite, got {temperatures}")
    logs = -losses / scale[:, None]
    logs -= logsumexp(logs, axis=1, keepdims=True)
    mixed: NDArray[np.float64] = logsumexp(held_out + logs[:, None], axis=2)
    totals: NDArray[np.float64] = -mixed.sum(axis=1)
    return totals


def choose_temperature(log_losses: ArrayLike, temperatures: Sequence[float]) -> TunedTemperature:
    """Choose the temperature with the lowest summed log loss, the first among equals.

    Args:
        log_losses: Summed log losses, (temperatures,), nats.
        temperatures: Candidate temperatures.

    Raises:
        ValueError: If numbers differ or no log loss is finite.
    """
    losses = np.asarray(log_losses, dtype=np.float64)
    if losses.shape != (len(temperatures),) or len(losses) == 0:
        raise ValueError(
            f"log_losses must hold one number per temperature, got shape {losses.shape} "
            f"for {len(temperatures)}"
        )
    best = int(np.where(np.isnan(losses), math.inf, losses).argmin())
    if not math.isfinite(losses[best]):
        raise ValueError("log_losses must be finite for some temperature")
    on_edge = len(losses) > 1 and best in (0, len(losses) - 1)
    return TunedTemperature(float(temperatures[best]), float(losses[best]), on_edge)
