"""Tuning of prior precision and softmax temperature on additive held-out sums.

A unit prior precision makes every Laplace predictive strongly underconfident. Each data holder sums
the log losses of its held-out samples on a grid; the total over data holders selects the values.
"""

from __future__ import annotations

import itertools
import math
from dataclasses import dataclass

import torch
from torch import Tensor

TEMPERATURE_SPREAD = 0.5
"""Standard deviation of the log-normal prior of the temperature."""


@dataclass(frozen=True)
class TuningGrid:
    """Grid of candidate values.

    Attributes:
        prior_precisions: Prior precisions, positive, ascending.
        temperatures: Softmax temperatures, positive, ascending.

    Raises:
        ValueError: If an axis is empty, not positive or not ascending.
    """

    prior_precisions: tuple[float, ...] = tuple(10 ** (i / 2) for i in range(-2, 15))
    temperatures: tuple[float, ...] = tuple(2 ** (i / 4) for i in range(-8, 9))

    def __post_init__(self) -> None:
        """Check the axes."""
        for name in ("prior_precisions", "temperatures"):
            values = getattr(self, name)
            ascending = all(low < high for low, high in itertools.pairwise(values))
            if not values or not ascending or not (values[0] > 0 and math.isfinite(values[-1])):
                raise ValueError(f"{name} must be positive, finite and ascending, got {values}")


@dataclass(frozen=True, eq=False)
class HeldOutSums:
    """Summed log losses of held-out samples on a grid, additive over data holders.

    Attributes:
        grid: The grid.
        log_loss: Log loss summed over samples, nats, (prior precisions, temperatures), float64.
        num_samples: Number of samples.
    """

    grid: TuningGrid
    log_loss: Tensor
    num_samples: int

    def __add__(self, other: HeldOutSums) -> HeldOutSums:
        """Sums over the union of both sets of samples.

        Raises:
            ValueError: If the grids differ.
        """
        if self.grid != other.grid:
            raise ValueError("grids of held-out sums must be equal to be added")
        loss = self.log_loss + other.log_loss
        return HeldOutSums(self.grid, loss, self.num_samples + other.num_samples)


@dataclass(frozen=True)
class Tuned:
    """Tuned values.

    Attributes:
        prior_precision: Tuned prior precision; see `posteriors.predictive.choose`.
        temperature: Tuned softmax temperature.
        log_loss: Mean held-out log loss there, nats per sample.
        on_edge: Whether the temperature is the first or last of several candidates, or the prior
            precision the first, so that a wider grid may be better. Above the last precision lies
            the plug-in limit.
    """

    prior_precision: float
    temperature: float
    log_loss: float
    on_edge: bool


def choose(sums: HeldOutSums, spread: float = TEMPERATURE_SPREAD) -> Tuned:
    """Choose the MAP point of the grid with the highest competitive prior precision.

    Temperatures have a log-normal prior around 1 with a deviation of 0.5: a small held-out set that
    is classified without error favours temperatures towards 0 and carries no information on errors.
    Those that are a noise variance, in the unit of the targets, have none: `spread` is infinite.

    A wide posterior whose draws are sharpened by a low temperature can match the plug-in on the
    held-out samples and yet be overconfident on others. Therefore, among the prior precisions whose
    best point is within log(samples) / 2 nats of the optimum (the penalty of one parameter in the
    Bayesian information criterion), the highest is chosen, with its best temperature.

    Args:
        sums: Held-out sums of all data holders.
        spread: Standard deviation of the logarithm of the temperature, a priori.

    Raises:
        ValueError: If there is no sample, or no log loss is finite.
    """
    if sums.num_samples < 1:
        raise ValueError(f"num_samples must be at least 1 to tune with, got {sums.num_samples}")
    log_loss = torch.where(sums.log_loss.isnan(), math.inf, sums.log_loss)
    distance = torch.tensor(sums.grid.temperatures).log() / spread
    losses = log_loss + distance.to(log_loss).square() / 2
    row_minima = losses.amin(1)
    if not bool(row_minima.isfinite().any()):
        raise ValueError("log_loss must be finite at some point of the grid")
    competitive = row_minima <= row_minima.min() + math.log(sums.num_samples) / 2
    row = int(competitive.nonzero().max())
    column = int(losses[row].argmin())
    rows, columns = losses.shape
    on_edge = (columns > 1 and column in (0, columns - 1)) or (rows > 1 and row == 0)
    return Tuned(
        sums.grid.prior_precisions[row],
        sums.grid.temperatures[column],
        float(log_loss[row, column]) / sums.num_samples,
        on_edge,
    )
