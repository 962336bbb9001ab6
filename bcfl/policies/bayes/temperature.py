"""Temperatures of association weights, fitted on held-out samples, and of beliefs, on halves."""

from __future__ import annotations

from collections.abc import Callable
from typing import Literal

import numpy as np
import scipy
from numpy.typing import NDArray

Temperature = float | Literal["mean", "auto"]
LOWEST, HIGHEST = 0.1, 1e4
RATIO_TO_HALVES = 3.0
"""Ratio of the belief temperature to the best one for half of the samples: measured."""


def fitted_temperature(losses: NDArray[np.float64], held_out: NDArray[np.float64]) -> float:
    """The temperature whose association weights explain held-out samples best.

    Maximises sum_j log sum_i w_ij p_ij, where w_ij is the softmax over clusters of -loss_ij / T on
    client j's training samples and p_ij the likelihood of its validation samples. A low temperature
    is best where training and validation samples agree on the cluster. Found by bounded search over
    log T between 0.1 and 10,000.

    Args:
        losses: (clients, clusters) summed training losses, nats.
        held_out: (clients, clusters) summed validation losses, nats.

    Returns:
        The temperature; 1 if no client's losses differ between clusters in both tables.
    """
    informative = (np.ptp(losses, axis=1) > 0) & (np.ptp(held_out, axis=1) > 0)
    if not informative.any():
        return 1.0

    gaps = losses - losses.min(axis=1, keepdims=True)
    held_out_gaps = held_out - held_out.min(axis=1, keepdims=True)

    def log_loss(log_temperature: float) -> float:
        scaled = -gaps / np.exp(log_temperature)
        log_weights = scaled - scipy.special.logsumexp(scaled, axis=1, keepdims=True)
        return -float(scipy.special.logsumexp(log_weights - held_out_gaps, axis=1).sum())

    return _minimum(log_loss)


def fitted_belief_temperature(first: NDArray[np.float64], second: NDArray[np.float64]) -> float:
    """The temperature at which one half of clients' samples tells which cluster suits the other.

    Maximises sum_j log w_ij over log T, where w_ij is the softmax over clusters of -loss_ij / T on
    one half and i the cluster of lowest loss on the other, both ways round; the result, times a
    measured factor for what halves do not show (they are scored by the same models, and all samples
    are twice as many), is at least 1. Scored by cavities, so that neither half has trained what
    judges it.

    Args:
        first: (clients, clusters) summed losses of one half of each client's samples, nats.
        second: (clients, clusters) those of the other half.

    Returns:
        The temperature, which divides summed losses; 1 with a single cluster, or without clients
        that have samples in both halves.
    """
    halved = first.any(axis=1) & second.any(axis=1)
    first, second = first[halved], second[halved]
    if min(first.shape) == 0 or first.shape[1] == 1:
        return 1.0
    rows = np.arange(len(first))
    gaps = [half - half.min(axis=1, keepdims=True) for half in (first, second)]
    best = [half.argmin(axis=1) for half in (second, first)]

    def log_loss(log_temperature: float) -> float:
        total = 0.0
        for half, chosen in zip(gaps, best, strict=True):
            scaled = -half / np.exp(log_temperature)
            total += float((scipy.special.logsumexp(scaled, axis=1) - scaled[rows, chosen]).sum())
        return total

    return max(1.0, RATIO_TO_HALVES * _minimum(log_loss))


def _minimum(log_loss: Callable[[float], float]) -> float:
    """The temperature of least loss, by bounded search around the best point of a grid."""
    grid = np.linspace(np.log(LOWEST), np.log(HIGHEST), 24)
    values = [log_loss(point) for point in grid]
    nearest = int(np.argmin(values))
    around = grid[max(nearest - 1, 0)], grid[min(nearest + 1, len(grid) - 1)]
    optimum = scipy.optimize.minimize_scalar(log_loss, bounds=around, method="bounded")
    return float(np.exp(optimum.x))
