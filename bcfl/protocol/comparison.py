"""What a client says of several models side by side, sample by sample."""

from __future__ import annotations

import math
from dataclasses import dataclass
from typing import Literal

import numpy as np
from numpy.typing import NDArray
from scipy.stats import norm, rankdata

MOST_FOR_TABLE, MOST_FOR_SIGNS = 50, 13
DECIMALS = 12
"""Differences are rounded to so many decimals: the noise of addition would break ties."""


def signed_rank_p_value(differences: NDArray[np.float64]) -> tuple[float, int]:
    """Probability of a rank sum of the positive differences at least as large, by chance.

    Small values say that the differences lie above zero. Zeros are dropped.

    Args:
        differences: (pairs,) paired differences.

    Returns:
        The p-value, 1 where there is nothing to go by (no difference, or one that is no number),
        and the number of differences that are not zero.
    """
    if not np.isfinite(differences).all():
        return 1.0, 0
    rounded = np.round(differences, DECIMALS)
    used = rounded[rounded != 0]
    if len(used) == 0:
        return 1.0, 0
    ranks = rankdata(np.abs(used))
    statistic = float(ranks[used > 0].sum())
    clean = len(used) == len(differences) and len(np.unique(ranks)) == len(ranks)
    if len(differences) <= (MOST_FOR_TABLE if clean else MOST_FOR_SIGNS):
        return _exact_tail(ranks, statistic), len(used)
    return _normal_tail(ranks, statistic), len(used)


def _exact_tail(ranks: NDArray[np.float64], statistic: float) -> float:
    """P(sum of the positive ranks >= statistic) when each sign is a fair coin."""
    doubled = np.round(2 * ranks).astype(np.int64)  # midranks are halves
    chances = np.zeros(int(doubled.sum()) + 1)
    chances[0] = 1.0
    for rank in doubled:
        with_rank = np.zeros_like(chances)
        with_rank[rank:] = chances[: len(chances) - rank]
        chances = 0.5 * (chances + with_rank)
    return min(float(chances[round(2 * statistic) :].sum()), 1.0)


def _normal_tail(ranks: NDArray[np.float64], statistic: float) -> float:
    """The same by the normal approximation, without continuity correction."""
    count = len(ranks)
    _, ties = np.unique(ranks, return_counts=True)
    variance = count * (count + 1) * (2 * count + 1) / 24 - float((ties**3 - ties).sum()) / 48
    return float(norm.sf((statistic - count * (count + 1) / 4) / math.sqrt(variance)))


TestedLoss = Literal["raw", "capped"]


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


@dataclass(frozen=True, eq=False)
class SampleFit:
    """How well one model fits each sample of a client, as the support test sees it.

    Attributes:
        losses: (samples,) negative log-likelihood, nats.
        counted: (samples,) bool; on a sample that is not counted the model pays a fixed loss, to
            which no margin is added.
    """

    losses: NDArray[np.float64]
    counted: NDArray[np.bool_]

    @classmethod
    def raw(cls, losses: NDArray[np.float64]) -> SampleFit:
        """The losses as they are."""
        return cls(losses, np.ones(len(losses), dtype=bool))

    @classmethod
    def capped(
        cls, losses: NDArray[np.float64], right: NDArray[np.bool_], num_classes: int
    ) -> SampleFit:
        """Wrongly classified samples all cost what guessing costs, log(classes).

        Args:
            losses: (samples,) negative log-likelihood, nats.
            right: (samples,) whether the most probable class is the right one.
            num_classes: number of classes.
        """
        numbers = np.where(np.isfinite(losses) & ~right, np.log(num_classes), losses)
        return cls(numbers, right)


@dataclass(frozen=True)
class SupportTest:
    """Whether a client would not be worse off with another model: FAACL's support test.

    Attributes:
        p_value: of the hypothesis that the other model's loss is above the own model's by more
            than a margin; small values say that the other model supports the client.
        num_pairs: samples on which the two differ, net of the margin.
        num_samples: samples that were compared.
    """

    p_value: float
    num_pairs: int
    num_samples: int

    @classmethod
    def of(cls, own: SampleFit, other: SampleFit, margin: float) -> SupportTest:
        """Test two models on the same samples.

        The one-sided signed-rank test of own + margin - other > 0. A loss that is no number is no
        support.

        Args:
            own: the model that the client has.
            other: the model that is offered.
            margin: how much worse the other model may be, nats per sample (FAACL's epsilon).
        """
        difference = own.losses + margin * own.counted - other.losses
        p_value, pairs = signed_rank_p_value(difference)
        return cls(p_value, pairs, len(difference))
