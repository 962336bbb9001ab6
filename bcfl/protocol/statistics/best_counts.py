"""Counts of the samples on which each of several models is the best."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import ClassVar

import numpy as np
from numpy.typing import NDArray
from torch import Tensor

from bcfl.architecture.model import Model
from bcfl.protocol.checks import is_count
from bcfl.protocol.statistics.sample_values import LOSSES, SampleValues
from bcfl.protocol.statistics.statistic import NUMBER_BYTES, OutputStatistic


@dataclass(frozen=True, eq=False)
class BestCounts:
    """On how many samples each model is the best one: FedSoft's importance weights before scaling.

    Attributes:
        counts: (models,) int64 samples on which the model has the lowest loss, in the order in
            which the models were named; ties go to the first.
        num_samples: samples that were scored; one on which no model's loss is a number counts
            for none.
    """

    counts: NDArray[np.int64]
    num_samples: int

    @classmethod
    def of(cls, losses: NDArray[np.float64]) -> BestCounts:
        """Count from losses.

        Args:
            losses: (models, samples) loss of each model on each sample, nats.
        """
        numbers = np.where(np.isnan(losses), np.inf, losses)
        decided = np.isfinite(numbers).any(axis=0)
        best = numbers.argmin(axis=0)[decided]
        counts = np.bincount(best, minlength=len(losses)).astype(np.int64)
        return cls(counts, losses.shape[1])


@dataclass(frozen=True)
class BestModels(OutputStatistic):
    """On how many samples each model has the lowest loss: `BestCounts`."""

    name: ClassVar[str] = "best_counts"

    @property
    def values(self) -> SampleValues:
        """Losses."""
        return LOSSES

    def combined(
        self, values: Sequence[NDArray[np.float64]], targets: Tensor, num_samples: int
    ) -> BestCounts:
        """The counts over the scored samples.

        See `bcfl.protocol.statistics.statistic.OutputStatistic.combined`.
        """
        return BestCounts.of(np.stack(values))

    def num_bytes(self, model: Model, num_models: int) -> int:
        """One number for each model; see `bcfl.protocol.Statistic.num_bytes`."""
        return NUMBER_BYTES * num_models

    def part_trouble(self, part: object, model: Model, num_models: int) -> str:
        """See `bcfl.protocol.Statistic.part_trouble`."""
        if not isinstance(part, BestCounts) or not is_count(part.num_samples):
            return "no counts"
        counts = np.asarray(part.counts)
        usable = counts.shape == (num_models,) and np.issubdtype(counts.dtype, np.integer)
        if not usable or (counts < 0).any() or not 1 <= counts.sum() <= part.num_samples:
            return "counts of the wrong shape or sum"
        return ""
