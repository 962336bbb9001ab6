"""How far a summed loss is trusted when it becomes an association weight."""

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

    Each client's cluster is weighed by exp(-loss / T) on its training samples; the weights are
    judged by sum over clients of log sum over clusters of weight x likelihood of the client's
    validation samples. Where training and validation samples agree on the cluster a low
    temperature is best, where they do not a high one is. Found by bounded search over log T
    between 0.1 and 10,000.

    Args:
        losses: (clients, clusters) summed training losses, nats.
        held_out: (clients, clusters) summed validation losses, nats.

    Returns:
        The temperature; 1 where no client tells clusters apart by both kinds of samples.
    """
    telling = (np.ptp(losses, axis=1) > 0) & (np.ptp(held_out, axis=1) > 0)
    if not telling.any():
        return 1.0

    def log_loss(log_temperature: float) -> float:
        scaled = -losses / np.exp(log_temperature)
        log_weights = scaled - logsumexp(scaled, axis=1, keepdims=True)
        return -float(logsumexp(log_weights - held_out, axis=1).sum())

    grid = np.linspace(np.log(LOWEST), np.log(HIGHEST), 24)
    values = [log_loss(point) for point in grid]
    nearest = int(np.argmin(values))
    around = grid[max(nearest - 1, 0)], grid[min(nearest + 1, len(grid) - 1)]
    found = minimize_scalar(log_loss, bounds=around, method="bounded")
    return float(np.exp(found.x))
