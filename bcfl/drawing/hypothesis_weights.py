"""Weights of hypotheses over rounds as stacked ribbons, one colour per lineage."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import TYPE_CHECKING

import numpy as np
from numpy.typing import NDArray

from bcfl.drawing.lineage import HypothesisLineage, Line, lineages, longest_first
from bcfl.drawing.style import (
    FAINT,
    INK,
    LINEAGE_COLOURS,
    WIDTH,
    figure_of,
    is_narrow,
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
LETTER, BESIDE = 0.072, 0.015
"""Width of a letter of a label, inches, and its distance, in widths of the axes."""
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
        _draw_panel(place, method, ancestry)
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
        lineage: name of the lineage; see `Line`.
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


def _draw_panel(axes: Axes, method: str, ancestry: HypothesisLineage) -> None:
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
    axes.set_xlim(0, edges[-1])
    axes.set_ylim(0, 1)
    axes.set_yticks([0, 0.5, 1])
    axes.set_ylabel("weight")
    axes.xaxis.set_major_locator(whole_numbers())
    mark_rounds(axes, method, ancestry.num_rounds)
    _label_ends(axes, ancestry, lines, table[:, -1])


def _label_ends(
    axes: Axes, ancestry: HypothesisLineage, lines: Sequence[Line], last: NDArray[np.float64]
) -> None:
    """Label each lineage with its weight and number of hypotheses after the last round."""
    bottom, texts, middles = 0.0, [], []
    space, gap = ("\n", 0.24) if is_narrow(axes) else (" ", 0.15)
    for lineage in dict.fromkeys(line.lineage for line in lines):
        rows = [i for i, line in enumerate(lines) if line.lineage == lineage and last[i] > 0]
        weight = float(last[rows].sum())
        if weight >= LABELLED:
            count = f"{len(rows)} " if len(rows) > 1 else ""
            texts.append(f"{weight:.0%} · {count}from{space}{lineage_name(ancestry, lineage)}")
            middles.append(bottom + weight / 2)
        bottom += weight
    for text, middle, place in zip(
        texts, middles, spread(middles, gap, gap / 2.5, 1 - gap / 2.5), strict=True
    ):
        axes.plot(
            [1.002, 1.012],
            [middle, place],
            color=FAINT,
            linewidth=0.5,
            transform=axes.transAxes,
            clip_on=False,
        )
        where = 1 + BESIDE, place
        axes.text(*where, text, va="center", fontsize=9, color=INK, transform=axes.transAxes)


def _make_room(figure: Figure, axes: Sequence[Axes]) -> None:
    """Widen a figure at the right where its longest label needs more."""
    texts = [line for place in axes for text in place.texts for line in text.get_text().split("\n")]
    width, box = figure.get_figwidth(), axes[0].get_position()
    needed = LETTER * max(map(len, texts), default=0) + BESIDE * box.width * width
    wider = width + max(0.0, needed - (1 - box.x1) * width)
    for place in axes:
        x, y, across, up = place.get_position().bounds
        place.set_position((x * width / wider, y, across * width / wider, up))
    figure.set_figwidth(wider)
