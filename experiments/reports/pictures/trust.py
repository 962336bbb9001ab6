"""How far predictions can be trusted: reliability, risk against coverage, entropies."""

from __future__ import annotations

from collections.abc import Mapping
from typing import TYPE_CHECKING

import numpy as np

from bcfl.analysis import uncertainty
from bcfl.drawing import (
    COLOURS,
    FAINT,
    draw_reliability,
    kind_styles,
    name_axes,
    panels,
    with_key,
)
from experiments.scores.trial import ClientPredictions

if TYPE_CHECKING:
    from matplotlib.figure import Figure

BINS = 10
COLUMNS, WIDTH, HEIGHT = 3, 3.4, 3.0

Outcomes = Mapping[str, Mapping[str, ClientPredictions]]
"""By method, then by kind of prediction."""


def draw_calibration(methods: Outcomes) -> Figure:
    """Accuracy against confidence in ten bins; on the diagonal confidence is right."""
    return draw_reliability(
        {
            method: {
                kind: uncertainty.reliability(one.probabilities, one.targets, BINS)
                for kind, one in kinds.items()
            }
            for method, kinds in methods.items()
        }
    )


def draw_risk(methods: Outcomes) -> Figure:
    """Share of errors among the most confident samples, against the share that is kept."""
    figure, places = panels(len(methods), COLUMNS, WIDTH, HEIGHT)
    styles = kind_styles(methods.values())
    for axes, (method, kinds) in zip(places, methods.items(), strict=True):
        for kind, one in kinds.items():
            risks, _ = uncertainty.risk_by_coverage(one.probabilities, one.targets)
            share = np.arange(1, len(risks) + 1) / len(risks)
            axes.plot(100 * share, 100 * risks, label=kind, gid=f"{method}-{kind}", **styles[kind])
        axes.axhline(100 * uncertainty.RISK, color=FAINT, linewidth=0.7)
        name_axes(axes, method, "samples kept, %", "errors, %")
    return with_key(figure, places)


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
        name_axes(axes, f"{method}, {kind}", "entropy, nats", "samples, %")
    return with_key(figure, places)
