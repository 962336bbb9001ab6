"""The papers' figures, drawn from our results."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from itertools import product
from pathlib import Path
from typing import TYPE_CHECKING, Any

import numpy as np
from numpy.typing import NDArray

from bcfl.drawing import COLOURS, FAINT, bottom_panels, in_style, line_style, panels, whole_numbers
from experiments.published.comparison import Comparison, Line
from experiments.published.results import FACTS, Results
from experiments.published.segments import draw_segments
from experiments.published.table import Figure
from experiments.published.units import units_of

if TYPE_CHECKING:
    from matplotlib.axes import Axes
    from matplotlib.figure import Figure as Drawing

Curves = dict[tuple[str, str, str], list[Sequence[float | None]]]
ACROSS, WIDTH, HEIGHT, LEGEND_WIDTH = 2, 5.6, 3.4, 1.5
MOST_BANDS = 6
"""Bands of more methods than this would hide one another."""
THEIRS, OURS = COLOURS[2], COLOURS[5]


def draw(
    comparison: Comparison, results: Results, folder: Path, seeds: Sequence[int] | None = None
) -> list[Path]:
    """Draw the figures of a table from its results, if there are any.

    Args:
        comparison: table and results.
        results: ours, with values over rounds.
        folder: where SCALE-figure-N.svg is written.
        seeds: other seeds than those of the scale.

    Returns:
        The files.
    """
    paths = []
    for number, figure in enumerate(comparison.table.figures, start=1):
        path = folder / f"{comparison.scale}-figure-{number}.svg"
        with in_style():
            match figure.kind:
                case "bars":
                    drawn = _bars(comparison, figure)
                case "segments":
                    drawn = draw_segments(comparison, figure)
                case _:
                    drawn = _curves(comparison, figure, results, seeds)
            if drawn is None:
                continue
            path.parent.mkdir(parents=True, exist_ok=True)
            drawn.savefig(path, metadata={"Date": None})
        paths.append(path)
    return paths


def _bars(comparison: Comparison, figure: Figure) -> Drawing | None:
    """Bars of means with standard deviations, theirs beside ours; a panel for each metric."""
    by_column: dict[str, list[Line]] = {}
    for line in comparison.lines:
        by_column.setdefault(line.column.title, []).append(line)
    shown = {
        title: lines for title, lines in by_column.items() if any(line.seeds for line in lines)
    }
    if not shown:
        return None
    rows = max(map(len, shown.values()))
    drawn, axes = panels(len(shown) * len(figure.metrics), ACROSS, WIDTH, 1.2 + 0.36 * rows)
    places = iter(axes)
    for title, lines in shown.items():
        for metric, name in zip(figure.metrics, figure.titles, strict=True):
            _bars_of(next(places), lines, metric, f"{title}: {name}")
    axes[0].legend(loc="lower left", fontsize=7)
    return drawn


def _bars_of(axes: Axes, lines: Sequence[Line], metric: str, title: str) -> None:
    for index, line in enumerate(lines):
        cell = next(cell for cell in line.cells if cell.metric.measured == metric)
        bars = (
            (cell.printed.mean, cell.printed.deviation, -0.2, THEIRS, "theirs"),
            (cell.mean, cell.deviation, 0.2, OURS, "ours"),
        )
        for mean, deviation, shift, colour, label in bars:
            if mean is not None:
                axes.barh(
                    index + shift,
                    mean,
                    0.38,
                    xerr=deviation,
                    color=colour,
                    label=label if index == 0 else None,
                    error_kw={"linewidth": 0.8},
                )
    axes.set_yticks(range(len(lines)), [line.row.name for line in lines])
    axes.invert_yaxis()
    axes.set_title(title)
    axes.grid(axis="x")


def _curves(
    comparison: Comparison, figure: Figure, results: Results, seeds: Sequence[int] | None
) -> Drawing | None:
    """Means over seeds by round, a panel for each metric.

    They have bands of one standard deviation unless there are more than `MOST_BANDS` methods.
    """
    kept = _kept(comparison, figure, results, seeds)
    titles = list(dict.fromkeys(column for _, column, _ in kept))
    if not titles:
        return None
    drawn, axes = panels(len(titles) * len(figure.metrics), ACROSS, WIDTH, HEIGHT)
    names = dict(zip(figure.metrics, figure.titles, strict=True))
    found = {row for *_, row in kept}
    styles = {
        row.name: line_style(index)
        for index, row in enumerate(comparison.table.rows)
        if row.name in found
    }
    has_bands = len(found) <= MOST_BANDS
    drawn.set_figwidth(drawn.get_figwidth() + LEGEND_WIDTH)
    drawn.set_layout_engine("constrained", h_pad=0.1)
    for panel, (title, metric) in zip(axes, product(titles, figure.metrics), strict=True):
        for (measured, column, row), runs in kept.items():
            if (measured, column) == (metric, title):
                _line(panel, _factor(metric) * np.array(runs, float), styles[row], has_bands)
        panel.set_title(f"{title}: {names[metric]}")
        panel.xaxis.set_major_locator(whole_numbers())
        panel.grid()
    for panel in bottom_panels(axes, ACROSS):
        panel.set_xlabel("round")
    _name_methods(drawn, styles)
    if any(len(runs) > 1 for runs in kept.values()):
        runs_of = "partitions and seeds" if figure.pooled else "seeds"
        deviations = "bands of" if has_bands else "the table has"
        note = f"means over {runs_of}; {deviations} one standard deviation"
        drawn.supxlabel(note, fontsize=8, color=FAINT)
    return drawn


def _name_methods(drawn: Drawing, styles: Mapping[str, dict[str, Any]]) -> None:
    """Name the methods of all panels beside them."""
    from matplotlib.lines import Line2D

    lines = [Line2D([], [], **style) for style in styles.values()]
    drawn.legend(lines, list(styles), loc="outside right upper", fontsize=8, handlelength=3)


def _kept(
    comparison: Comparison, figure: Figure, results: Results, seeds: Sequence[int] | None
) -> Curves:
    """Values over rounds, one curve for each seed, by metric, title of the panel and row."""
    curves: Curves = {}
    compared = {(line.column.name, seed) for line in comparison.lines for seed in line.seeds}
    for unit in units_of(comparison.table, comparison.scale, seeds):
        result = results.find(unit) if (unit.column.name, unit.seed) in compared else None
        title = unit.column.heading if figure.pooled else unit.column.title
        for metric in figure.metrics:
            if result is not None and (curve := result.curve(metric)):
                curves.setdefault((metric, title, unit.row.name), []).append(curve)
    return curves


def _factor(metric: str) -> float:
    return 1.0 if metric in ("ari", *FACTS) else 100.0


def _line(axes: Axes, values: NDArray[np.float64], style: dict[str, Any], has_band: bool) -> None:
    rounds = np.arange(1, values.shape[1] + 1)
    mean = values.mean(axis=0)
    axes.plot(rounds, mean, **style)
    if has_band and len(values) > 1:
        deviation = values.std(axis=0, ddof=1)
        low, high = mean - deviation, mean + deviation
        axes.fill_between(rounds, low, high, color=style["color"], alpha=0.15, linewidth=0)
