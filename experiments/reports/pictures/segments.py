"""Personal against general F1, one segment per method."""

from __future__ import annotations

from collections.abc import Mapping
from typing import TYPE_CHECKING

from bcfl.drawing import FAINT, INK, SHARES, WIDTH

if TYPE_CHECKING:
    from matplotlib.figure import Figure

PERSONAL, GENERAL = SHARES[0], SHARES[2]


def draw_segments(scores: Mapping[str, tuple[float, float]], width: float = WIDTH) -> Figure:
    """A segment per method from its F1 on the hold-out set to that on the clients' test samples.

    Args:
        scores: personal and general F1 by method, fractions.
        width: of the figure, inches.
    """
    from matplotlib.figure import Figure

    figure = Figure(figsize=(width, 1.1 + 0.27 * len(scores)), layout="constrained")
    axes = figure.subplots()
    for row, (method, (personal, general)) in enumerate(scores.items()):
        ends = 100 * general, 100 * personal
        axes.plot(ends, (row, row), color=FAINT, linewidth=2.2, gid=f"segment-{method}", zorder=1)
        axes.annotate(
            f"gap {abs(ends[1] - ends[0]):.1f}",
            (max(ends), row),
            (8, 0),
            textcoords="offset points",
            va="center",
            fontsize=9,
            color=INK,
        )
    rows = range(len(scores))
    for place, colour, name in ((1, GENERAL, "general"), (0, PERSONAL, "personal")):
        values = [100 * pair[place] for pair in scores.values()]
        axes.scatter(values, rows, s=34, color=colour, edgecolor=INK, label=f"{name} F1", zorder=2)
    axes.set_yticks(rows, list(scores))
    axes.set_ylim(len(scores) - 0.5, -0.5)
    axes.set_xlabel("macro-F1, %, mean over all rounds")
    axes.margins(x=0.09 * WIDTH / width)
    axes.grid(axis="x")
    axes.tick_params(axis="y", length=0)
    axes.legend(loc="lower right", bbox_to_anchor=(1.0, 1.0), ncols=2, borderaxespad=0.2)
    return figure
