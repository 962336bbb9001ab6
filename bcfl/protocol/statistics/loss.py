"""Summed losses of models."""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass
from typing import ClassVar

import numpy as np
from numpy.typing import NDArray
from torch import Tensor

from bcfl.architecture.model import Model
from bcfl.protocol.checks import is_count, is_sum
from bcfl.protocol.statistics.sample_values import LOSSES, SampleValues
from bcfl.protocol.statistics.statistic import NUMBER_BYTES, OutputStatistic


@dataclass(frozen=True)
class LossSum:
    """Loss of one model on one client.

    Attributes:
        total: negative log-likelihood summed over all samples of the view, nats; estimated where
            a subset was scored.
        standard_error: of that estimate, nats; 0 where all samples were scored.
        num_samples: samples in the view.
    """

    total: float
    standard_error: float
    num_samples: int


@dataclass(frozen=True)
class Loss(OutputStatistic):
    """The negative log-likelihood of each model, summed over samples: a `LossSum` by model key."""

    name: ClassVar[str] = "loss"
    elementwise: ClassVar[bool] = True
    lasting: ClassVar[bool] = True
    reads_targets: ClassVar[bool] = False

    @property
    def values(self) -> SampleValues:
        """Losses."""
        return LOSSES

    def combined(
        self, values: Sequence[NDArray[np.float64]], targets: Tensor, num_samples: int
    ) -> LossSum:
        """The total over all samples, estimated from a subset drawn without replacement.

        See `bcfl.protocol.statistics.statistic.OutputStatistic.combined`.

        Args:
            values: (samples,) losses of those that were scored, nats, of one model.
            targets: not used.
            num_samples: number of all samples.
        """
        (losses,), count = values, len(values[0])
        scale = num_samples / count
        spread = float(losses.std(ddof=1)) if 1 < count < num_samples else 0.0
        error = num_samples * spread / math.sqrt(count)
        error *= math.sqrt(max(1.0 - count / num_samples, 0.0))
        return LossSum(scale * float(losses.sum()), error, num_samples)

    def num_bytes(self, model: Model, num_models: int) -> int:
        """One number for each model; see `bcfl.protocol.Statistic.num_bytes`."""
        return NUMBER_BYTES * num_models

    def part_trouble(self, part: object, model: Model, num_models: int) -> str:
        """See `bcfl.protocol.Statistic.part_trouble`."""
        usable = isinstance(part, LossSum) and is_sum(part.total) and is_count(part.num_samples)
        return "" if usable else "a loss that is not finite or has a wrong shape"
