"""Personal and general F1 of each method, and the learning gap between them.

After Figure 2 of Zuziak, Pellungrini and Rinzivillo, "One-Shot Clustering for Federated Learning".
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import TYPE_CHECKING

from experiments.pictures.drawing import COLOURS, FAINT, INK

if TYPE_CHECKING:
    from matplotlib.figure import Figure

PERSONAL, GENERAL = COLOURS[5], COLOURS[1]


def draw_segments(scores: Mapping[str, tuple[float, float]]) -> Figure:
    """A segment per method, from its F1 on the hold-out samples to that on the clients' own.

    Args:
        scores: by method, personal and general F1, fractions.
    """
    from matplotlib.figure import Figure

    figure = Figure(figsize=(10.4, 1.1 + 0.27 * len(scores)), layout="constrained")
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
            fontsize=8,
            color=INK,
        )
    rows = range(len(scores))
    for place, colour, name in ((1, GENERAL, "general"), (0, PERSONAL, "personal")):
        values = [100 * pair[place] for pair in scores.values()]
        axes.scatter(values, rows, s=34, color=colour, label=f"{name} F1", zorder=2)
    axes.set_yticks(rows, list(scores))
    axes.set_ylim(len(scores) - 0.5, -0.5)
    axes.set_xlabel("macro-F1, %, mean over all rounds")
    axes.margins(x=0.09)
    axes.grid(axis="x")
    axes.tick_params(axis="y", length=0)
    axes.legend(loc="lower right", bbox_to_anchor=(1.0, 1.0), ncols=2, borderaxespad=0.2)
    return figure
