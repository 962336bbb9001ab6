"""Hypothesis trees over rounds: branches, merges, pruned hypotheses and weights."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from math import ceil, sqrt
from typing import TYPE_CHECKING

from bcfl.drawing import (
    FAINT,
    INK,
    LABELLED,
    WIDTH,
    HypothesisLineage,
    Line,
    Node,
    is_narrow,
    lineage_colours,
    lineage_name,
    longest_first,
    stacked_panels,
    whole_numbers,
)
from bcfl.runtime import counted

if TYPE_CHECKING:
    from matplotlib.axes import Axes
    from matplotlib.figure import Figure

MOST_LINES = 60
ROW, REJECTED_ROW = 0.26, 0.085
"""Height of a line and of a rejected proposal, inches."""
DETAILED = 30
"""Maximum number of rounds of which every node is drawn; beyond it nodes are thinned out.

Half as many in narrow figures.
"""


@dataclass(frozen=True, eq=False, kw_only=True)
class Layout:
    """Layout of one hypothesis tree.

    Attributes:
        ancestry: the hypotheses.
        lines: the lines drawn, the longest first.
        rows: row of each line, from the top.
        rejected: each rejected proposal and its row among them.
        left_out: number of lines that are not drawn.
    """

    ancestry: HypothesisLineage
    lines: Sequence[Line]
    rows: Sequence[int]
    rejected: Sequence[tuple[Node, int]]
    left_out: int

    @classmethod
    def of(cls, ancestry: HypothesisLineage) -> Layout:
        """Lay out the longest lines at the top; short lines share rows."""
        lines = longest_first(ancestry.lines(), ancestry.survival())
        kept = lines[:MOST_LINES]
        seen: dict[int, int] = {}
        rejected = []
        for node in ancestry.rejected_proposals:
            rejected.append((node, seen.get(node.round, 0)))
            seen[node.round] = rejected[-1][1] + 1
        return cls(
            ancestry=ancestry,
            lines=kept,
            rows=packed(kept),
            rejected=rejected,
            left_out=len(lines) - len(kept),
        )

    @property
    def num_rows(self) -> int:
        """Number of rows of lines."""
        return max(self.rows) + 1

    @property
    def num_rejected_rows(self) -> int:
        """Number of rows of rejected proposals."""
        return max((row for _, row in self.rejected), default=-1) + 1

    @property
    def height(self) -> float:
        """Height of the panel, inches."""
        gap = 0.14 if self.rejected else 0.0
        return max(0.5, self.num_rows * ROW + self.num_rejected_rows * REJECTED_ROW + gap)


def packed(lines: Sequence[Line]) -> list[int]:
    """Assign each line the free row nearest to that of its parent.

    Args:
        lines: lines, parents before children.

    Returns:
        Row of each line; lines in one row do not overlap in rounds.
    """
    taken: list[list[tuple[int, int]]] = []
    rows: list[int] = []
    row_of: dict[str, int] = {}
    for line in lines:
        begin, end = line.first.round, line.last.round
        above = row_of[line.first.parents[0]] if line.first.parents else 0
        free = [
            row
            for row, spans in enumerate(taken)
            if all(end < first or last < begin for first, last in spans)
        ]
        row = min(free, key=lambda r: (abs(r - above), -r), default=len(taken))
        if row == len(taken):
            taken.append([])
        taken[row].append((begin, end))
        rows.append(row)
        row_of.update({node.name: row for node in line.nodes})
    return rows


def tree_tips(methods: Mapping[str, Layout]) -> dict[str, str]:
    """Round, weight, kind and lineage of each hypothesis, by id of its marker.

    Args:
        methods: layouts by method.
    """
    tips = {}
    for method, layout in methods.items():
        several = len(lineage_colours(layout.ancestry)) > 1
        for line in layout.lines:
            lineage = lineage_name(layout.ancestry, line.lineage) if several else ""
            for node in line.nodes:
                place = f"{method}, round {node.round}" if node.round else f"{method}, at the start"
                merged = [f"merged from {len(node.parents)}"] if len(node.parents) > 1 else []
                if node.is_proposal:
                    tips[f"accepted-{method}-{node.name}"] = f"{place}\naccepted: {node.kind}"
                else:
                    weight = f"{_called(node, lineage)}weight {node.weight:.1%}"
                    origin = [f"from {lineage}"] if lineage and node.round else []
                    rows = [place, weight, *origin, *merged]
                    tips[f"node-{method}-{node.name}"] = "\n".join(rows)
    return tips


def _called(node: Node, lineage: str) -> str:
    """What comes before the weight of a hypothesis: its rank in its round, or its start."""
    if node.round:
        return f"rank {int(node.name.split('h')[1]) + 1}: "
    return f"{lineage}: " if lineage else ""


def draw_trees(methods: Mapping[str, Layout], width: float = WIDTH) -> Figure:
    """Hypothesis trees, one panel per method, rounds from left to right.

    Args:
        methods: layouts by method.
        width: of the figure, inches.
    """
    figure, axes = stacked_panels([layout.height for layout in methods.values()], "round", width)
    for place, (method, layout) in zip(axes, methods.items(), strict=True):
        _draw_panel(place, method, layout)
    return figure


def _draw_panel(axes: Axes, method: str, layout: Layout) -> None:
    places = {
        node.name: (node.round, row * ROW)
        for line, row in zip(layout.lines, layout.rows, strict=True)
        for node in line.nodes
    }
    shades = lineage_colours(layout.ancestry)
    _draw_links(axes, method, layout, places)
    for line in layout.lines:
        shade = shades[line.lineage]
        x, y = zip(*(places[node.name] for node in line.nodes), strict=True)
        axes.plot(x, y, color=shade, linewidth=1.3, gid=f"line-{method}-{line.first.name}")
    _draw_nodes(axes, method, layout, places)
    _draw_rejected(axes, method, layout)
    rounds = layout.ancestry.num_rounds
    axes.set_xlim(0, rounds + 0.5)
    axes.set_ylim(layout.height - ROW / 2, -ROW / 2)
    axes.set_yticks([])
    axes.spines["left"].set_visible(False)
    axes.xaxis.set_major_locator(whole_numbers())
    axes.set_title(method, loc="left", fontweight="bold")
    for line in (line for line in layout.lines if line.last.round == rounds):
        if line.last.weight >= LABELLED:
            _label(axes, f"{line.last.weight:.0%}", places[line.last.name][1])


def _draw_links(
    axes: Axes, method: str, layout: Layout, places: Mapping[str, tuple[int, float]]
) -> None:
    """Draw edges from parents to the first nodes of lines and to merged hypotheses."""
    for line in layout.lines:
        for node in line.nodes:
            for parent in node.parents:
                inside = node is not line.first and parent == node.parents[0]
                if inside or parent not in places:
                    continue
                x, y = zip(places[parent], places[node.name], strict=True)
                kind = "branch" if node is line.first else "join"
                axes.plot(
                    x, y, color=FAINT, linewidth=0.7, gid=f"{kind}-{method}-{node.name}", zorder=1
                )


def _draw_nodes(
    axes: Axes, method: str, layout: Layout, places: Mapping[str, tuple[int, float]]
) -> None:
    rounds = layout.ancestry.num_rounds
    detailed = DETAILED // 2 if is_narrow(axes) else DETAILED
    stride = max(1, ceil(rounds / detailed))
    room = 9.5 if rounds <= detailed else 8.0
    shades = lineage_colours(layout.ancestry)
    for line in layout.lines:
        shade = shades[line.lineage]
        shown = [n for n in line.nodes if _is_event(n, line) or n.round % stride == 0]
        for node in (n for n in shown if not n.is_proposal):
            axes.plot(
                *places[node.name],
                marker="o",
                markersize=max(1.6, room * sqrt(node.weight)) if node.round else 4.0,
                markerfacecolor=shade,
                markeredgecolor="white" if node.weight > 0.03 else shade,
                markeredgewidth=0.5,
                clip_on=False,  # those at the start lie on the left edge
                gid=f"node-{method}-{node.name}",
            )
        if line.first.is_proposal:
            _draw_accepted(axes, method, line.first, places[line.first.name], shade)


def _is_event(node: Node, line: Line) -> bool:
    """Whether a line begins, ends or merges at a node."""
    ends = node is line.first or node is line.last
    return ends or len(node.parents) > 1


def _draw_accepted(
    axes: Axes, method: str, node: Node, place: tuple[int, float], shade: str
) -> None:
    axes.plot(
        *place,
        marker="D",
        markersize=6.0,
        markerfacecolor=shade,
        markeredgecolor=INK,
        markeredgewidth=0.9,
        clip_on=False,
        gid=f"accepted-{method}-{node.name}",
    )
    axes.annotate(
        node.kind,
        place,
        (0, 5.5),
        textcoords="offset points",
        ha="center",
        fontsize=9.5,
        bbox={"facecolor": "#ffffff", "linewidth": 0, "pad": 0.5},
    )


def _draw_rejected(axes: Axes, method: str, layout: Layout) -> None:
    if not layout.rejected:
        return
    top = layout.num_rows * ROW + 0.06
    x = [node.round for node, _ in layout.rejected]
    y = [top + row * REJECTED_ROW for _, row in layout.rejected]
    axes.plot(
        x,
        y,
        linestyle="none",
        marker="o",
        markersize=3.0,
        markerfacecolor="none",
        markeredgecolor=FAINT,
        markeredgewidth=0.7,
        gid=f"rejected-{method}",
    )
    middle = top + (layout.num_rejected_rows - 1) * REJECTED_ROW / 2
    space = "\n" if is_narrow(axes) else " "
    _label(axes, f"{counted(len(layout.rejected), 'proposal')}{space}rejected", middle)


def _label(axes: Axes, text: str, height: float) -> None:
    """Write a label at the right of the axes."""
    axes.annotate(
        text,
        (1.0, height),
        (6, 0),
        xycoords=("axes fraction", "data"),
        textcoords="offset points",
        va="center",
        fontsize=9.5,
        color=INK,
        annotation_clip=False,
    )
