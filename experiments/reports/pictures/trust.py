"""Reliability diagrams, risk-coverage curves and entropy histograms."""

from __future__ import annotations

from collections.abc import Mapping
from typing import TYPE_CHECKING

import numpy as np
from scipy.special import ndtr

from bcfl.analysis import selection
from bcfl.drawing import (
    FAINT,
    draw_reliability,
    kind_styles,
    line_style,
    name_axes,
    panels,
    with_legend,
)
from experiments.scores.client_predictions import ClientPredictions, ClientValues

if TYPE_CHECKING:
    from matplotlib.figure import Figure

COLUMNS, WIDTH, HEIGHT = 3, 3.4, 3.0

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
    levels = np.linspace(0, 1, 21)
    for axes, (method, kinds) in zip(places, methods.items(), strict=True):
        axes.plot([0, 100], [0, 100], color=FAINT, linewidth=0.7)
        for kind, shown in kinds.items():
            z = (shown.targets - shown.mean) / np.sqrt(shown.variance)
            inside = 2 * np.abs(ndtr(z.ravel()) - 0.5)
            covered = [100 * float((inside <= level).mean()) for level in levels]
            axes.plot(100 * levels, covered, label=kind, gid=f"{method}-{kind}", **styles[kind])
        name_axes(axes, method, "interval, %", "values inside, %")
    return with_legend(figure, places)


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
        name_axes(axes, method, "coverage, %", "error rate, %")
    return with_legend(figure, places)


def draw_entropies(methods: Predictions) -> Figure:
    """Histograms of predictive entropy: own samples, samples of other groups, noise."""
    figure, places = panels(len(methods), COLUMNS, WIDTH, HEIGHT)
    for axes, (method, kinds) in zip(places, methods.items(), strict=True):
        kind, shown = list(kinds.items())[-1]
        edges = np.linspace(0, shown.largest_entropy, 21)
        drawn = {"own": shown.own, "other groups": shown.ood, "noise": shown.noise}
        for index, (name, scores) in enumerate(drawn.items()):
            if len(scores.entropy):
                weights = np.full(len(scores.entropy), 100 / len(scores.entropy))
                axes.hist(
                    np.clip(scores.entropy, 0, edges[-1]),
                    edges.tolist(),
                    weights=weights,
                    histtype="step",
                    label=name,
                    gid=f"{method}-{name}",
                    **line_style(index),
                )
        name_axes(axes, f"{method}, {kind}", "entropy, nats", "samples, %")
    return with_legend(figure, places)
