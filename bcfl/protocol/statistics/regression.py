"""Sums over one client's predictions of numbers, from which error and calibration follow."""

from __future__ import annotations

import math
from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from typing import ClassVar

import numpy as np
import scipy
from numpy.typing import NDArray
from torch import Tensor

from bcfl.architecture.model import Model
from bcfl.protocol.answers import Failure
from bcfl.protocol.checks import is_count, is_sum
from bcfl.protocol.statistics.predictions import Pooling, pooled
from bcfl.protocol.statistics.sample_values import Logits, SampleValues
from bcfl.protocol.statistics.statistic import NUMBER_BYTES, OutputStatistic

LEVELS = (0.5, 0.8, 0.9, 0.95)
"""Probabilities of the central intervals whose coverage is counted."""


def coverage_name(level: float) -> str:
    """Name of the share of values inside the central interval of a probability."""
    return f"coverage_{level * 100:.0f}"


@dataclass(frozen=True, eq=False, kw_only=True)
class RegressionSums:
    """Sums over a client's predictions of numbers.

    Attributes:
        num_samples: number of samples.
        num_values: target values, of all samples and outputs.
        squared_error: summed over values, of the predictive mean.
        nll: negative log-likelihood of the predictive density, summed over samples, nats.
        covered: (levels,) int64 values inside the central predictive interval of each of `LEVELS`.
    """

    num_samples: int
    num_values: int
    squared_error: float
    nll: float
    covered: NDArray[np.int64]

    @classmethod
    def of(
        cls,
        means: Sequence[NDArray[np.float64]],
        weights: Sequence[float],
        targets: NDArray[np.float64],
    ) -> RegressionSums:
        """Sums over predictions by a mixture of Gaussians of unit variance.

        Args:
            means: (samples, outputs) of each component.
            weights: of the components, summing to 1.
            targets: (samples, outputs).
        """
        errors = targets - np.stack(means)
        shares = np.reshape(weights, (-1, 1, 1))
        logs = -0.5 * (errors**2 + math.log(2 * math.pi)).sum(axis=2)
        density = scipy.special.logsumexp(logs, axis=0, b=shares[:, :, 0])
        below = (shares * scipy.special.ndtr(errors)).sum(axis=0)
        inside = [np.abs(below - 0.5) <= level / 2 for level in LEVELS]
        return cls(
            num_samples=len(targets),
            num_values=targets.size,
            squared_error=float(((shares * errors).sum(axis=0) ** 2).sum()),
            nll=float(-density.sum()),
            covered=np.array([one.sum() for one in inside], dtype=np.int64),
        )

    @classmethod
    def total(cls, parts: Iterable[RegressionSums]) -> RegressionSums:
        """The sums over several clients; of none they are zero."""
        summands = list(parts)
        return cls(
            num_samples=sum(p.num_samples for p in summands),
            num_values=sum(p.num_values for p in summands),
            squared_error=sum(p.squared_error for p in summands),
            nll=sum(p.nll for p in summands),
            covered=sum((p.covered for p in summands), np.zeros(len(LEVELS), dtype=np.int64)),
        )


@dataclass(frozen=True)
class Regression(OutputStatistic):
    """How the mixture of the models predicts numbers: `RegressionSums`.

    Attributes:
        weights: mixture weight of each model, summing to 1.
        pooling: whether the models' densities are averaged (`probabilities`) or their means.
    """

    weights: tuple[float, ...]
    pooling: Pooling = "probabilities"
    name: ClassVar[str] = "regression"

    def fits(self, model: Model, num_models: int) -> bool:
        """Of Gaussian likelihoods, and one weight for each model; see `Statistic.fits`."""
        return model.likelihood == "gaussian" and 0 < num_models == len(self.weights)

    @property
    def values(self) -> SampleValues:
        """Outputs."""
        return Logits()

    def combined(
        self, values: Sequence[NDArray[np.float64]], targets: Tensor, num_samples: int
    ) -> RegressionSums | Failure:
        """The sums over the scored samples, or a failure where a prediction is not finite.

        See `OutputStatistic.combined`.
        """
        if not all(np.isfinite(means).all() for means in values):
            return Failure("invalid", "a predicted value is not finite")
        known = targets.double().cpu().numpy().reshape(values[0].shape)
        return RegressionSums.of(*pooled(values, self.weights, self.pooling), known)

    def num_bytes(self, model: Model, num_models: int) -> int:
        """Four sums and one count for each level; see `Statistic.num_bytes`."""
        return NUMBER_BYTES * (4 + len(LEVELS))

    def part_trouble(self, part: object, model: Model, num_models: int) -> str:
        """See `Statistic.part_trouble`."""
        if not isinstance(part, RegressionSums) or not is_count(part.num_samples):
            return "no regression sums"
        if part.num_values != part.num_samples * model.num_outputs:
            return "regression sums of another number of values"
        if not (is_sum(part.squared_error) and is_sum(part.nll) and part.squared_error >= 0):
            return "regression sums that are not finite"
        covered = np.asarray(part.covered)
        whole = covered.shape == (len(LEVELS),) and covered.dtype.kind in "iu"
        if not whole or (covered < 0).any() or (covered > part.num_values).any():
            return "regression sums with unusable coverage"
        return ""
