"""Two metrics of each method as the ends of a segment.

After Figure 2 of Zuziak, Pellungrini and Rinzivillo, "One-Shot Clustering for Federated Learning".
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from bcfl.drawing import line_style, panels
from experiments.published.comparison import Comparison, Line
from experiments.published.table import Figure

if TYPE_CHECKING:
    from matplotlib.axes import Axes
    from matplotlib.figure import Figure as Drawing

ACROSS, WIDTH, HEIGHT, SPREAD = 1, 9.0, 2.6, 0.8


def draw_segments(comparison: Comparison, figure: Figure) -> Drawing | None:
    """A panel for the columns of each heading, a segment for each method of a column.

    The filled end is the first metric, the open one the second; None without a result.

    Args:
        comparison: table and results.
        figure: with two metrics.
    """
    by_heading: dict[str, list[Line]] = {}
    for line in comparison.lines:
        if line.seeds:
            by_heading.setdefault(line.column.heading, []).append(line)
    if not by_heading:
        return None
    drawn, axes = panels(len(by_heading), ACROSS, WIDTH, HEIGHT)
    drawn.set_layout_engine("constrained", h_pad=0.1)
    names = [row.name for row in comparison.table.rows]
    for panel, (heading, lines) in zip(axes, by_heading.items(), strict=True):
        _panel(panel, lines, figure, names)
        panel.set_title(f"{heading}: {figure.titles[0]} (filled), {figure.titles[1]} (open)")
        panel.grid(axis="y")
    axes[0].legend(fontsize=7, ncols=2, loc="center left", bbox_to_anchor=(1.0, 0.5))
    return drawn


def _panel(axes: Axes, lines: list[Line], figure: Figure, names: list[str]) -> None:
    titles = list(dict.fromkeys(line.column.title for line in lines))
    for line in lines:
        values = {cell.metric.measured: cell.mean for cell in line.cells}
        upper, lower = (values.get(metric) for metric in figure.metrics)
        if upper is None or lower is None:
            continue
        number = names.index(line.row.name)
        shift = SPREAD * ((number + 0.5) / len(names) - 0.5)
        place, style = titles.index(line.column.title) + shift, line_style(number)
        colour = style["color"]
        axes.plot([place, place], [lower, upper], **style)
        first = line.column.title == titles[0]
        axes.plot(place, upper, "o", color=colour, ms=4, label=line.row.name if first else None)
        axes.plot(place, lower, "o", color=colour, ms=4, markerfacecolor="white")
    splits = [title.partition(",")[2].strip().replace(" ", "\n") for title in titles]
    axes.set_xticks(range(len(titles)), splits)
