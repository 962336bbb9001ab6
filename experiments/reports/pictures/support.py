"""Directed graph of support between clusters: the asymmetric association graph of FAACL.

After Figure 1.2 of Zhang (2024), "Asymmetric clustering in federated continual learning".
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from math import cos, hypot, pi, sin, sqrt
from pathlib import Path
from typing import TYPE_CHECKING, Self

from bcfl.drawing import INK, NARROW, WIDTH, Palette, panels
from experiments.runs.files import SUPPORT, Pair, RunFiles
from experiments.runs.run_folder import NoRunError, RunFolder

if TYPE_CHECKING:
    import networkx as nx
    from matplotlib.axes import Axes
    from matplotlib.figure import Figure

MOST_LABELS = 12
LARGEST, REACH, BEND = 0.3, 1.0, 0.2
Place = tuple[float, float]


@dataclass(frozen=True)
class SupportPicture:
    """Clusters of one method and the support between them.

    Attributes:
        members: by cluster, number of devices of each true group, None where it is unknown.
        supports: p-value of each (supporter, supported) pair of clusters.
        palette: true groups of all clients, in a stream at all time steps.
    """

    members: Mapping[str, Mapping[int | None, int]]
    supports: Mapping[tuple[str, str], float]
    palette: Palette = field(default_factory=Palette)

    @classmethod
    def of(cls, graph: nx.DiGraph[str]) -> Self:
        """From a graph of `bcfl.analysis.graphs`; empty clusters are omitted."""
        counts: dict[str, Counter[int | None]] = {}
        edges = list(graph.edges(data=True))
        for client, cluster, data in edges:
            if data["kind"] == "member":
                group = graph.nodes[client].get("group")
                known = None if group is None else int(group)
                counts.setdefault(cluster, Counter())[known] += 1
        supports = {
            (supporter, supported): float(data["p_value"])
            for supporter, supported, data in edges
            if data["kind"] == "support" and {supporter, supported} <= counts.keys()
        }
        palette = Palette.of_clients(data for _, data in graph.nodes(data=True))
        return cls({name: counts[name] for name in graph if name in counts}, supports, palette)

    @classmethod
    def several(cls, run: RunFolder) -> dict[str, Self]:
        """By method, for the first seed of each method of a run that tests support.

        Raises:
            NoRunError: a graph cannot be read.
        """
        pictures = {}
        for method in run.methods:
            path = RunFiles(run.path).of(Pair(method, run.first_seed(method))).graph(SUPPORT)
            if path.is_file():
                pictures[method] = cls.of(_read(path))
        return pictures

    @property
    def groups(self) -> list[int]:
        """Known true groups, ascending."""
        groups = {group for groups in self.members.values() for group in groups}
        return sorted(group for group in groups if group is not None)


def _read(path: Path) -> nx.DiGraph[str]:
    import networkx as nx

    try:
        graph: nx.Graph[str] = nx.read_graphml(path)
    except (SyntaxError, KeyError, nx.NetworkXError) as error:
        raise NoRunError(f"{str(path)!r} is not a GraphML file of supports: {error}") from error
    return nx.DiGraph(graph)


def draw_supports(pictures: Mapping[str, SupportPicture], columns: int = 3) -> Figure:
    """Support graphs, one panel per method, with a legend of the groups.

    Args:
        pictures: by method.
        columns: largest number of panels in a row.
    """
    widest = WIDTH / 2 if columns > 1 else NARROW
    width = WIDTH / 3 if len(pictures) > 2 else widest
    figure, places = panels(len(pictures), columns, width, 3.7)
    palette = Palette.union(
        picture.palette.including(picture.groups) for picture in pictures.values()
    )
    for axes, (method, picture) in zip(places, pictures.items(), strict=True):
        _draw_panel(axes, method, picture, palette)
    groups = {group for picture in pictures.values() for group in picture.groups}
    _draw_legend(figure, sorted(groups), palette)
    return figure


def layout(picture: SupportPicture) -> dict[str, Place]:
    """Position of each cluster on a circle, ordered by majority group."""
    names = sorted(picture.members, key=lambda name: _rank(picture.members[name]))
    if len(names) == 1:
        return {names[0]: (0.0, 0.0)}
    turns = {name: pi / 2 - 2 * pi * number / len(names) for number, name in enumerate(names)}
    return {name: (REACH * cos(turn), REACH * sin(turn)) for name, turn in turns.items()}


def _unknown_first(group: int | None) -> tuple[bool, int]:
    return group is not None, group or 0


def _rank(groups: Mapping[int | None, int]) -> tuple[tuple[bool, int], int, float]:
    most = min(groups, key=lambda group: (-groups[group], _unknown_first(group)))
    total = sum(groups.values())
    return _unknown_first(most), -total, -groups[most] / total


def _draw_panel(axes: Axes, method: str, picture: SupportPicture, palette: Palette) -> None:
    axes.set_title(method, fontweight="bold")
    axes.set_axis_off()
    axes.set_aspect("equal", anchor="N")
    edge = REACH + LARGEST + 0.08
    axes.set_xlim(-edge, edge)
    axes.set_ylim(-edge, edge)
    places, radii = layout(picture), _radii(picture)
    labelled = len(picture.supports) <= MOST_LABELS
    for (supporter, supported), p_value in picture.supports.items():
        ends = places[supporter], places[supported]
        shrink = radii[supporter], radii[supported]
        _draw_arrow(axes, ends, shrink, f"{method}-{supporter}-{supported}", labelled)
        if labelled:
            _draw_p_value(axes, ends, shrink, p_value)
    for name, place in places.items():
        _draw_cluster(axes, place, radii[name], picture.members[name], palette)


def _radii(picture: SupportPicture) -> dict[str, float]:
    """Radii by cluster, areas proportional to devices, without overlap of neighbours."""
    sizes = {name: sum(groups.values()) for name, groups in picture.members.items()}
    room = 0.8 * REACH * sin(pi / len(sizes)) if len(sizes) > 1 else LARGEST
    largest = min(LARGEST, room)
    return {name: largest * sqrt(size / max(sizes.values())) for name, size in sizes.items()}


def _draw_arrow(
    axes: Axes, ends: tuple[Place, Place], radii: tuple[float, float], gid: str, few: bool
) -> None:
    from matplotlib.patches import FancyArrowPatch

    start, stop = _shortened(ends, radii)
    arrow = FancyArrowPatch(
        start,
        stop,
        arrowstyle="-|>",
        connectionstyle=f"arc3,rad={BEND}",
        mutation_scale=11 if few else 7,
        linewidth=1.1 if few else 0.6,
        color=INK,
        alpha=0.55 if few else 0.35,
        shrinkA=0,
        shrinkB=0,
    )
    arrow.set_gid(f"support-{gid.replace(' ', '-')}")
    axes.add_patch(arrow)


def _shortened(ends: tuple[Place, Place], radii: tuple[float, float]) -> tuple[Place, Place]:
    """The segment between two circles, from rim to rim."""
    (x, y), (u, v) = ends
    length = hypot(u - x, v - y)
    across, up = (u - x) / length, (v - y) / length
    first, last = radii[0] + 0.02, radii[1] + 0.03
    return (x + first * across, y + first * up), (u - last * across, v - last * up)


def _draw_p_value(
    axes: Axes, ends: tuple[Place, Place], radii: tuple[float, float], p_value: float
) -> None:
    (x, y), (u, v) = _shortened(ends, radii)
    along = 0.62  # closer to the head, so that the labels of opposite arrows do not overlap
    aside = 2 * along * (1 - along) * BEND
    axes.text(
        x + along * (u - x) + aside * (v - y),
        y + along * (v - y) - aside * (u - x),
        p_value_text(p_value),
        ha="center",
        va="center",
        fontsize=9,
        color=INK,
        bbox={"facecolor": "white", "edgecolor": "none", "pad": 0.8},
    )


def p_value_text(p_value: float) -> str:
    """Short text of a p-value."""
    if p_value < 0.001:
        return "p < .001"
    return f"p = {p_value:.3f}".replace("0.", ".")


def _draw_cluster(
    axes: Axes, place: Place, radius: float, members: Mapping[int | None, int], palette: Palette
) -> None:
    from matplotlib.patches import Circle, Wedge

    total, turn = sum(members.values()), 90.0
    for group in sorted(members, key=_unknown_first):
        angle = 360 * members[group] / total
        colour = palette.colour(group)
        shape = (
            Circle(place, radius, facecolor=colour)
            if len(members) == 1
            else Wedge(place, radius, turn - angle, turn, facecolor=colour)
        )
        turn -= angle
        shape.set_linewidth(0)
        shape.set_zorder(3)
        axes.add_patch(shape)
    axes.text(
        *place,
        str(total),
        ha="center",
        va="center",
        color="#fefefe",
        fontweight="bold",
        fontsize=10 if radius > 0.15 else 7.5,
        zorder=4,
    )


def _draw_legend(figure: Figure, groups: Sequence[int], palette: Palette) -> None:
    from matplotlib.lines import Line2D

    if not groups:
        return
    handles = [
        Line2D([], [], linestyle="none", marker="o", markersize=8, color=colour)
        for colour in map(palette.colour, groups)
    ]
    labels = list(map(palette.name, groups))
    columns = max(1, min(len(groups), int(figure.get_figwidth() / 1.3)))
    figure.legend(handles, labels, loc="outside lower center", ncols=columns, labelcolor=INK)
