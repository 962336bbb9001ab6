"""Association probabilities of the clients with uncertain clusters."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any

import numpy as np
import scipy
from numpy.typing import NDArray

from bcfl.drawing.cluster_sizes import cluster_colours
from bcfl.drawing.groups import LARGER, Palette
from bcfl.drawing.style import FAINT, INK, WIDTH, figure_of, is_narrow

if TYPE_CHECKING:
    import networkx as nx
    from matplotlib.axes import Axes
    from matplotlib.figure import Figure

MOST_UNCERTAIN = 20
LEAST_ENTROPY = 0.056
"""Minimum entropy of an uncertain client, nats: 99 % in one cluster, 1 % in another."""
LEAST_SHOWN = 0.0005
"""Probability below which there is no bar: it rounds to 0.0 %, and would be too thin to see."""
ROOM, NARROW_ROOM = 0.2, 0.3
"""Probability above which a bar has room for its label, in wide and in narrow figures."""
DARK = 0.5
ON_DARK, ON_LIGHT = "#fefefe", "#1a1a1a"
"""Colours of text on a bar, the same whatever the background of the page."""
PANEL = WIDTH / 2
"""Width of a panel, inches."""
BAR, ENTROPY = 0.2, 0.4
"""Height of a client's row, and width of an entropy within given axes, inches."""


@dataclass(frozen=True, eq=False)
class Memberships:
    """Association probabilities of the clients of a method.

    Attributes:
        clients: names of the clients by descending entropy.
        probabilities: (clients, clusters) float64, rows sum to 1.
        groups: true group of each client, where known.
        palette: true groups of all clients, in a stream at all time steps.
        num_colours: number of clusters that colours are for, if larger than that of clusters here,
            as in a figure of all rounds.
    """

    clients: tuple[str, ...]
    probabilities: NDArray[np.float64]
    groups: Mapping[str, int]
    palette: Palette = field(default_factory=Palette)
    num_colours: int = 0

    @classmethod
    def of(cls, graph: nx.Graph[str], num_colours: int = 0) -> Memberships:
        """From a graph of `bcfl.analysis.client_cluster_graph`, without clients never seen.

        Args:
            graph: the graph.
            num_colours: see `bcfl.drawing.Memberships`.

        Raises:
            KeyError: the graph is another one.
        """
        of: dict[str, dict[str, Any]] = {name: graph.nodes[name] for name in graph}
        named = [name for name in of if of[name]["kind"] == "cluster"]
        clusters = {name: index for index, name in enumerate(named)}
        seen = sorted(n for n in of if of[n]["kind"] == "client" and graph[n])
        table = np.zeros((len(seen), len(clusters)))
        for row, client in zip(table, seen, strict=True):
            for cluster, edge in graph[client].items():
                row[clusters[cluster]] = edge["probability"]
        order = np.argsort(
            -np.maximum(scipy.special.entr(table).sum(axis=1), 0.0).round(9), kind="stable"
        )
        groups = {name: int(data["group"]) for name, data in of.items() if "group" in data}
        palette = Palette.of_clients(of.values())
        return cls(tuple(seen[i] for i in order), table[order], groups, palette, num_colours)

    @property
    def entropies(self) -> NDArray[np.float64]:
        """(clients,) float64 entropy of each client's association, nats, descending."""
        entropy: NDArray[np.float64] = np.maximum(
            scipy.special.entr(self.probabilities).sum(axis=1), 0.0
        )
        return entropy

    @property
    def num_uncertain(self) -> int:
        """Number of clients with an entropy of at least `LEAST_ENTROPY`."""
        return int((self.entropies >= LEAST_ENTROPY).sum())


