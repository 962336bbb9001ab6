"""Association graph of the clients, one panel per method.

After Figure 4 of the BCFL paper: edge width is the probability that two clients share a cluster.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from math import cos, pi, sin, sqrt
from typing import TYPE_CHECKING, Any

import numpy as np

from bcfl.drawing.groups import LARGER, Palette
from bcfl.drawing.style import INK, panels, wrapped

if TYPE_CHECKING:
    import networkx as nx
    from matplotlib.axes import Axes
    from matplotlib.figure import Figure
    from matplotlib.lines import Line2D

MOST_CLIENTS = 100
LEAST_PROBABILITY = 0.05
LEVELS = 12
"""Steps of probability that differ in width and colour."""
LEGEND_SIZE = 8.0
"""Size of the markers of a legend, points."""
TITLE = 30
"""Letters of a line above a panel."""
ENTRY, LINE, BESIDE = 1.35, 0.19, 0.12
"""Width and height of an entry of a legend within given axes, and its distance, inches."""
LEAST_EDGE, WIDEST_EDGE = 0.6, 1.7
"""Widths of edges of the least and of the largest probability among few clients, points."""
FEW_CLIENTS = 40
"""Clients up to which edges are so few that each has a contrast of 3 with the background."""
EDGE = (41, 61, 92)
"""Colour of an edge before it fades, 8-bit red, green and blue."""

Place = tuple[float, float]


@dataclass(frozen=True)
class ClientGraph:
    """Clients, joined by the probability of sharing a cluster.

    Attributes:
        groups: true group of each client, None where unknown; the order is that of the file.
        clusters: cluster of each client after the last round, -1 if it was never seen.
        edges: probability of each joined pair, in (0, 1].
        num_clients: clients in the file, those that were left out included.
        palette: true groups of all clients in the file, in a stream at all time steps.
    """

    groups: Mapping[str, int | None]
    clusters: Mapping[str, int]
    edges: Mapping[tuple[str, str], float]
    num_clients: int
    palette: Palette = field(default_factory=Palette)

    @classmethod
    def of(cls, graph: nx.Graph[str], clients: int | None = None) -> ClientGraph:
        """From a graph of `bcfl.analysis.association_graph`.

        Args:
            graph: the association graph of a run.
            clients: keep at most so many, evenly from all groups; None keeps all.
        """
        kept = evenly({name: data.get("group") for name, data in graph.nodes(data=True)}, clients)
        clusters = {name: graph.nodes[name]["cluster"] for name in kept}
        edges: dict[tuple[str, str], float] = {
            (first, second): float(data["probability"])
            for first, second, data in graph.edges(data=True)
            if first in kept and second in kept
        }
        palette = Palette.of_clients(data for _, data in graph.nodes(data=True))
        return cls(kept, clusters, edges, len(graph), palette)


def evenly(groups: Mapping[str, int | None], limit: int | None) -> dict[str, int | None]:
    """At most `limit` clients, the same share of every group, evenly spaced by name.

    Args:
        groups: true group of each client, None where it is unknown.
        limit: largest number of clients; None is all.
    """
    if limit is None or len(groups) <= limit:
        return dict(groups)
    ordered = sorted(groups, key=lambda name: (_rank(groups[name]), name))
    chosen = np.linspace(0, len(ordered) - 1, limit).round().astype(int)
    names = {ordered[index] for index in chosen}
    return {name: group for name, group in groups.items() if name in names}


def _rank(group: int | None) -> tuple[bool, int]:
    return group is None, group or 0


@dataclass(frozen=True)
class GraphPicture:
    """Association graphs of several methods with a common layout.

    Attributes:
        graphs: graph by method, None where the file is missing.
        groups: true group of each client shown, None where unknown.
        places: position of each client, the same in all panels.
        num_clients: number of clients of the run, including those not shown.
    """

    graphs: Mapping[str, ClientGraph | None]
    groups: Mapping[str, int | None]
    places: Mapping[str, Place]
    num_clients: int

    @classmethod
    def of(cls, graphs: Mapping[str, ClientGraph | None]) -> GraphPicture | None:
        """Lay the clients out, the same in all panels; None if there is no graph.

        Args:
            graphs: by method, None where there is none.
        """
        known = [graph for graph in graphs.values() if graph is not None]
        if not known:
            return None
        groups: dict[str, int | None] = {}
        for graph in known:
            groups.update(graph.groups)
        return cls(graphs, groups, layout(groups, known), max(g.num_clients for g in known))

    @property
    def known_groups(self) -> list[int]:
        """True groups of the clients shown, ascending."""
        return sorted({group for group in self.groups.values() if group is not None})

    @property
    def palette(self) -> Palette:
        """True groups of all graphs, in a stream at all time steps."""
        known = Palette.union(graph.palette for graph in self.graphs.values() if graph is not None)
        return known.including(self.groups.values())


def layout(groups: Mapping[str, int | None], graphs: Sequence[ClientGraph]) -> dict[str, Place]:
    """Position of each client within the unit circle.

    Groups are placed on a circle, and the members of a group on a smaller circle in the order of
    their final clusters. Without groups, a spring layout weighted by the mean probability is used.

    Args:
        groups: true group of each client, None where unknown.
        graphs: the graphs that share the layout.

    Returns:
        Horizontal and vertical position by client.
    """
    if all(group is None for group in groups.values()):
        return _springs(sorted(groups), graphs)
    by_group: dict[tuple[bool, int], list[str]] = {}
    for client in sorted(groups, key=lambda c: ([g.clusters.get(c, -1) for g in graphs], c)):
        group = groups[client]
        by_group.setdefault((group is None, group or 0), []).append(client)
    places: dict[str, Place] = {}
    count = len(by_group)
    outer = 0.0 if count == 1 else 0.62
    room = 0.95 if count == 1 else min(0.36, 0.8 * outer * sin(pi / count))
    for turn, key in enumerate(sorted(by_group)):
        angle = pi / 2 + pi / 4 * (count in (2, 4)) - 2 * pi * turn / count
        centre = outer * cos(angle), outer * sin(angle)
        for member, client in enumerate(by_group[key]):
            around = angle - 2 * pi * member / len(by_group[key])
            inner = 0.0 if len(by_group[key]) == 1 else room
            places[client] = centre[0] + inner * cos(around), centre[1] + inner * sin(around)
    return places


def _springs(clients: list[str], graphs: Sequence[ClientGraph]) -> dict[str, Place]:
    import networkx as nx

    mean: nx.Graph[str] = nx.Graph()
    mean.add_nodes_from(clients)
    for graph in graphs:
        for (first, second), probability in sorted(graph.edges.items()):
            before = mean.get_edge_data(first, second, {"weight": 0.0})["weight"]
            mean.add_edge(first, second, weight=before + probability / len(graphs))
    places = nx.spring_layout(mean, seed=0, iterations=200)
    return {client: (float(places[client][0]), float(places[client][1])) for client in clients}


def draw_client_graphs(
    picture: GraphPicture, given: Sequence[Axes] = (), *, legend: bool = True
) -> Figure:
    """Association graphs, one panel per method, with a legend of edge widths and groups.

    Args:
        picture: graphs with a common layout.
        given: axes to draw on, one per method; by default those of a new figure.
        legend: whether there is one; on given axes, it is in the last of them.
    """
    columns = 3 if len(picture.graphs) != 4 else 2
    figure, axes = panels(len(picture.graphs), columns, 10.4 / 3, 3.55, given)
    for place, (method, graph) in zip(axes, picture.graphs.items(), strict=True):
        _draw_panel(place, method, graph, picture)
    handles, labels = _legend_entries(picture)
    if legend and given:
        columns = max(1, min(len(labels), int(_inches(axes[-1])[0] / ENTRY)))
        _make_room(axes, BESIDE + LINE * -(-len(labels) // columns))
        options: dict[str, Any] = {"loc": "lower center", "borderaxespad": 0.0, "borderpad": 0.0}
        options |= {"columnspacing": 1.2, "ncols": columns, "frameon": False}
        axes[-1].legend(handles, labels, labelcolor=INK, **options)
    elif legend:
        across = int(figure.get_figwidth() / 1.45)
        shown = figure.legend(
            handles, labels, loc="outside lower center", ncols=across, labelcolor=INK
        )
        for group, handle in zip(_explained(picture), shown.legend_handles, strict=False):
            if handle is not None and picture.palette.change:
                handle.set_gid(f"concept-{group}")
    return figure


def _inches(axes: Axes) -> tuple[float, float]:
    """Width and height of the place of some axes, before their aspect is applied."""
    dpi = axes.get_figure(root=True).dpi  # type: ignore[union-attr]
    return axes.bbox.width / dpi, axes.bbox.height / dpi


def _make_room(panels: Sequence[Axes], height: float) -> None:
    """Lower the limits of panels of one layout, so that some inches below the clients are free."""
    across, down = (min(sizes) for sizes in zip(*map(_inches, panels), strict=True))
    (left, right), (low, high) = panels[0].get_xlim(), panels[0].get_ylim()
    if_high, if_wide = height * (high - low) / max(down - height, height), height / across
    for axes in panels:
        axes.set_ylim(low - max(if_high, if_wide * (right - left)), high)


def _draw_panel(axes: Axes, method: str, graph: ClientGraph | None, picture: GraphPicture) -> None:
    axes.set_title(wrapped(method, TITLE), fontweight="bold")
    axes.set_axis_off()
    axes.set_aspect("equal", anchor="N")
    corners = np.array(list(picture.places.values()))
    low, high = corners.min(axis=0) - 0.1, corners.max(axis=0) + 0.1
    axes.set_xlim(low[0], high[0])
    axes.set_ylim(low[1], high[1])
    if graph is None:
        axes.text(0.5, 0.5, "no graph in the folder", transform=axes.transAxes, ha="center")
        return
    _draw_edges(axes, method, graph, picture.places)
    size = marker_size(len(picture.places))
    for group, members in _members(graph.groups).items():
        x, y = zip(*(picture.places[client] for client in members), strict=True)
        label = "unknown" if group is None else str(group)
        axes.plot(x, y, gid=f"clients-{method}-group-{label}", **_marker(group, picture, size))


def _draw_edges(axes: Axes, method: str, graph: ClientGraph, places: Mapping[str, Place]) -> None:
    """Draw edges of equal width as one path, so that crossings do not become darker."""
    from matplotlib.patches import PathPatch
    from matplotlib.path import Path as Outline

    by_level: dict[int, list[Place]] = {}
    for (first, second), probability in sorted(graph.edges.items()):
        if probability >= LEAST_PROBABILITY:
            level = max(1, round(probability * LEVELS))
            by_level.setdefault(level, []).extend((places[first], places[second]))
    for level, ends in sorted(by_level.items()):
        codes = [Outline.MOVETO, Outline.LINETO] * (len(ends) // 2)
        width = edge_width(level / LEVELS, len(places))
        colour = edge_colour(level / LEVELS, len(places))
        outline = Outline(np.array(ends), codes)
        patch = PathPatch(outline, fill=False, linewidth=width, edgecolor=colour)
        patch.set_gid(f"edges-{method}-{level}")
        axes.add_patch(patch)


def marker_size(clients: int) -> float:
    """Size of a client's marker, points.

    Args:
        clients: number of clients in the panel.
    """
    return min(8.5, 60 / sqrt(clients))


def edge_width(probability: float, clients: int) -> float:
    """Line width of an edge, points.

    Args:
        probability: that the clients share a cluster, in (0, 1].
        clients: number of clients in the panel.
    """
    width = LEAST_EDGE + (WIDEST_EDGE - LEAST_EDGE) * probability
    return width * min(1.0, sqrt(FEW_CLIENTS / clients))


def edge_opacity(probability: float, clients: int) -> float:
    """Opacity of an edge, in [0, 1].

    Args:
        probability: that the clients share a cluster, in (0, 1].
        clients: number of clients in the panel; edges of many would hide their markers.
    """
    least, most = (0.56, 0.8) if clients <= FEW_CLIENTS else (0.3, 0.7)
    return least + (most - least) * probability


def edge_colour(probability: float, clients: int) -> str:
    """Opaque colour of an edge that imitates its opacity on white, in hexadecimal.

    Args:
        probability: that the clients share a cluster, in (0, 1].
        clients: number of clients in the panel.
    """
    opacity = edge_opacity(probability, clients)
    parts = (round(255 - opacity * (255 - part)) for part in EDGE)
    return "#" + "".join(f"{part:02x}" for part in parts)


def _members(groups: Mapping[str, int | None]) -> dict[int | None, list[str]]:
    members: dict[int | None, list[str]] = {}
    for client in sorted(groups):
        members.setdefault(groups[client], []).append(client)
    return members


def _marker(group: int | None, picture: GraphPicture, size: float) -> dict[str, Any]:
    shape, colour = picture.palette.marker(group), picture.palette.colour(group)
    return {
        "linestyle": "none",
        "marker": shape,
        "markersize": size * LARGER.get(shape, 1.0),
        "markerfacecolor": colour,
        "markeredgecolor": "white",
        "markeredgewidth": 0.7,
    }


def _explained(picture: GraphPicture) -> Sequence[int]:
    """Groups of the legend: in a stream all concepts, which clients had at earlier steps."""
    return picture.palette.groups if picture.palette.change else picture.known_groups


def _legend_entries(picture: GraphPicture) -> tuple[list[Line2D], list[str]]:
    from matplotlib.lines import Line2D

    handles, labels = [], []
    for group in _explained(picture):
        handles.append(Line2D([], [], **_marker(group, picture, LEGEND_SIZE)))
        labels.append(picture.palette.name(group))
    count = len(picture.places)
    for probability in (0.25, 0.5, 1.0):
        width, colour = edge_width(probability, count), edge_colour(probability, count)
        handles.append(Line2D([], [], color=colour, linewidth=width))
        labels.append(f"shared {probability:.0%}")
    return handles, labels
