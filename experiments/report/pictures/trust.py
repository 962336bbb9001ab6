"""Reliability diagrams, risk-coverage curves and entropy histograms."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import TYPE_CHECKING, Any

import numpy as np

from experiments.report.pictures.drawing import COLOURS, FAINT, line_style, panels
from experiments.scores import uncertainty
from experiments.scores.uncertainty_evaluation import ClientPredictions

if TYPE_CHECKING:
    from matplotlib.axes import Axes
    from matplotlib.figure import Figure

BINS = 10
COLUMNS, WIDTH, HEIGHT = 3, 3.4, 3.0

Predictions = Mapping[str, Mapping[str, ClientPredictions]]
"""By method, then by predictive distribution."""


def draw_reliability(methods: Predictions) -> Figure:
    """Reliability diagram: accuracy against confidence in ten bins, one panel per method."""
    figure, places = panels(len(methods), COLUMNS, WIDTH, HEIGHT)
    styles = _styles(methods)
    for axes, (method, kinds) in zip(places, methods.items(), strict=True):
        axes.plot([0, 1], [0, 1], color=FAINT, linewidth=0.7)
        for kind, shown in kinds.items():
            bins = uncertainty.reliability(shown.probabilities, shown.targets, BINS)
            style = {**styles[kind], "marker": "o", "markersize": 3.5}
            axes.plot(bins.confidence, bins.accuracy, label=kind, gid=f"{method}-{kind}", **style)
        axes.set_xlim(0, 1.02)
        axes.set_ylim(0, 1.02)
        _named(axes, method, "confidence", "accuracy")
    return _with_legend(figure, places)


def draw_risk(methods: Predictions) -> Figure:
    """Risk-coverage curve: error rate of the most confident samples against their share."""
    figure, places = panels(len(methods), COLUMNS, WIDTH, HEIGHT)
    styles = _styles(methods)
    for axes, (method, kinds) in zip(places, methods.items(), strict=True):
        for kind, shown in kinds.items():
            risks, _ = uncertainty.risk_by_coverage(shown.probabilities, shown.targets)
            share = np.arange(1, len(risks) + 1) / len(risks)
            axes.plot(100 * share, 100 * risks, label=kind, gid=f"{method}-{kind}", **styles[kind])
        axes.axhline(100 * uncertainty.RISK, color=FAINT, linewidth=0.7)
        _named(axes, method, "coverage, %", "error rate, %")
    return _with_legend(figure, places)


def draw_entropies(methods: Predictions) -> Figure:
    """Histograms of predictive entropy: own samples, samples of other groups, noise."""
    figure, places = panels(len(methods), COLUMNS, WIDTH, HEIGHT)
    for axes, (method, kinds) in zip(places, methods.items(), strict=True):
        kind, shown = list(kinds.items())[-1]
        edges = np.linspace(0, np.log(shown.probabilities.shape[1]), 21)
        drawn = {"own": shown.own, "other groups": shown.ood, "noise": shown.noise}
        for colour, (name, scores) in zip(COLOURS, drawn.items(), strict=False):
            if len(scores.entropy):
                weights = np.full(len(scores.entropy), 100 / len(scores.entropy))
                axes.hist(
                    np.clip(scores.entropy, 0, edges[-1]),
                    edges.tolist(),
                    weights=weights,
                    histtype="step",
                    linewidth=1.7,
                    color=colour,
                    label=name,
                    gid=f"{method}-{name}",
                )
        _named(axes, f"{method}, {kind}", "entropy, nats", "samples, %")
    return _with_legend(figure, places)


def _named(axes: Axes, title: str, across: str, up: str) -> None:
    axes.set_title(title, loc="left")
    axes.set_xlabel(across)
    axes.set_ylabel(up)
    axes.grid(axis="y")


def _styles(methods: Predictions) -> dict[str, dict[str, Any]]:
    """Line style of each predictive distribution, the same in all panels."""
    kinds = dict.fromkeys(kind for by_kind in methods.values() for kind in by_kind)
    return {kind: line_style(index) for index, kind in enumerate(kinds)}


def _with_legend(figure: Figure, places: Sequence[Axes]) -> Figure:
    drawn: dict[str, Any] = {}
    for axes in places:
        handles, names = axes.get_legend_handles_labels()
        for name, handle in zip(names, handles, strict=True):
            drawn.setdefault(name, handle)
    figure.legend(drawn.values(), drawn.keys(), loc="outside lower left", ncols=len(drawn))
    return figure
