"""Summed losses of models on two halves of the samples."""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass
from typing import ClassVar

import numpy as np
from numpy.typing import NDArray
from torch import Tensor

from bcfl.architecture.model import Model
from bcfl.protocol.checks import is_sum
from bcfl.protocol.statistics.loss import Loss, LossSum


@dataclass(frozen=True)
class SplitLossSum(LossSum):
    """Loss of one model on one client, with that of half of its samples.

    Attributes:
        first_half: negative log-likelihood summed over every second sample, from the first on,
            nats; scaled like `total` where a subset was scored.
    """

    first_half: float = math.nan

    @property
    def second_half(self) -> float:
        """That of the other samples, nats."""
        return self.total - self.first_half


@dataclass(frozen=True)
class SplitLoss(Loss):
    """The negative log-likelihood of each model in two halves: a `SplitLossSum` by model key."""

    name: ClassVar[str] = "split_loss"
    lasting: ClassVar[bool] = False

    def combined(
        self, values: Sequence[NDArray[np.float64]], targets: Tensor, num_samples: int
    ) -> SplitLossSum:
        """The total, and the sum over every second sample. See `OutputStatistic.combined`.

        Args:
            values: (samples,) losses of those that were scored, nats, of one model.
            targets: not used.
            num_samples: number of all samples.
        """
        whole = super().combined(values, targets, num_samples)
        (losses,) = values
        scale = num_samples / len(losses)
        return SplitLossSum(
            total=whole.total,
            standard_error=whole.standard_error,
            num_samples=num_samples,
            first_half=scale * float(losses[::2].sum()),
        )

    def num_bytes(self, model: Model, num_models: int) -> int:
        """Two numbers for each model; see `Statistic.num_bytes`."""
        return 2 * super().num_bytes(model, num_models)

    def part_trouble(self, part: object, model: Model, num_models: int) -> str:
        """See `Statistic.part_trouble`."""
        if not isinstance(part, SplitLossSum):
            return "no losses of two halves"
        if not is_sum(part.first_half):
            return "a loss that is not finite, of half of the samples"
        return super().part_trouble(part, model, num_models)
