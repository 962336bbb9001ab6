"""Scores of co-association probabilities against true groups, pair of clients by pair.

Whether two clients are of one group needs no matching of clusters to groups. Pairs share clients,
so that they are not independent: intervals come from a bootstrap over clients.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from math import nan

import numpy as np
from numpy.typing import NDArray

__all__ = [
    "PairReliability",
    "association_scores",
    "pair_reliability",
    "pair_scores",
    "pooled_calibration_error",
]

Array = NDArray[np.float64]
NAMES = ("association_nll", "association_brier", "association_ece", "association_auroc")
BINS, RESAMPLES, LEVEL = 10, 400, 0.9
SMALLEST = 1e-6
"""Probabilities are clipped to it and its complement in the log loss."""


def association_scores(together: Array, groups: Sequence[int | None]) -> dict[str, float]:
    """Log loss, Brier score, calibration error and AUROC of co-association probabilities.

    Args:
        together: (clients, clients) probabilities that two clients share a cluster.
        groups: true group of each client; pairs with an unknown one are left out.

    Returns:
        `association_nll` in nats per pair, `association_brier` (0 to 1), `association_ece` in ten
        bins of equal width and `association_auroc`; NaN without pairs, or where all are alike.
    """
    p, same, _ = _pairs(together, groups)
    return pair_scores(p, same)


def pair_scores(p: Array, same: NDArray[np.bool_]) -> dict[str, float]:
    """The same scores of single pairs, such as those of a new client with the federation.

    Args:
        p: (pairs,) probability that the two share a cluster.
        same: (pairs,) whether they are of one group.
    """
    from sklearn.metrics import roc_auc_score

    if not len(p):
        return dict.fromkeys(NAMES, nan)
    clipped = p.clip(SMALLEST, 1 - SMALLEST)
    values = (
        -np.where(same, np.log(clipped), np.log1p(-clipped)).mean(),
        ((p - same) ** 2).mean(),
        _calibration_error(p, same),
        roc_auc_score(same, p) if 0 < same.mean() < 1 else nan,
    )
    return {name: float(value) for name, value in zip(NAMES, values, strict=True)}


def pooled_calibration_error(draws: Sequence[tuple[Array, Sequence[int | None]]]) -> float:
    """Calibration error over the pairs of all draws together, in ten bins of equal width.

    Pairs of one draw stand or fall together, so that the error within a draw is above 0 for exact
    probabilities too; it vanishes with the number of draws when they are pooled.

    Args:
        draws: for each run, (clients, clients) probabilities and the true group of each client.
    """
    parts = [_pairs(together, groups) for together, groups in draws]
    p, same = (np.concatenate([part[i] for part in parts]) for i in (0, 1))
    return _calibration_error(p, same)


@dataclass(frozen=True, eq=False, kw_only=True)
class PairReliability:
    """How often pairs are of one group, by their co-association probability; filled bins only.

    Attributes:
        counts: (bins,) pairs.
        predicted: (bins,) mean probability.
        observed: (bins,) share of pairs of one group.
        low: (bins,) lower end of the 90 % interval of `observed`.
        high: (bins,) upper end.
        num_bins: number of bins, empty ones included.
    """

    counts: NDArray[np.int64]
    predicted: Array
    observed: Array
    low: Array
    high: Array
    num_bins: int = BINS


def pair_reliability(
    draws: Sequence[tuple[Array, Sequence[int | None]]], bins: int = BINS, seed: int = 0
) -> PairReliability:
    """Bins of equal width over the pairs of one or more runs.

    Intervals are percentiles of a bootstrap over the clients of each run: a pair counts as often as
    both of its clients were drawn.

    Args:
        draws: for each run, (clients, clients) probabilities and the true group of each client.
        bins: number of bins.
        seed: of the bootstrap.
    """
    random = np.random.default_rng(seed)
    parts = [_pairs(together, groups) for together, groups in draws]
    weights = [
        _resampled(rows, len(groups), random)
        for (_, _, rows), (_, groups) in zip(parts, draws, strict=True)
    ]
    p = np.concatenate([part[0] for part in parts])
    same = np.concatenate([part[1] for part in parts])
    multiplicities = np.concatenate(weights, axis=1)
    index = _bins(p, bins)
    filled = np.unique(index)
    members = [index == b for b in filled]
    low, high = (
        np.array([_interval(multiplicities[:, row], same[row]) for row in members]).reshape(-1, 2).T
    )
    return PairReliability(
        counts=np.array([row.sum() for row in members], dtype=np.int64),
        predicted=np.array([p[row].mean() for row in members]),
        observed=np.array([same[row].mean() for row in members]),
        low=low,
        high=high,
        num_bins=bins,
    )


def _pairs(
    together: Array, groups: Sequence[int | None]
) -> tuple[Array, NDArray[np.bool_], tuple[NDArray[np.int64], NDArray[np.int64]]]:
    """Probability of each pair of known groups, whether it is of one, and its two clients."""
    known = np.array([i for i, group in enumerate(groups) if group is not None], dtype=np.int64)
    labels = np.array([groups[i] for i in known])
    first, second = np.triu_indices(len(known), 1)
    same = labels[first] == labels[second]
    return together[known[first], known[second]], same, (known[first], known[second])


def _calibration_error(p: Array, same: NDArray[np.bool_]) -> float:
    """Mean distance of probability and share over bins, weighted by their pairs."""
    bins = _bins(p, BINS)
    sums = np.bincount(bins, weights=p - same, minlength=BINS)
    return float(np.abs(sums).sum() / len(p)) if len(p) else nan


def _bins(p: Array, bins: int) -> NDArray[np.int64]:
    return np.minimum((p * bins).astype(np.int64), bins - 1)


def _resampled(
    rows: tuple[NDArray[np.int64], NDArray[np.int64]], clients: int, random: np.random.Generator
) -> Array:
    """(resamples, pairs) how often each pair is among clients drawn with replacement."""
    shares = np.full(clients, 1.0 / clients)
    multiplicities = random.multinomial(clients, shares, size=RESAMPLES).astype(np.float64)
    product: Array = multiplicities[:, rows[0]] * multiplicities[:, rows[1]]
    return product


def _interval(multiplicities: Array, same: NDArray[np.bool_]) -> tuple[float, float]:
    total = multiplicities.sum(axis=1)
    shares = (multiplicities @ same)[total > 0] / total[total > 0]
    edges = (1 - LEVEL) / 2, (1 + LEVEL) / 2
    low, high = np.quantile(shares, edges) if len(shares) else (0.0, 1.0)
    return float(low), float(high)


def __dir__() -> list[str]:
    return __all__
