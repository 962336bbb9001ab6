"""Prior precision and softmax temperature from held-out samples, of which only sums are shared.

A unit prior precision makes every Laplace predictive far too uncertain. Each data holder turns its
held-out samples into sums of log losses on a grid; added up, they say which values suit all.
"""

from __future__ import annotations

import itertools
import math
from dataclasses import dataclass

import torch
from torch import Tensor

TEMPERATURE_SPREAD = 0.5
"""Deviation of the logarithm of the temperature, beforehand."""


@dataclass(frozen=True)
class TuningGrid:
    """Values to choose from.

    Attributes:
        prior_precisions: Prior precisions, positive, in rising order.
        temperatures: Softmax temperatures, positive, in rising order.

    Raises:
        ValueError: If an axis is empty, not positive or not rising.
    """

    prior_precisions: tuple[float, ...] = tuple(10 ** (i / 2) for i in range(-2, 15))
    temperatures: tuple[float, ...] = tuple(2 ** (i / 4) for i in range(-8, 9))

    def __post_init__(self) -> None:
        """Check the axes."""
        for name in ("prior_precisions", "temperatures"):
            values = getattr(self, name)
            rising = all(low < high for low, high in itertools.pairwise(values))
            if not values or not rising or not (values[0] > 0 and math.isfinite(values[-1])):
                raise ValueError(f"{name} must be positive, finite and rising, got {values}")


@dataclass(frozen=True, eq=False)
class HeldOutSums:
    """Log losses of held-out samples, summed; sums of several data holders add up.

    Attributes:
        grid: The values they belong to.
        log_loss: Nats summed over samples, (prior precisions, temperatures), float64.
        num_samples: Number of samples.
    """

    grid: TuningGrid
    log_loss: Tensor
    num_samples: int

    def __add__(self, other: HeldOutSums) -> HeldOutSums:
        """Sums over both sets of samples.

        Raises:
            ValueError: If the grids differ.
        """
        if self.grid != other.grid:
            raise ValueError("grids of held-out sums must be equal to be added")
        loss = self.log_loss + other.log_loss
        return HeldOutSums(self.grid, loss, self.num_samples + other.num_samples)


@dataclass(frozen=True)
class Tuned:
    """What was chosen of a grid.

    Attributes:
        prior_precision: Chosen prior precision, see `choose`.
        temperature: Chosen softmax temperature.
        log_loss: Average held-out log loss there, nats per sample.
        on_edge: Whether the temperature is the first or last of several, or the prior precision the
            first of several, so that a wider grid might do better. Above the last precision is
            only the plug-in.
    """

    prior_precision: float
    temperature: float
    log_loss: float
    on_edge: bool


def choose(sums: HeldOutSums) -> Tuned:
    """The most probable point of the grid, with no lower prior precision than pays.

    Temperatures are log-normal around 1 beforehand, with a deviation of a half: a hundred samples
    that are all classified rightly favour a temperature towards 0, and say nothing of the next
    mistake.

    A wide posterior whose draws are sharpened by a low temperature can equal the plug-in on the
    held-out samples, and be sure of the wrong class, under all of its draws, for a sample that was
    not among them. So of the prior precisions whose best point is within log(samples) / 2 nats of
    the best of all, a tolerance as large as what Schwarz's criterion asks of a parameter, the
    highest is taken, at its best temperature.

    Raises:
        ValueError: If there is no sample, or no log loss is finite.
    """
    if sums.num_samples < 1:
        raise ValueError(f"num_samples must be at least 1 to tune with, got {sums.num_samples}")
    known = torch.where(sums.log_loss.isnan(), math.inf, sums.log_loss)
    spread = torch.tensor(sums.grid.temperatures).log() / TEMPERATURE_SPREAD
    losses = known + spread.to(known).square() / 2
    of_rows = losses.amin(1)
    if not bool(of_rows.isfinite().any()):
        raise ValueError("log_loss must be finite at some point of the grid")
    enough = of_rows <= of_rows.min() + math.log(sums.num_samples) / 2
    row = int(enough.nonzero().max())
    column = int(losses[row].argmin())
    rows, columns = losses.shape
    on_edge = (columns > 1 and column in (0, columns - 1)) or (rows > 1 and row == 0)
    return Tuned(
        sums.grid.prior_precisions[row],
        sums.grid.temperatures[column],
        float(known[row, column]) / sums.num_samples,
        on_edge,
    )
