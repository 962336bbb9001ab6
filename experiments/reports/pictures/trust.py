"""Reliability diagrams, risk-coverage curves, histograms of entropies and OOD scores."""

from __future__ import annotations

from collections.abc import Mapping
from typing import TYPE_CHECKING, Literal

import numpy as np
from numpy.typing import NDArray
from scipy.special import ndtr

from bcfl.analysis import selection
from bcfl.drawing import (
    FAINT,
    draw_reliability,
    kind_styles,
    line_style,
    mark_bands,
    name_axes,
    panels,
    with_legend,
)
from experiments.scores.client_predictions import ClientPredictions, ClientValues, Predicted

if TYPE_CHECKING:
    from matplotlib.axes import Axes
    from matplotlib.figure import Figure

COLUMNS, WIDTH, HEIGHT = 3, 3.4, 3.0
SHARES_SHOWN = np.linspace(0, 1, 21)
"""Levels of intervals, and shares of samples whose risk a page tells."""
OUTERMOST = (1, 99)
"""Percentiles of out-of-distribution scores beyond which they stand in the outermost bins."""

SOURCES = ("own", "other groups", "noise")
"""What samples are of; where groups are concepts, the second is named after these."""
Predictions = Mapping[str, Mapping[str, ClientPredictions]]
"""By method, then by predictive distribution."""


def draw_calibration(methods: Predictions) -> Figure:
    """Reliability diagram: accuracy against confidence in ten bins, one panel per method."""
    return draw_reliability(
        {m: {kind: shown.bins for kind, shown in kinds.items()} for m, kinds in methods.items()}
    )


def draw_coverage(methods: Mapping[str, Mapping[str, ClientValues]]) -> Figure:
    """Share of values inside central predictive intervals against their probability."""
    figure, places = panels(len(methods), COLUMNS, WIDTH, HEIGHT)
    styles = kind_styles(methods.values())
    for axes, (method, kinds) in zip(places, methods.items(), strict=True):
        axes.plot([0, 100], [0, 100], color=FAINT, linewidth=0.7)
        for kind, shown in kinds.items():
            covered = 100 * covered_shares(shown)
            style = {**styles[kind], "label": kind, "gid": f"{method}-{kind}"}
            axes.plot(100 * SHARES_SHOWN, covered, **style)
        mark_bands(axes, method, around(100 * SHARES_SHOWN))
        name_axes(axes, method, "interval, %", "values inside, %")
    return with_legend(figure, places)


def covered_shares(shown: ClientValues) -> NDArray[np.float64]:
    """(21,) float64 share of values inside the central predictive intervals of `SHARES_SHOWN`."""
    z = (shown.targets - shown.mean) / np.sqrt(shown.variance)
    inside = 2 * np.abs(ndtr(z.ravel()) - 0.5)
    shares: NDArray[np.float64] = (inside[:, None] <= SHARES_SHOWN).mean(axis=0)
    return shares


def around(places: NDArray[np.float64]) -> list[float]:
    """Edges of bands about places at equal distances.

    Args:
        places: (n,) ascending, at least two.
    """
    step = float(places[1] - places[0])
    return [*(places - step / 2).tolist(), float(places[-1]) + step / 2]


def draw_risk(methods: Predictions) -> Figure:
    """Risk-coverage curve: error rate of the most confident samples against their share."""
    figure, places = panels(len(methods), COLUMNS, WIDTH, HEIGHT)
    styles = kind_styles(methods.values())
    for axes, (method, kinds) in zip(places, methods.items(), strict=True):
        for kind, shown in kinds.items():
            risks = shown.selected.risks
            share = np.arange(1, len(risks) + 1) / len(risks)
            axes.plot(100 * share, 100 * risks, label=kind, gid=f"{method}-{kind}", **styles[kind])
        axes.axhline(100 * selection.RISK, color=FAINT, linewidth=0.7)
        mark_bands(axes, method, around(100 * SHARES_SHOWN[1:]))
        name_axes(axes, method, "coverage, %", "error rate, %")
    return with_legend(figure, places)