def draw_uncertain_clients(
    methods: Mapping[str, Memberships],
    given: Sequence[Axes] = (),
    width: float = WIDTH,
    *,
    legend: bool = True,
) -> Figure:
    """One panel per method, one bar per client, the most uncertain at the top.

    Args:
        methods: memberships by method; one without uncertain clients says so.
        given: axes to draw on, one per method; by default those of a new figure.
        width: of a new figure with more than one panel in a row, inches.
        legend: whether a new figure has one.
    """
    rows = [min(MOST_UNCERTAIN, rows.num_uncertain) or 2 for rows in methods.values()]
    columns = 1 if given else max(1, min(2, len(methods), int(width / PANEL)))
    lines = [max(rows[i : i + columns]) for i in range(0, len(rows), columns)]
    figure, grid = (figure_of(given), list(given)) if given else _panels(lines, columns, width)
    known = Palette.union(rows.palette.including(rows.groups.values()) for rows in methods.values())
    for place, (method, members) in zip(grid, methods.items(), strict=False):
        place.set_ylim(lines[list(methods).index(method) // columns] - 0.5, -0.5)
        if members.num_uncertain:
            _draw_panel(place, method, members, known)
            if given:
                _make_room(place)
        else:
            _draw_certain(place, method, members)
    for unused in grid[len(methods) :]:
        unused.set_axis_off()
    if legend and not given:
        _draw_legend(figure, methods, known)
    return figure


def _panels(lines: Sequence[int], columns: int, width: float) -> tuple[Figure, list[Axes]]:
    """A figure with rows of panels as high as their numbers of clients."""
    from matplotlib.figure import Figure

    figure = Figure(
        figsize=(min(PANEL, width) * columns, sum(lines) * BAR + 0.6 * len(lines) + 0.35),
        layout="constrained",
    )
    figure.set_layout_engine("constrained", h_pad=0.09)
    grid = figure.subplots(len(lines), columns, squeeze=False, height_ratios=lines)
    return figure, list(grid.ravel())


def _draw_panel(axes: Axes, method: str, members: Memberships, known: Palette) -> None:
    count = min(MOST_UNCERTAIN, members.num_uncertain)
    shown, entropies = members.probabilities[:count], members.entropies
    palette = cluster_colours(max(shown.shape[1], members.num_colours))
    left, room = np.zeros(count), NARROW_ROOM if is_narrow(axes) else ROOM
    for cluster, (colour, width) in enumerate(zip(palette, shown.T, strict=False)):
        rows = np.flatnonzero(width >= LEAST_SHOWN).tolist()
        bars = axes.barh(rows, width[rows], 0.78, left[rows], color=colour, edgecolor="white")
        for row, bar in zip(rows, bars, strict=True):
            bar.set_gid(f"membership-{method}-{members.clients[row]}-{cluster}")
            if width[row] > room:
                axes.text(
                    left[row] + width[row] / 2,
                    row,
                    f"{width[row]:.0%} in {cluster}",
                    ha="center",
                    va="center_baseline",
                    fontsize=9,
                    color=ON_DARK if colour[:3].mean() < DARK else ON_LIGHT,
                )
        left = left + width
    for row, client in enumerate(members.clients[:count]):
        axes.text(1.015, row, f"{entropies[row]:.2f}", va="center_baseline", fontsize=9)
        if client in members.groups:
            axes.plot(-0.025, row, clip_on=False, **_marker(members.groups[client], known))
    axes.set_yticks(range(count), members.clients[:count])
    axes.tick_params(axis="y", length=0, pad=17)
    axes.set_xlim(0, 1)
    axes.set_xticks([])
    for spine in axes.spines.values():
        spine.set_visible(False)
    axes.set_title(method, loc="left", fontweight="bold")
    axes.set_title("nats", loc="right", fontsize=9, color=FAINT, x=1.075)


def _make_room(axes: Axes) -> None:
    """Widen the limits of some axes, so that the entropies are within them."""
    axes.set_xlim(0, 1 + ENTROPY / (axes.bbox.width / figure_of([axes]).dpi))
    axes.set_title(axes.get_title("right"), loc="right", fontsize=9, color=FAINT, x=1.0)


def _draw_certain(axes: Axes, method: str, members: Memberships) -> None:
    axes.set_axis_off()
    axes.set_title(method, loc="left", fontweight="bold")
    words = f"none of {len(members.clients)} clients is uncertain"
    axes.text(0, 0, words, va="center_baseline", fontsize=9, color=FAINT)


def _marker(group: int, known: Palette) -> dict[str, Any]:
    shape = known.marker(group)
    return {
        "marker": shape,
        "markersize": 6.0 * LARGER.get(shape, 1.0),
        "color": known.colour(group),
        "markeredgecolor": "white",
        "markeredgewidth": 0.5,
    }


def _draw_legend(figure: Figure, methods: Mapping[str, Memberships], known: Palette) -> None:
    from matplotlib.lines import Line2D

    shown = [
        members.groups.get(client)
        for members in methods.values()
        for client in members.clients[: min(MOST_UNCERTAIN, members.num_uncertain)]
    ]
    groups = [group for group in known.groups if group in shown]
    if groups:
        handles = [Line2D([], [], linestyle="none", **_marker(g, known)) for g in groups]
        names = list(map(known.name, groups))
        columns = max(1, int(figure.get_figwidth() / 1.3))
        figure.legend(
            handles, names, loc="outside lower left", ncols=min(4, columns), labelcolor=INK
        )
