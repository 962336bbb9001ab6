"""Texts of the bins of figures of reliability, risk, coverage and scores."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence

import numpy as np
from numpy.typing import NDArray

from bcfl.analysis import pairs
from bcfl.drawing import bin_of, pair_bin, wilson
from bcfl.runtime import counted
from experiments.reports.pictures.drawing import signed
from experiments.reports.pictures.trust import (
    SHARES_SHOWN,
    Predictions,
    covered_shares,
    entropy_edges,
    histogram,
    score_edges,
    source_name,
    sources,
)
from experiments.scores.client_predictions import ClientValues, Predicted

Tips = dict[str, str]


def pair_tips(methods: Mapping[str, pairs.PairReliability], group: str) -> Tips:
    """Share of pairs of one group in each bin, with its interval and the number of pairs.

    Args:
        methods: bins by method.
        group: what groups are called.
    """
    tips = {}
    for method, bins in methods.items():
        told = zip(bins.predicted, bins.observed, bins.low, bins.high, bins.counts, strict=True)
        for predicted, observed, low, high, count in told:
            tips[f"band-{method}-{pair_bin(predicted, bins.num_bins) + 1}"] = (
                f"{method}, probability {predicted:.2f}\n"
                f"of one {group} {observed:.1%} ({low:.1%} to {high:.1%})\n{counted(count, 'pair')}"
            )
    return tips


def calibration_tips(methods: Predictions) -> Tips:
    """Accuracy in each bin of confidence, with its interval and the number of samples.

    Args:
        methods: predictions by method and kind.
    """
    lines: dict[str, dict[str, str]] = {}
    for method, kinds in methods.items():
        for kind, shown in kinds.items():
            bins = shown.bins
            low, high = wilson(bins.accuracy, bins.counts)
            for row, count in enumerate(bins.counts):
                index = bin_of(bins.confidence[row], bins.num_bins)
                start, end = (round((index + i) / bins.num_bins, 2) for i in (0, 1))
                title = f"{method}, confidence {start} to {end}"
                lines.setdefault(f"band-{method}-{index + 1}", {"": title})[kind] = (
                    f"{bins.accuracy[row]:.1%} right ({low[row]:.1%} to {high[row]:.1%}) "
                    f"of {count:,}"
                )
    return {name: _aligned(rows) for name, rows in lines.items()}


def risk_tips(methods: Predictions) -> Tips:
    """Error rate of the most confident samples at shares of all samples.

    Args:
        methods: predictions by method and kind.
    """
    tips = {}
    for method, kinds in methods.items():
        for number, share in enumerate(SHARES_SHOWN[1:], start=1):
            rows = {"": f"{method}, most confident {share:.0%} of samples"}
            for kind, shown in kinds.items():
                risks = shown.selected.risks
                last = max(0, round(share * len(risks)) - 1)
                rows[kind] = f"{risks[last]:.2%} wrong"
            tips[f"band-{method}-{number}"] = _aligned(rows)
    return tips


def coverage_tips(methods: Mapping[str, Mapping[str, ClientValues]]) -> Tips:
    """Share of values inside each predictive interval.

    Args:
        methods: predictions by method and kind.
    """
    tips = {}
    for method, kinds in methods.items():
        covered = {kind: covered_shares(shown) for kind, shown in kinds.items()}
        for index, level in enumerate(SHARES_SHOWN):
            rows = {kind: f"{shares[index]:.1%} inside" for kind, shares in covered.items()}
            title = {"": f"{method}, {level:.0%} interval"}
            tips[f"band-{method}-{index + 1}"] = _aligned({**title, **rows})
    return tips


def ood_tips(methods: Mapping[str, Mapping[str, Predicted]], group: str = "group") -> Tips:
    """Share of the samples of each source in each bin of out-of-distribution scores.

    Args:
        methods: predictions by method and kind.
        group: what groups are called.
    """
    found = {m: sources(next(iter(kinds.values())), "ood_score") for m, kinds in methods.items()}
    return _joined(histogram_tips(m, of, score_edges(of), group) for m, of in found.items())


def entropy_tips(methods: Predictions, group: str = "group") -> Tips:
    """Share of the samples of each source in each bin of entropies.

    Args:
        methods: predictions by method and kind, of which the last is drawn.
        group: what groups are called.
    """
    last = {method: list(kinds.values())[-1] for method, kinds in methods.items()}
    return _joined(
        histogram_tips(method, sources(shown, "entropy"), entropy_edges(shown), group)
        for method, shown in last.items()
    )


def histogram_tips(
    method: str,
    found: Mapping[str, NDArray[np.float64]],
    edges: NDArray[np.float64],
    group: str = "group",
) -> Tips:
    """Share of the samples of each source in each bin.

    Args:
        method: name of the panel.
        found: (samples,) scores by source.
        edges: (bins + 1,) ascending.
        group: what groups are called.
    """
    bounds = [signed("{:.2f}", edge) for edge in edges]
    shares = {source_name(n, group): histogram(values, edges) for n, values in found.items()}
    return {
        f"band-{method}-{index + 1}": _aligned(
            {
                "": f"{method}, {bounds[index]} to {bounds[index + 1]} nats",
                **{name: f"{heights[index]:.1f} %" for name, heights in shares.items()},
            }
        )
        for index in range(len(edges) - 1)
    }


def _joined(parts: Iterable[Tips]) -> Tips:
    return {name: text for part in parts for name, text in part.items()}


def _aligned(rows: Mapping[str, str]) -> str:
    """A title, which has the key "", and lines with their names in a column."""
    width = max(map(len, rows))
    lines: Sequence[str] = [
        f"{name:{width}}  {text}" if name else text for name, text in rows.items()
    ]
    return "\n".join(lines)
