"""Cluster sizes over rounds."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import TYPE_CHECKING

import numpy as np
from numpy.typing import NDArray

from bcfl.drawing.style import (
    INK,
    NARROW,
    WIDTH,
    bottom_panels,
    figure_of,
    mark_rounds,
    panels,
    spread,
    whole_numbers,
    wrapped,
)

if TYPE_CHECKING:
    from matplotlib.axes import Axes
    from matplotlib.figure import Figure

Sizes = Sequence[Sequence[int]]
TITLE = 27
"""Letters above a panel."""
LINE = 0.165
"""Height of a label beside a panel, inches."""
MAP, DARKEST, LIGHTEST = "cividis", 0.12, 0.92
"""Colours of clusters: a map of matplotlib, and its range that is used."""
IN_ORDER = 8
"""Largest number of clusters whose colours are from dark to light."""
MIDDLE, WHITE = 0.5, 0.25
"""Up to where colours are too dark for dark pages, and the share of white in the darkest there."""


def draw_cluster_sizes(
    sizes: Mapping[str, Sizes], given: Sequence[Axes] = (), columns: int = 3
) -> Figure:
    """Clients per cluster of the leading hypothesis, stacked, one panel per method.

    Args:
        sizes: (rounds, clusters) number of clients by method; the number of clusters may vary.
        given: axes to draw on, one per method; by default those of a new figure.
        columns: largest number of panels in a row, 3 or 1.
    """
    width = WIDTH / 3 if columns > 1 else NARROW
    figure, axes = panels(len(sizes), columns, width, 1.75, given)
    if not given:
        figure.set_layout_engine("constrained", wspace=0.09)
    for place, (method, rows) in zip(axes, sizes.items(), strict=True):
        _draw_panel(place, method, size_table(rows))
    alone = bool(given) or columns == 1
    for place in axes if alone else axes[::columns]:
        place.set_ylabel("clients")
    for place in axes if alone else bottom_panels(axes, columns):
        place.set_xlabel("round")
    return figure


def size_table(rows: Sizes) -> NDArray[np.int64]:
    """(rounds, clusters) int64 number of clients, 0 where a cluster does not exist."""
    filled = np.zeros((len(rows), max(map(len, rows), default=0)), dtype=np.int64)
    for target, row in zip(filled, rows, strict=True):
        target[: len(row)] = row
    return filled


def cluster_colours(count: int) -> NDArray[np.float64]:
    """(clusters, 4) RGBA colour of each cluster.

    From dark to light, or where there are more than `IN_ORDER`, such that the first few differ: of
    many clusters those of the last round have the lowest numbers.

    Args:
        count: number of clusters.
    """
    import matplotlib as mpl

    places = np.linspace(0, 1, max(2, count)) if count <= IN_ORDER else _apart(count)
    colours: NDArray[np.float64] = mpl.colormaps[MAP](DARKEST + (LIGHTEST - DARKEST) * places)
    return colours


def _apart(count: int) -> NDArray[np.float64]:
    """The van der Corput sequence 0, 1/2, 1/4, 3/4, 1/8, ...: any first few fill [0, 1) evenly."""
    digits = np.arange(max(1, count - 1).bit_length())
    bits = np.arange(count)[:, None] >> digits & 1
    places: NDArray[np.float64] = (bits * 0.5 ** (digits + 1)).sum(axis=1)
    return places


def lighter_cluster_colours() -> dict[str, str]:
    """By each dark colour of clusters, the lighter one in its place on dark pages, hexadecimal.

    Their order from dark to light is kept.
    """
    import matplotlib as mpl
    from matplotlib.colors import to_hex

    colours = mpl.colormaps[MAP]
    first, last = int(DARKEST * colours.N), int(MIDDLE * colours.N)
    lighter = {}
    for index, white in zip(range(first, last), np.linspace(WHITE, 0, last - first), strict=True):
        colour = np.array(colours(index)[:3])
        lighter[to_hex(tuple(colour))] = to_hex(tuple(colour + white * (1 - colour)))
    return lighter


def _draw_panel(axes: Axes, method: str, sizes: NDArray[np.int64]) -> None:
    palette = cluster_colours(sizes.shape[1])
    edges = np.arange(len(sizes) + 1) + 0.5
    bottom = np.zeros(len(sizes))
    for cluster in range(sizes.shape[1]):
        top = bottom + sizes[:, cluster]
        axes.stairs(
            top,
            edges,
            baseline=bottom,
            fill=True,
            facecolor=palette[cluster],
            edgecolor="white",
            linewidth=0.4,
            gid=f"cluster-{method}-{cluster}",
        )
        bottom = top
    mark_rounds(axes, method, len(sizes))
    axes.set_title(wrapped(method, TITLE), loc="left", fontweight="bold")
    axes.set_xlim(edges[0], edges[-1])
    axes.set_ylim(0, max(1, bottom.max(initial=1)))
    axes.xaxis.set_major_locator(whole_numbers())
    axes.yaxis.set_major_locator(whole_numbers())
    if len(sizes):
        _label_ends(axes, sizes[-1])


def _label_ends(axes: Axes, last: NDArray[np.int64]) -> None:
    """Number and size of each cluster beside its band, apart from each other."""
    used = np.flatnonzero(last)
    middles = ((np.cumsum(last) - last / 2) / axes.get_ylim()[1])[used].tolist()
    high = axes.bbox.height / figure_of([axes]).dpi
    gap = min(LINE / high, 1 / max(1, len(used)))
    places = spread(middles, gap, gap / 2, 1 - gap / 2)
    for cluster, place in zip(used, places, strict=True):
        axes.annotate(
            f"{cluster}: {last[cluster]}",
            (1, place),
            (4, 0),
            va="center",
            fontsize=9,
            xycoords="axes fraction",
            textcoords="offset points",
            color=INK,
            annotation_clip=False,
        )
