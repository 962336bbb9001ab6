"""The one-sided signed-rank test of paired differences, by a rule that does not move.

Wilcoxon, "Individual Comparisons by Ranking Methods" (1945). The rule is the one that SciPy 1.17
calls `auto`, written out: the exact distribution of the ranks where there are no ties and no zeros
and at most 50 differences; all sign patterns of the midranks where there are at most 13; else the
normal approximation with the correction for ties. SciPy enumerates sign patterns in seconds and
answers NaN where all of more than 13 differences are zero.
"""

from __future__ import annotations

import math

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
