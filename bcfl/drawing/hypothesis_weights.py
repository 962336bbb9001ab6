"""Weights of hypotheses over rounds as stacked ribbons, one colour per lineage."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from typing import TYPE_CHECKING

import numpy as np
from numpy.typing import NDArray

from bcfl.drawing.lineage import HypothesisLineage, Line, lineages, longest_first
from bcfl.drawing.style import (
    FAINT,
    INK,
    LINEAGE_COLOURS,
    NARROW,
    WIDTH,
    figure_of,
    mark_rounds,
    spread,
    whole_numbers,
)

if TYPE_CHECKING:
    from matplotlib.axes import Axes
    from matplotlib.figure import Figure

LEFT, RIGHT = 0.624, 1.976
"""Inches beside the axes of all figures over rounds, full width."""
NARROW_LEFT, NARROW_RIGHT = 0.5, 1.2
"""The same of narrow figures, where labels take two lines."""
LETTER, BESIDE, MARGIN = 0.072, 0.015, 0.12
"""Width of a letter of a label, inches, its distance, in widths of the axes, and what it has free
at the right within axes, inches."""
START_COLOUR = "#8b929c"
LABELLED = 0.05


def draw_hypothesis_weights(
    methods: Mapping[str, HypothesisLineage], given: Sequence[Axes] = (), width: float = WIDTH
) -> Figure:
    """Stacked weights of hypotheses over rounds, one panel per method.

    Args:
        methods: lineages by method.
        given: axes to draw on, one per method; by default those of a new figure.
        width: of a new figure, inches.
    """
    if given:
        figure, axes = figure_of(given), list(given)
    else:
        figure, axes = stacked_panels(
            [1.25 if width == WIDTH else 1.6] * len(methods), "round", width
        )
    for place, (method, ancestry) in zip(axes, methods.items(), strict=True):
        _draw_panel(place, method, ancestry, within=bool(given))
    if not given:
        _make_room(figure, axes)
    return figure


def weights(lines: Sequence[Line], rounds: int) -> NDArray[np.float64]:
    """Weight of each line over rounds.

    Args:
        lines: the lines.
        rounds: number of rounds.

    Returns:
        (lines, rounds) float64 weights, 0 where a line does not exist.
    """
    table = np.zeros((len(lines), rounds))
    for row, line in zip(table, lines, strict=True):
        for node in line.nodes:
            if node.round:
                row[node.round - 1] = node.weight
    return table


def lineage_colours(ancestry: HypothesisLineage) -> dict[str, str]:
    """Colour of each lineage: grey for descendants of a single initial hypothesis.

    Several initial hypotheses have a colour each.
    """
    names = lineages(ancestry.lines())
    starts = [name for name in names if not ancestry.nodes[name].is_proposal]
    coloured = [name for name in names if name not in starts or len(starts) > 1]
    palette = dict.fromkeys(names, START_COLOUR)
    for index, name in enumerate(coloured):
        palette[name] = LINEAGE_COLOURS[index % len(LINEAGE_COLOURS)]
    return palette


def lineage_name(ancestry: HypothesisLineage, lineage: str) -> str:
    """Display name of a lineage: its proposal and round, or its initial hypothesis.

    Args:
        ancestry: the hypotheses.
        lineage: name of the lineage; see `bcfl.drawing.Line`.
    """
    node = ancestry.nodes[lineage]
    if node.is_proposal:
        return f"{node.kind} of round {node.round}"
    starts = [start for start in ancestry.nodes.values() if not start.round]
    return "the start" if len(starts) < 2 else f"start {starts.index(node) + 1}"


def stacked_panels(
    heights: Sequence[float], label: str, width: float = WIDTH
) -> tuple[Figure, list[Axes]]:
    """Panels of full width below one another, with room for labels at the right.

    Args:
        heights: heights of the axes, inches.
        label: label of the lowest horizontal axis.
        width: of the figure, inches.
    """
    from matplotlib.figure import Figure

    above, below, between = 0.3, 0.42, 0.55
    total = sum(heights) + above + below + between * (len(heights) - 1)
    left, right = (LEFT, RIGHT) if width == WIDTH else (NARROW_LEFT, NARROW_RIGHT)
    figure = Figure(figsize=(width, total))
    axes, top = [], total - above
    for height in heights:
        across = left / width, 1 - (left + right) / width
        box = (across[0], (top - height) / total, across[1], height / total)
        axes.append(figure.add_axes(box))
        top -= height + between
    axes[-1].set_xlabel(label)
    return figure, axes


def _draw_panel(axes: Axes, method: str, ancestry: HypothesisLineage, *, within: bool) -> None:
    """Draw the ribbons; labels are beside the axes, or within axes whose limits make room."""
    shades, lines = lineage_colours(ancestry), longest_first(ancestry.lines(), ancestry.survival())
    order = lineages(ancestry.lines())
    lines.sort(key=lambda line: order.index(line.lineage))
    table = weights(lines, ancestry.num_rounds)
    edges = np.arange(ancestry.num_rounds + 1) + 0.5
    bottom = np.zeros(ancestry.num_rounds)
    for line, row in zip(lines, table, strict=True):
        if row.any():
            axes.stairs(
                bottom + row,
                edges,
                baseline=bottom,
                fill=True,
                facecolor=shades[line.lineage],
                edgecolor="white",
                linewidth=0.5,
                gid=f"ribbon-{method}-{line.first.name}",
            )
        bottom = bottom + row
    axes.set_title(method, loc="left", fontweight="bold")
    labels = _end_labels(axes, ancestry, lines, table[:, -1])
    end = 1 - _share_of_labels(axes, labels) if within else 1.0
    axes.set_xlim(0, edges[-1] / end)
    axes.set_ylim(0, 1)
    axes.set_yticks([0, 0.5, 1])
    axes.set_ylabel("weight")
    axes.xaxis.set_major_locator(whole_numbers())
    if within:
        axes.set_xticks([tick for tick in axes.get_xticks() if 0 <= tick <= ancestry.num_rounds])
        axes.set_xlabel("round")
    mark_rounds(axes, method, ancestry.num_rounds)
    _label_ends(axes, labels, end)


def _end_labels(
    axes: Axes, ancestry: HypothesisLineage, lines: Sequence[Line], last: NDArray[np.float64]
) -> list[tuple[str, float]]:
    """Weight and number of hypotheses of each lineage after the last round, and where it ends."""
    bottom, labels = 0.0, []
    space = "\n" if _inches(axes) < NARROW else " "
    for lineage in dict.fromkeys(line.lineage for line in lines):
        rows = [i for i, line in enumerate(lines) if line.lineage == lineage and last[i] > 0]
        weight = float(last[rows].sum())
        if weight >= LABELLED:
            count = f"{len(rows)} " if len(rows) > 1 else ""
            text = f"{weight:.0%} · {count}from{space}{lineage_name(ancestry, lineage)}"
            labels.append((text, bottom + weight / 2))
        bottom += weight
    return labels


def _share_of_labels(axes: Axes, labels: Sequence[tuple[str, float]]) -> float:
    """The part of the width of some axes that labels need, at most half."""
    longest = _longest(text for text, _ in labels)
    return min(0.5, (LETTER * longest + MARGIN) / _inches(axes) + BESIDE)


def _inches(axes: Axes) -> float:
    """Width of some axes."""
    return axes.bbox.width / figure_of([axes]).dpi


def _longest(texts: Iterable[str]) -> int:
    """Number of letters of the longest line."""
    return max((len(line) for text in texts for line in text.split("\n")), default=0)


def _label_ends(axes: Axes, labels: Sequence[tuple[str, float]], end: float) -> None:
    """Label each lineage where it ends, which is at some part of the width of the axes."""
    gap = 0.24 if _inches(axes) < NARROW else 0.15
    middles = [middle for _, middle in labels]
    places = spread(middles, gap, gap / 2.5, 1 - gap / 2.5)
    for (text, middle), place in zip(labels, places, strict=True):
        axes.plot(
            [end + 0.002, end + 0.012],
            [middle, place],
            color=FAINT,
            linewidth=0.5,
            transform=axes.transAxes,
            clip_on=False,
        )
        where = end + BESIDE, place
        axes.text(*where, text, va="center", fontsize=9, color=INK, transform=axes.transAxes)


def _make_room(figure: Figure, axes: Sequence[Axes]) -> None:
    """Widen a figure at the right where its longest label needs more."""
    longest = _longest(text.get_text() for place in axes for text in place.texts)
    width, box = figure.get_figwidth(), axes[0].get_position()
    needed = LETTER * longest + BESIDE * box.width * width
    wider = width + max(0.0, needed - (1 - box.x1) * width)
    for place in axes:
        x, y, across, up = place.get_position().bounds
        place.set_position((x * width / wider, y, across * width / wider, up))
    figure.set_figwidth(wider)
