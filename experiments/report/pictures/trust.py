"""How far predictions can be trusted: reliability, risk against coverage, entropies."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import TYPE_CHECKING, Any

import numpy as np

from bcfl.analysis import uncertainty
from experiments.report.pictures.drawing import COLOURS, FAINT, line_style, panels
from experiments.scores.trial import ClientPredictions

if TYPE_CHECKING:
    from matplotlib.axes import Axes
    from matplotlib.figure import Figure

BINS = 10
COLUMNS, WIDTH, HEIGHT = 3, 3.4, 3.0

Outcomes = Mapping[str, Mapping[str, ClientPredictions]]
"""By method, then by kind of prediction."""


def draw_reliability(methods: Outcomes) -> Figure:
    """Accuracy against confidence in ten bins; on the diagonal confidence is right."""
    figure, places = panels(len(methods), COLUMNS, WIDTH, HEIGHT)
    styles = _styles(methods)
    for axes, (method, kinds) in zip(places, methods.items(), strict=True):
        axes.plot([0, 1], [0, 1], color=FAINT, linewidth=0.7)
        for kind, one in kinds.items():
            bins = uncertainty.reliability(one.probabilities, one.targets, BINS)
            style = {**styles[kind], "marker": "o", "markersize": 3.5}
            axes.plot(bins.confidence, bins.accuracy, label=kind, gid=f"{method}-{kind}", **style)
        axes.set_xlim(0, 1.02)
        axes.set_ylim(0, 1.02)
        _named(axes, method, "confidence", "accuracy")
    return _with_key(figure, places)


def draw_risk(methods: Outcomes) -> Figure:
    """Share of errors among the most confident samples, against the share that is kept."""
    figure, places = panels(len(methods), COLUMNS, WIDTH, HEIGHT)
    styles = _styles(methods)
    for axes, (method, kinds) in zip(places, methods.items(), strict=True):
        for kind, one in kinds.items():
            risks, _ = uncertainty.risk_by_coverage(one.probabilities, one.targets)
            share = np.arange(1, len(risks) + 1) / len(risks)
            axes.plot(100 * share, 100 * risks, label=kind, gid=f"{method}-{kind}", **styles[kind])
        axes.axhline(100 * uncertainty.RISK, color=FAINT, linewidth=0.7)
        _named(axes, method, "samples kept, %", "errors, %")
    return _with_key(figure, places)


def draw_entropies(methods: Outcomes) -> Figure:
    """Entropies of the last kind of prediction: own samples, those of other groups, noise."""
    figure, places = panels(len(methods), COLUMNS, WIDTH, HEIGHT)
    for axes, (method, kinds) in zip(places, methods.items(), strict=True):
        kind, one = list(kinds.items())[-1]
        edges = np.linspace(0, np.log(one.probabilities.shape[1]), 21)
        drawn = {"own": one.own, "other groups": one.strange, "noise": one.noise}
        for colour, (name, doubt) in zip(COLOURS, drawn.items(), strict=False):
            if len(doubt.entropy):
                weights = np.full(len(doubt.entropy), 100 / len(doubt.entropy))
                axes.hist(
                    np.clip(doubt.entropy, 0, edges[-1]),
                    edges.tolist(),
                    weights=weights,
                    histtype="step",
                    linewidth=1.7,
                    color=colour,
                    label=name,
                    gid=f"{method}-{name}",
                )
        _named(axes, f"{method}, {kind}", "entropy, nats", "samples, %")
    return _with_key(figure, places)


def _named(axes: Axes, title: str, across: str, up: str) -> None:
    axes.set_title(title, loc="left")
    axes.set_xlabel(across)
    axes.set_ylabel(up)
    axes.grid(axis="y")


def _styles(methods: Outcomes) -> dict[str, dict[str, Any]]:
    """A line style for each kind of prediction, the same in all panels."""
    kinds = dict.fromkeys(kind for found in methods.values() for kind in found)
    return {kind: line_style(index) for index, kind in enumerate(kinds)}


def _with_key(figure: Figure, places: Sequence[Axes]) -> Figure:
    drawn: dict[str, Any] = {}
    for axes in places:
        handles, names = axes.get_legend_handles_labels()
        for name, handle in zip(names, handles, strict=True):
            drawn.setdefault(name, handle)
    figure.legend(drawn.values(), drawn.keys(), loc="outside lower left", ncols=len(drawn))
    return figure
