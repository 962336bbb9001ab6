"""Whether the best of several methods is better than each other one: paired tests over seeds."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from itertools import count
from math import isfinite
from typing import Literal

import numpy as np
from numpy.typing import NDArray

LEVEL = 0.05
RESAMPLES = 9_999
"""Up to 13 seeds all sign patterns are counted; beyond, so many are drawn."""


@dataclass(frozen=True, kw_only=True)
class Comparison:
    """The method with the best mean against the others.

    Attributes:
        best: method with the best mean; the first among equals.
        p_values: p-value by other method, adjusted after Holm.
        num_seeds: pairs per test.
    """

    best: str
    p_values: Mapping[str, float]
    num_seeds: int

    @property
    def is_significant(self) -> bool:
        """Whether the best differs from every other method at the level 0.05."""
        return bool(self.p_values) and max(self.p_values.values()) <= LEVEL


def compare_best(
    values: Mapping[str, Sequence[float]], better: Literal[1, -1]
) -> Comparison | None:
    """Two-sided Wilcoxon signed-rank tests of the best mean against each other one, after Holm.

    Args:
        values: by method, one value per seed, the same seeds in the same order for all.
        better: 1 if higher is better, -1 if lower is.

    Returns:
        The comparison; None with fewer than two methods, no seed, or an unknown value.

    References:
        Demšar (2006), "Statistical comparisons of classifiers over multiple data sets", section
        3.1.3; Holm (1979), "A simple sequentially rejective multiple test procedure".
    """
    lengths = {len(row) for row in values.values()}
    if len(values) < 2 or len(lengths) != 1 or 0 in lengths:
        return None
    if not all(isfinite(value) for row in values.values() for value in row):
        return None
    best = max(values, key=lambda method: better * float(np.mean(values[method])))
    raw = {m: _p_value(values[best], row) for m, row in values.items() if m != best}
    return Comparison(best=best, p_values=holm(raw), num_seeds=lengths.pop())


def holm(p_values: Mapping[str, float]) -> dict[str, float]:
    """P-values adjusted for their number by Holm's step-down procedure.

    Args:
        p_values: raw p-values by name.
    """
    adjusted, highest = {}, 0.0
    for rank, name in enumerate(sorted(p_values, key=lambda name: p_values[name])):
        highest = max(highest, min(1.0, (len(p_values) - rank) * p_values[name]))
        adjusted[name] = highest
    return {name: adjusted[name] for name in p_values}


def seeds_needed(num_methods: int) -> int:
    """Least number of seeds with which the best of so many methods can pass all tests.

    With n pairs the smallest two-sided p-value of the signed-rank test is 2^(1 - n).

    Args:
        num_methods: methods compared, at least 2.
    """
    return next(n for n in count(1) if (num_methods - 1) * 2.0 ** (1 - n) <= LEVEL)


def _p_value(first: Sequence[float], second: Sequence[float]) -> float:
    from scipy.stats import permutation_test

    gaps = np.asarray(first, dtype=np.float64) - np.asarray(second, dtype=np.float64)
    if len(gaps) < 2 or not gaps.any():
        return 1.0
    test = permutation_test(
        (gaps,),
        _signed_ranks,
        permutation_type="samples",
        vectorized=True,
        n_resamples=RESAMPLES,
        rng=np.random.default_rng(0),
    )
    return float(test.pvalue)


def _signed_ranks(gaps: NDArray[np.float64], axis: int) -> NDArray[np.float64]:
    """Sum of signed ranks; zeros keep their ranks and count for neither side (Pratt)."""
    from scipy.stats import rankdata

    ranks: NDArray[np.float64] = rankdata(np.abs(gaps), axis=axis)
    total: NDArray[np.float64] = (np.sign(gaps) * ranks).sum(axis=axis)
    return total
