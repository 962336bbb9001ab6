"""Clustering temperature over rounds.

After Figure 3 of Zuziak, Pellungrini and Rinzivillo, "One-Shot Clustering for Federated Learning".
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING, Any

import numpy as np
from numpy.typing import NDArray

from bcfl.drawing import FAINT, INK, mark_rounds, spread, whole_numbers
from experiments.reports.pictures.curves import Series, Styles, mark_ends, seed_mean
from experiments.reports.pictures.method_styles import method_styles

if TYPE_CHECKING:
    from matplotlib.axes import Axes
    from matplotlib.figure import Figure

HEIGHT, WIDTH, RIGHT = 3.1, 10.4, 0.66


def draw_temperature(series: Series, methods: Sequence[str]) -> Figure:
    """Mean over seeds with a band from minimum to maximum; points mark the last round of seeds.

    Methods with identical values share a line.

    Args:
        series: (seeds, rounds) temperatures by method; NaN where unknown.
        methods: all methods of the run, so that a method has one line style in all figures.
    """
    from matplotlib.figure import Figure

    figure = Figure(figsize=(WIDTH, HEIGHT))
    axes = figure.subplots()
    figure.subplots_adjust(left=0.05, right=RIGHT, top=0.89, bottom=0.16)
    ends, styles = [], method_styles(methods)
    for names in alike(series):
        _draw_line(axes, series[names[0]], names[0], styles)
        mean = seed_mean(series[names[0]])
        known = np.flatnonzero(np.isfinite(mean))
        ends.append((names, int(known[-1]) + 1, float(mean[known[-1]])))
    mark_rounds(axes, "temperature", max(values.shape[1] for values in series.values()))
    axes.set_title("clustering temperature", loc="left")
    axes.set_xlabel("round")
    axes.grid(axis="y")
    axes.margins(x=0.02, y=0.12)
    axes.xaxis.set_major_locator(whole_numbers())
    _name_lines(axes, ends, styles)
    return figure


def alike(series: Series) -> list[tuple[str, ...]]:
    """Methods grouped by identical values, in their order."""
    groups: list[tuple[str, ...]] = []
    for method, values in series.items():
        for place, names in enumerate(groups):
            if np.array_equal(series[names[0]], values, equal_nan=True):
                groups[place] = (*names, method)
                break
        else:
            groups.append((method,))
    return groups


def _draw_line(axes: Axes, values: NDArray[np.float64], method: str, styles: Styles) -> None:
    style, rounds = styles[method], np.arange(1, values.shape[1] + 1)
    known = np.ma.masked_invalid(values)
    if len(values) > 1:
        low, high = known.min(axis=0).filled(np.nan), known.max(axis=0).filled(np.nan)
        axes.fill_between(rounds, low, high, color=style["color"], alpha=0.12, linewidth=0)
    axes.plot(rounds, seed_mean(values), gid=f"temperature-line-{method}", **style)
    mark_ends(axes, values, style["color"])


def _name_lines(
    axes: Axes, ends: Sequence[tuple[tuple[str, ...], int, float]], styles: Styles
) -> None:
    low, high = axes.get_ylim()
    left, right = axes.get_xlim()
    heights = [(value - low) / (high - low) for _, _, value in ends]
    places = spread(heights, 0.085, 0.02, 0.98)
    for (names, round, _), start, place in zip(ends, heights, places, strict=True):
        across = (round - left) / (right - left)
        options: dict[str, Any] = {"transform": axes.transAxes, "clip_on": False}
        axes.plot([across, 1.02], [start, place], color=FAINT, linewidth=0.5, **options)
        style = styles[names[0]]
        axes.plot([1.025, 1.065], [place, place], **options, **style)
        name = shortened(names)
        axes.text(1.075, place, name, va="center", fontsize=9.5, color=INK, **options)


def shortened(names: Sequence[str]) -> str:
    """Join names of methods, writing the common stem of the first once."""
    first, *others = names
    stem = first.rpartition("-")[0] + "-"
    return ", ".join([first, *(o[len(stem) - 1 :] if o.startswith(stem) else o for o in others)])
