"""Likelihood temperature of association weights, fitted on held-out samples."""

from __future__ import annotations

from typing import Literal

import numpy as np
from numpy.typing import NDArray
from scipy.optimize import minimize_scalar
from scipy.special import logsumexp

Temperature = float | Literal["mean", "auto"]
LOWEST, HIGHEST = 0.1, 1e4


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
        log_weights = scaled - logsumexp(scaled, axis=1, keepdims=True)
        return -float(logsumexp(log_weights - held_out_gaps, axis=1).sum())

    grid = np.linspace(np.log(LOWEST), np.log(HIGHEST), 24)
    values = [log_loss(point) for point in grid]
    nearest = int(np.argmin(values))
    around = grid[max(nearest - 1, 0)], grid[min(nearest + 1, len(grid) - 1)]
    optimum = minimize_scalar(log_loss, bounds=around, method="bounded")
    return float(np.exp(optimum.x))
