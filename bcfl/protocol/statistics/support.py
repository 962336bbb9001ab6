"""Whether a client would be no worse off with another model: a paired one-sided test."""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass
from typing import ClassVar, Literal

import numpy as np
import scipy
from numpy.typing import NDArray
from torch import Tensor

from bcfl.architecture.model import Model
from bcfl.protocol.checks import is_count
from bcfl.protocol.statistics.sample_values import LOSSES, CappedLosses, SampleValues
from bcfl.protocol.statistics.statistic import NUMBER_BYTES, OutputStatistic

TestedLoss = Literal["raw", "capped"]

MOST_FOR_TABLE, MOST_FOR_SIGNS = 50, 13
DECIMALS = 12
"""Differences are rounded to so many decimals: the noise of addition would break ties."""


def signed_rank_p_value(differences: NDArray[np.float64]) -> tuple[float, int]:
    """Probability of a rank sum of the positive differences at least as large, by chance.

    Small values indicate differences above zero. Zeros are dropped.

    Args:
        differences: (pairs,) paired differences.

    Returns:
        The p-value, 1 without a usable difference (none is nonzero, or one is NaN),
        and the number of differences that are not zero.
    """
    if not np.isfinite(differences).all():
        return 1.0, 0
    rounded = np.round(differences, DECIMALS)
    used = rounded[rounded != 0]
    if len(used) == 0:
        return 1.0, 0
    ranks = scipy.stats.rankdata(np.abs(used))
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
    return float(scipy.special.ndtr((count * (count + 1) / 4 - statistic) / math.sqrt(variance)))


@dataclass(frozen=True, eq=False)
class SampleFit:
    """The fit of one model to each sample of a client, for the support test.

    Attributes:
        losses: (samples,) negative log-likelihood, nats.
        counted: (samples,) bool; on a sample that is not counted the model pays a fixed loss, to
            which no margin is added.
    """

    losses: NDArray[np.float64]
    counted: NDArray[np.bool_]

    @classmethod
    def raw(cls, losses: NDArray[np.float64]) -> SampleFit:
        """The losses, unchanged."""
        return cls(losses, np.ones(len(losses), dtype=bool))


@dataclass(frozen=True)
class SupportTest:
    """Whether a client would not be worse off with another model: FAACL's support test.

    Attributes:
        p_value: of the hypothesis that the other model's loss is above the own model's by more
            than a margin; small values indicate that the other model supports the client.
        num_pairs: samples on which the two differ, net of the margin.
        num_samples: samples that were compared.
    """

    p_value: float
    num_pairs: int
    num_samples: int

    @classmethod
    def of(cls, own: SampleFit, other: SampleFit, margin: float) -> SupportTest:
        """Test two models on the same samples.

        The one-sided signed-rank test of own + margin - other > 0. A loss that is not a number
        gives no support.

        Args:
            own: the client's model.
            other: the candidate.
            margin: how much worse the other model may be, nats per sample (FAACL's epsilon).
        """
        difference = own.losses + margin * own.counted - other.losses
        p_value, pairs = signed_rank_p_value(difference)
        return cls(p_value, pairs, len(difference))


@dataclass(frozen=True)
class PairedSupport(OutputStatistic):
    """FAACL's test of two models, the client's own and a candidate: a `SupportTest`.

    Attributes:
        epsilon: margin by which the candidate may be worse, nats per sample.
        loss: `raw`, or `capped` where misclassified samples cost log(classes).
    """

    epsilon: float = 0.0
    loss: TestedLoss = "raw"
    name: ClassVar[str] = "support"
    batched: ClassVar[bool] = False
    """Rounding could break ties between the losses, and with them the ranks."""

    def fits(self, model: Model, num_models: int) -> bool:
        """Of two models; capped losses need classes; see `bcfl.protocol.Statistic.fits`."""
        return num_models == 2 and (self.loss == "raw" or model.likelihood == "categorical")

    @property
    def values(self) -> SampleValues:
        """Losses."""
        return LOSSES if self.loss == "raw" else CappedLosses()

    def combined(
        self, values: Sequence[NDArray[np.float64]], targets: Tensor, num_samples: int
    ) -> SupportTest:
        """The test on the scored samples.

        See `bcfl.protocol.statistics.statistic.OutputStatistic.combined`.
        """
        own, candidate = map(self._fit, values)
        return SupportTest.of(own, candidate, self.epsilon)

    def _fit(self, values: NDArray[np.float64]) -> SampleFit:
        if self.loss == "raw":
            return SampleFit.raw(values)
        return SampleFit(values[:, 0], values[:, 1].astype(bool))

    def num_bytes(self, model: Model, num_models: int) -> int:
        """A p-value and a number of pairs; see `bcfl.protocol.Statistic.num_bytes`."""
        return 2 * NUMBER_BYTES

    def part_trouble(self, part: object, model: Model, num_models: int) -> str:
        """See `bcfl.protocol.Statistic.part_trouble`."""
        if not isinstance(part, SupportTest) or not is_count(part.num_samples):
            return "no support test"
        if not 0 <= part.p_value <= 1 or not 0 <= part.num_pairs <= part.num_samples:
            return "a support test whose numbers cannot be"
        return ""
