"""Metrics over rounds, one line per method."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

import numpy as np
from numpy.typing import NDArray

from bcfl.drawing import (
    FAINT,
    INK,
    NARROW,
    WIDTH,
    mark_rounds,
    spread,
    whole_numbers,
    wrapped,
)
from experiments.reports.pictures.drawing import Picture, signed
from experiments.reports.pictures.method_styles import method_styles
from experiments.reports.pictures.time_steps import NO_STEPS, TimeSteps

if TYPE_CHECKING:
    from matplotlib.axes import Axes
    from matplotlib.figure import Figure

LETTER, SHORT = 0.078, 8
"""Width of a letter of a name beside its line, inches, and how many letters always have room."""
NARROW_NAME, LINE = 8, 0.19
"""Letters of the names that stand in two columns of a narrow legend, and height of its lines."""
NAME, NARROW_LINE = 20, 31
"""Letters of the lines of a name beside its line, and in a narrow legend."""
LEAST_SIDE = 2.2
"""Width of a panel of curves beside long names, inches."""


Series = Mapping[str, NDArray[np.float64]]
"""(seeds, rounds) float64 values by method, NaN where unknown."""
Styles = Mapping[str, Mapping[str, Any]]
"""Line style of each method of a page."""


@dataclass(frozen=True, kw_only=True)
class Panel:
    """One panel of curves.

    Attributes:
        name: prefix of the ids of its lines.
        title: quantity with its unit.
        series: values by method.
        format: format of the last value beside its line.
        zoom: whether to fit the vertical axis to the values after the first fifth of the rounds.
        limits: minimum extent of the vertical axis.
        least: height of the vertical axis at least, where it is fitted to the values.
        points: whether a point marks the last value of each seed.
    """

    name: str
    title: str
    series: Series
    format: str = "{:z.2f}"
    zoom: bool = False
    limits: tuple[float, float] | None = None
    least: float = 0.0
    points: bool = False


def named(panels: Sequence[Panel]) -> str:
    """The quantities of those panels that have values, as the beginning of a title.

    Args:
        panels: of a figure.
    """
    names = " and ".join(panel.title.partition(",")[0] for panel in panels if panel.series)
    return names[:1].upper() + names[1:]


def picture(
    panels: Sequence[Panel],
    methods: Sequence[str],
    name: str,
    title: str,
    look: str,
    steps: TimeSteps = NO_STEPS,
) -> Picture | None:
    """The panels that have values as one figure, with the values of a round; None if none has.

    Args:
        panels: of the figure.
        methods: all methods of the run, by which lines are coloured.
        name: prefix of all ids in the figure.
        title: text alternative for screen readers.
        look: how to read it.
        steps: time steps of the rounds, whose beginnings are marked.
    """
    shown = [panel for panel in panels if panel.series]
    if not shown:
        return None
    several = any(len(values) > 1 for panel in shown for values in panel.series.values())
    band = " Line: mean over seeds; band: minimum to maximum." if several else ""
    return Picture.of(
        steps.marked(lambda: draw_curves(shown, methods)),
        name,
        title,
        look + band + steps.caption,
        round_tips(shown),
        narrow=steps.marked(lambda: draw_narrow_curves(shown, methods)),
    )


def draw_curves(panels: list[Panel], methods: Sequence[str]) -> Figure:
    """Curves of the mean over seeds with a band from minimum to maximum.

    Args:
        panels: one or two panels.
        methods: all methods of the run, so that a method has one line style in all figures.
    """
    from matplotlib.figure import Figure

    longest = max(len(panel.series) for panel in panels)
    names = [wrapped(name, NAME).split("\n") for panel in panels for name in panel.series]
    lines = max(map(len, names), default=1)
    height = max(3.3, 0.7 + (0.26 + 0.19 * (lines - 1)) * longest)
    label = max((len(line) for name in names for line in name), default=0)
    extra = max(0.0, LETTER * (label - SHORT))
    side = max(LEAST_SIDE, 3.2 - extra)
    width = WIDTH + 2 * (side - 3.2 + extra)
    figure = Figure(figsize=(width, height))
    axes = figure.subplots(1, 2, squeeze=False)[0]
    figure.subplots_adjust(
        left=0.52 / width,
        right=1 - (1.508 + extra) / width,
        wspace=(1.98 + extra) / side,
        top=0.9,
        bottom=0.5 / height,
    )
    styles, gap = method_styles(methods), 0.19 * lines / (0.9 * height - 0.5)
    for panel, place in zip(panels, axes, strict=False):
        ends = _draw_panel(place, panel, styles)
        _label_ends(place, ends, panel.format, gap, styles)
    for unused in axes[len(panels) :]:
        unused.set_axis_off()
    return figure


def draw_narrow_curves(panels: list[Panel], methods: Sequence[str]) -> Figure:
    """The curves of `draw_curves` one below the other, with the last values in legends.

    Args:
        panels: one or more panels.
        methods: all methods of the run.
    """
    from matplotlib.figure import Figure

    letters = max((len(name) for panel in panels for name in panel.series), default=0)
    columns = 2 if letters < NARROW_NAME else 1
    names = [[wrapped(name, NARROW_LINE) for name in panel.series] for panel in panels]
    lines = [-(-sum(1 + name.count("\n") for name in shown) // columns) for shown in names]
    width, plot, above, below = NARROW, 2.0, 0.4, 0.5
    height = sum(above + plot + below + LINE * count for count in lines)
    figure, top, styles = Figure(figsize=(width, height)), height, method_styles(methods)
    for panel, count in zip(panels, lines, strict=True):
        top -= above + plot
        axes = figure.add_axes((0.55 / width, top / height, 3.05 / width, plot / height))
        ends = _draw_panel(axes, panel, styles)
        axes.legend(
            [axes.plot([], [], **styles[name])[0] for name, *_ in ends],
            [
                f"{wrapped(name, NARROW_LINE)}  {signed(panel.format, value)}"
                for name, _, value in ends
            ],
            loc="upper left",
            bbox_to_anchor=(-0.12, -below / plot),
            ncols=columns,
            borderaxespad=0.0,
            handlelength=4.65,
            columnspacing=1.0,
        )
        top -= below + LINE * count
    return figure


def seed_mean(values: NDArray[np.float64]) -> NDArray[np.float64]:
    """(rounds,) float64 mean over the seeds with known values; NaN where there is none.

    Args:
        values: (seeds, rounds) values, NaN where unknown.
    """
    return np.ma.masked_invalid(values).mean(axis=0).filled(np.nan)  # type: ignore[no-any-return]


def lone_points(values: NDArray[np.float64]) -> list[int]:
    """Indices of the known values without a known neighbour, to which no line leads.

    Args:
        values: (rounds,) values, NaN where unknown.
    """
    known = np.pad(np.isfinite(values), 1)
    lone: list[int] = np.flatnonzero(known[1:-1] & ~known[:-2] & ~known[2:]).tolist()
    return lone


def round_tips(panels: Sequence[Panel]) -> dict[str, str]:
    """Text of each round's band: the value of every method, mean over seeds.

    Args:
        panels: those of one figure.
    """
    tips = {}
    for panel in panels:
        means = {method: seed_mean(values) for method, values in panel.series.items()}
        width = max(map(len, means), default=0)
        for index in range(max((len(row) for row in means.values()), default=0)):
            lines = [
                f"{method:{width}}  {signed(panel.format, row[index])}"
                for method, row in means.items()
                if index < len(row) and np.isfinite(row[index])
            ]
            title = f"round {index + 1}, {panel.title}"
            tips[f"round-{panel.name}-{index + 1}"] = "\n".join([title, *lines])
    return tips


def _draw_panel(axes: Axes, panel: Panel, styles: Styles) -> list[tuple[str, int, float]]:
    """Draw the lines; name, last known round and value in it of each method that has one."""
    ends = []
    for method, values in panel.series.items():
        known = np.ma.masked_invalid(values)
        mean, rounds = seed_mean(values), np.arange(1, values.shape[1] + 1)
        style = styles[method]
        low, high = known.min(axis=0).filled(np.nan), known.max(axis=0).filled(np.nan)
        if len(values) > 1:
            axes.fill_between(rounds, low, high, color=style["color"], alpha=0.1, linewidth=0)
        (line,) = axes.plot(rounds, mean, gid=f"{panel.name}-line-{method}", **style)
        line.set(marker="o", markersize=5, markevery=lone_points(mean))
        if panel.points:
            mark_ends(axes, values, style["color"])
        for last in np.flatnonzero(np.isfinite(mean))[-1:].tolist():
            ends.append((method, last + 1, float(mean[last])))
    axes.set_title(panel.title, loc="left")
    axes.set_xlabel("round")
    axes.grid(axis="y")
    axes.margins(x=0.02)
    axes.xaxis.set_major_locator(whole_numbers())
    if panel.limits:
        low, high = axes.get_ylim()
        axes.set_ylim(min(panel.limits[0], low), max(panel.limits[1], high))
    if panel.zoom:
        _leave_out_start(axes, panel)
    mark_rounds(axes, panel.name, max(v.shape[1] for v in panel.series.values()))
    return ends


def mark_ends(axes: Axes, values: NDArray[np.float64], colour: str) -> None:
    """A point at the last known value of each seed.

    Args:
        axes: the panel.
        values: (seeds, rounds) values, NaN where unknown.
        colour: of the points.
    """
    for curve in values:
        for last in np.flatnonzero(np.isfinite(curve))[-1:].tolist():
            axes.plot(last + 1, curve[last], "o", markersize=4.5, color=colour)


def _leave_out_start(axes: Axes, panel: Panel) -> None:
    later = [values[:, values.shape[1] // 5 :] for values in panel.series.values()]
    known = np.concatenate([values[np.isfinite(values)] for values in later])
    if not known.size:
        return
    high = known.max()
    low = min(known.min(), high - panel.least)
    if high > low:
        margin = 0.04 * (high - low)
        axes.set_ylim(low - margin, high + margin)


def _label_ends(
    axes: Axes, ends: list[tuple[str, int, float]], form: str, gap: float, styles: Styles
) -> None:
    """Names and last values at the right, each led to from where its line ends."""
    bottom, top = axes.get_ylim()
    left, right = axes.get_xlim()
    heights = [(value - bottom) / (top - bottom) for *_, value in ends]
    places = spread(heights, gap, 0.0, 1.0)
    latest = max((last for _, last, _ in ends), default=0)
    for (method, last, value), start, place in zip(ends, heights, places, strict=True):
        across = min(1.0, (last - left) / (right - left))
        options: dict[str, Any] = {"transform": axes.transAxes, "clip_on": False}
        led = [across, 1.0, 1.04], [start, start, place]
        dots = "-" if last == latest else ":"
        axes.plot(*led, color=FAINT, linewidth=0.5, linestyle=dots, **options)
        axes.plot([1.05, 1.14], [place, place], **options, **styles[method])
        axes.text(
            1.16,
            place,
            f"{wrapped(method, NAME)}  {signed(form, value)}",
            va="center",
            fontsize=9.5,
            color=INK,
            transform=axes.transAxes,
        )
