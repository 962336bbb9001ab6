"""What a client says of several models side by side, sample by sample."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray


@dataclass(frozen=True, eq=False)
class BestCounts:
    """On how many samples each model is the best one: FedSoft's importance weights before scaling.

    Attributes:
        counts: (models,) int64 samples on which the model has the lowest loss, in the order in
            which the models were named; the first of equals counts.
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
