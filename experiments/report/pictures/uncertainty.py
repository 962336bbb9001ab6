"""Clients that a method is not sure of, and between which clusters."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Any
from xml.etree import ElementTree

import numpy as np
from numpy.typing import NDArray
from scipy.special import entr

from experiments.config.variants import Pair
from experiments.report.pictures.client_graph import GROUP_COLOURS, LARGER, MARKERS
from experiments.report.pictures.clusters import cluster_colours
from experiments.report.pictures.drawing import FAINT, INK
from experiments.runs.files import RunFiles
from experiments.runs.run_folder import NoRunError, RunFolder

if TYPE_CHECKING:
    from matplotlib.axes import Axes
    from matplotlib.figure import Figure

MOST_CLIENTS = 20
LEAST_ENTROPY = 0.056
"""Of a client that is called uncertain, nats: 99 % in one cluster, 1 % in another."""
WIDE_ENOUGH = 0.1
DARK = 0.5
BAR = 0.2
"""Height of a client's row, inches."""


@dataclass(frozen=True, eq=False)
class Memberships:
    """In which clusters the clients of a method may be.

    Attributes:
        clients: names, the most uncertain first.
        probabilities: (clients, clusters), rows sum to 1.
        groups: true group of each client where known.
    """

    clients: tuple[str, ...]
    probabilities: NDArray[np.float64]
    groups: Mapping[str, int]

    @property
    def entropies(self) -> NDArray[np.float64]:
        """(clients,) entropy of each client's association, nats, descending."""
        entropy: NDArray[np.float64] = np.maximum(entr(self.probabilities).sum(axis=1), 0.0)
        return entropy

    @property
    def num_uncertain(self) -> int:
        """Clients of an entropy that counts."""
        return int((self.entropies >= LEAST_ENTROPY).sum())


def read_memberships(path: Path) -> Memberships:
    """Read clients and clusters; clients that were never seen are left out.

    Raises:
        NoRunError: the file isn't what `bcfl.analysis.graphs.client_cluster_graph` made.
    """
    import networkx as nx

    try:
        graph = nx.read_graphml(path)
        of: dict[str, dict[str, Any]] = {name: graph.nodes[name] for name in graph}
        named = [name for name in of if of[name]["kind"] == "cluster"]
        clusters = {name: index for index, name in enumerate(named)}
        seen = sorted(n for n in of if of[n]["kind"] == "client" and graph[n])
        table = np.zeros((len(seen), len(clusters)))
        for row, client in zip(table, seen, strict=True):
            for cluster, edge in graph[client].items():
                row[clusters[cluster]] = edge["probability"]
    except (ElementTree.ParseError, KeyError, ValueError, nx.NetworkXException) as error:
        raise NoRunError(f"{str(path)!r} is not a GraphML file of clusters: {error}") from error
    order = np.argsort(-np.maximum(entr(table).sum(axis=1), 0.0).round(9), kind="stable")
    groups = {name: int(data["group"]) for name, data in of.items() if "group" in data}
    return Memberships(tuple(seen[i] for i in order), table[order], groups)


def memberships(run: RunFolder) -> dict[str, Memberships]:
    """By method, with its first seed; methods that haven't written them yet are left out.

    Raises:
        NoRunError: a file can't be read.
    """
    files = RunFiles(run.path)
    paths = {m: files.of(Pair(m, run.seeds(m)[0])).graph("clusters") for m in run.methods}
    return {m: read_memberships(path) for m, path in paths.items() if path.is_file()}


def draw_uncertainty(methods: Mapping[str, Memberships]) -> Figure:
    """One panel per method, one bar per client, the most uncertain at the top.

    Args:
        methods: with at least one uncertain client each.
    """
    from matplotlib.figure import Figure

    rows = [min(MOST_CLIENTS, one.num_uncertain) for one in methods.values()]
    columns = min(2, len(methods))
    lines = [max(rows[i : i + columns]) for i in range(0, len(rows), columns)]
    figure = Figure(
        figsize=(5.2 * columns, sum(lines) * BAR + 0.6 * len(lines) + 0.35), layout="constrained"
    )
    figure.set_layout_engine("constrained", h_pad=0.09)
    grid = figure.subplots(len(lines), columns, squeeze=False, height_ratios=lines).ravel()
    known = sorted({group for one in methods.values() for group in one.groups.values()})
    for place, (method, one) in zip(grid, methods.items(), strict=False):
        place.set_ylim(lines[list(methods).index(method) // columns] - 0.5, -0.5)
        _draw_panel(place, method, one, known)
    for unused in grid[len(methods) :]:
        unused.set_axis_off()
    _draw_key(figure, methods, known)
    return figure


def _draw_panel(axes: Axes, method: str, one: Memberships, known: list[int]) -> None:
    count = min(MOST_CLIENTS, one.num_uncertain)
    shown, entropies = one.probabilities[:count], one.entropies
    palette = cluster_colours(shown.shape[1])
    left = np.zeros(count)
    for cluster, (colour, width) in enumerate(zip(palette, shown.T, strict=False)):
        bars = axes.barh(range(count), width, 0.78, left, color=colour, edgecolor="white")
        for row, bar in enumerate(bars):
            bar.set_gid(f"membership-{method}-{one.clients[row]}-{cluster}")
            if width[row] >= WIDE_ENOUGH:
                axes.text(
                    left[row] + width[row] / 2,
                    row,
                    f"{width[row]:.0%} in {cluster}"
                    if width[row] > 2 * WIDE_ENOUGH
                    else str(cluster),
                    ha="center",
                    va="center_baseline",
                    fontsize=7.5,
                    color="white" if colour[:3].mean() < DARK else INK,
                )
        left = left + width
    for row, client in enumerate(one.clients[:count]):
        axes.text(1.015, row, f"{entropies[row]:.2f}", va="center_baseline", fontsize=8.5)
        if client in one.groups:
            _mark_group(axes, row, known.index(one.groups[client]))
    axes.set_yticks(range(count), one.clients[:count])
    axes.tick_params(axis="y", length=0, pad=17)
    axes.set_xlim(0, 1)
    axes.set_xticks([])
    for side in ("bottom", "left"):
        axes.spines[side].set_visible(False)
    axes.set_title(method, loc="left", fontweight="bold")
    axes.set_title("nats", loc="right", fontsize=8.5, color=FAINT, x=1.075)


def _mark_group(axes: Axes, row: int, index: int) -> None:
    axes.plot(-0.025, row, clip_on=False, **_marker(index))


def _marker(index: int) -> dict[str, Any]:
    shape = MARKERS[index % len(MARKERS)]
    return {
        "marker": shape,
        "markersize": 6.0 * LARGER.get(shape, 1.0),
        "color": GROUP_COLOURS[index % len(GROUP_COLOURS)],
        "markeredgecolor": "white",
        "markeredgewidth": 0.5,
    }


def _draw_key(figure: Figure, methods: Mapping[str, Memberships], known: list[int]) -> None:
    from matplotlib.lines import Line2D

    shown = [
        one.groups.get(client)
        for one in methods.values()
        for client in one.clients[: min(MOST_CLIENTS, one.num_uncertain)]
    ]
    groups = [group for group in known if group in shown]
    if groups:
        handles = [Line2D([], [], linestyle="none", **_marker(known.index(g))) for g in groups]
        names = [f"true group {group}" for group in groups]
        figure.legend(handles, names, loc="outside lower left", ncols=4, labelcolor=INK)