def draw_entropies(methods: Predictions, group: str = "group") -> Figure:
    """Histograms of predictive entropy: own samples, samples of other groups, noise.

    Args:
        methods: by method, then by predictive distribution, of which the last is drawn.
        group: what groups are called.
    """
    figure, places = panels(len(methods), COLUMNS, WIDTH, HEIGHT)
    for axes, (method, kinds) in zip(places, methods.items(), strict=True):
        kind, shown = list(kinds.items())[-1]
        edges = entropy_edges(shown)
        _draw_histograms(axes, method, sources(shown, "entropy"), edges, group)
        name_axes(axes, f"{method}, {kind}", "entropy, nats", "samples, %")
    return with_legend(figure, places)


def entropy_edges(shown: ClientPredictions) -> NDArray[np.float64]:
    """(21,) float64 edges of bins from 0 to the entropy of a uniform prediction, nats."""
    return np.linspace(0, shown.largest_entropy, 21)


def draw_ood_scores(methods: Mapping[str, Mapping[str, Predicted]], group: str = "group") -> Figure:
    """Histograms of the out-of-distribution score, which no kind of prediction changes.

    Args:
        methods: by method, then by predictive distribution.
        group: what groups are called.
    """
    figure, places = panels(len(methods), COLUMNS, WIDTH, HEIGHT)
    for axes, (method, kinds) in zip(places, methods.items(), strict=True):
        found = sources(next(iter(kinds.values())), "ood_score")
        _draw_histograms(axes, method, found, score_edges(found), group)
        name_axes(axes, method, "out-of-distribution score, nats", "samples, %")
    return with_legend(figure, places)


def sources(
    shown: Predicted, score: Literal["entropy", "ood_score"]
) -> dict[str, NDArray[np.float64]]:
    """(samples,) float64 finite scores of own samples, those of other groups and noise.

    Args:
        shown: predictions; sources without samples are left out.
        score: name of the score.
    """
    all_of = dict(zip(SOURCES, (shown.own, shown.ood, shown.noise), strict=True))
    found = {name: np.asarray(getattr(of, score)) for name, of in all_of.items()}
    finite = {name: values[np.isfinite(values)] for name, values in found.items()}
    return {name: values for name, values in finite.items() if len(values)}


def source_name(name: str, group: str) -> str:
    """Name of a source of samples.

    Args:
        name: one of `SOURCES`.
        group: what groups are called.
    """
    return name.replace("group", group)


def score_edges(found: Mapping[str, NDArray[np.float64]]) -> NDArray[np.float64]:
    """(21,) float64 edges of bins between outer percentiles of each source.

    Noise, whose scores may be far higher than those of all samples, counts only where it is the
    only other source.

    Args:
        found: (samples,) scores by source.
    """
    shown = [name for name in found if name != "noise" or "other groups" not in found]
    ends = [np.percentile(found[name], OUTERMOST) for name in shown] or [np.zeros(2)]
    low, high = np.min(ends), np.max(ends)
    return np.linspace(low, high if high > low else low + 1, 21)


def histogram(values: NDArray[np.float64], edges: NDArray[np.float64]) -> NDArray[np.float64]:
    """(bins,) float64 share of values in each bin, in %; values beyond count in the outermost.

    Args:
        values: (samples,) at least one.
        edges: (bins + 1,) ascending.
    """
    counts, _ = np.histogram(np.clip(values, edges[0], edges[-1]), edges)
    return 100 * counts / len(values)


def _draw_histograms(
    axes: Axes,
    method: str,
    found: Mapping[str, NDArray[np.float64]],
    edges: NDArray[np.float64],
    group: str,
) -> None:
    for index, name in enumerate(SOURCES):
        if name in found:
            shares, gid = histogram(found[name], edges), f"{method}-{name}"
            label = source_name(name, group)
            axes.stairs(shares, edges, label=label, gid=gid, **line_style(index))
    mark_bands(axes, method, edges.tolist())
