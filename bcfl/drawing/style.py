"""Colours, line styles and panels that all figures share."""

from __future__ import annotations

import re
from collections.abc import Sequence
from contextlib import AbstractContextManager
from itertools import pairwise
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from matplotlib.axes import Axes
    from matplotlib.figure import Figure
    from matplotlib.ticker import MaxNLocator

COLOURS = ("#000000", "#E69F00", "#56B4E9", "#009E73", "#D55E00", "#0072B2", "#CC79A7")
"""Colours of methods and of kinds of prediction (Okabe, Ito 2008, without yellow)."""
GROUP_COLOURS = (
    "#332288",
    "#CC6677",
    "#117733",
    "#999933",
    "#882255",
    "#AA4499",
    "#88CCEE",
    "#44AA99",
)
"""Colours of true groups, which also differ by the shape of their markers (Tol 2021, muted).

The first are far from the colours of methods, light blue and teal the last.
"""
LINEAGE_COLOURS = ("#77AADD", "#EE8866", "#44BB99", "#FFAABB", "#BBCC33", "#99DDFF")
"""Colours of lineages of hypotheses (Tol 2021, light)."""
SHARES = ("#474747", "#7c7c7c", "#b1b1b1", "#e2e2e2")
"""Greys of the parts of a cost, from dark to light in even steps of lightness."""
DASHES: tuple[Any, ...] = (
    "-",
    (0, (5, 1.5)),
    (0, (1.2, 1.2)),
    (0, (7, 1.5, 1.2, 1.5)),
    (0, (11, 2.5)),
    (0, (2.4, 1.9)),
    (0, (4, 1.2, 1.2, 1.2, 1.2, 1.2)),
    (0, (9, 1.2, 3, 1.2)),
)
"""More dashes than colours, so that neither a colour nor a dash repeats beside the other."""
WIDTH, NARROW = 10.4, 3.7
"""Widths of figures for wide and narrow windows, inches."""
MOST_BANDS = 120
INK = "#222222"
FAINT = "#6e6e6e"
_STYLE: Any = {
    "font.family": "sans-serif",
    "font.sans-serif": ["DejaVu Sans"],
    "font.size": 9.0,
    "axes.titlesize": 10.0,
    "axes.labelsize": 9.0,
    "axes.edgecolor": INK,
    "axes.labelcolor": INK,
    "axes.linewidth": 0.7,
    "axes.spines.top": False,
    "axes.spines.right": False,
    "axes.axisbelow": True,
    "axes.unicode_minus": True,
    "grid.color": "#e3e3e3",
    "grid.linewidth": 0.6,
    "text.color": INK,
    "text.parse_math": False,
    "xtick.color": INK,
    "ytick.color": INK,
    "legend.frameon": False,
    "svg.fonttype": "none",
    "svg.hashsalt": "bcfl",
}


def in_style() -> AbstractContextManager[None]:
    """Context of the style of all figures, whatever the user's own style is."""
    from matplotlib import style

    return style.context(["default", _STYLE])


def line_style(index: int) -> dict[str, Any]:
    """Colour and dashes of the method with an index; 56 distinct combinations."""
    return {
        "color": COLOURS[index % len(COLOURS)],
        "linestyle": DASHES[index % len(DASHES)],
        "linewidth": 1.7,
    }


def mark_rounds(axes: Axes, name: str, rounds: int) -> None:
    """Invisible bands, one per round, by which a page tells the values of a round.

    Args:
        axes: panel whose horizontal axis is the rounds.
        name: of the panel, unique in its figure.
        rounds: number of rounds; beyond `MOST_BANDS`, not every round has a band.
    """
    step = -(-rounds // MOST_BANDS)
    for number in range(1, rounds + 1, step):
        _mark_band(axes, number - 0.5, step, f"round-{name}-{number}")


def mark_bands(axes: Axes, name: str, edges: Sequence[float]) -> None:
    """Invisible bands between edges, by which a page tells the values there.

    Args:
        axes: a panel.
        name: of the panel, unique in its figure.
        edges: ascending places on the horizontal axis; the first band has the number 1.
    """
    for number, (start, end) in enumerate(pairwise(edges), start=1):
        _mark_band(axes, start, end - start, f"band-{name}-{number}")


def _mark_band(axes: Axes, start: float, width: float, gid: str) -> None:
    from matplotlib.patches import Rectangle

    band = Rectangle((start, 0), width, 1, transform=axes.get_xaxis_transform())
    band.set(facecolor="none", edgecolor="none", gid=gid)
    axes.add_artist(band)


def whole_numbers() -> MaxNLocator:
    """Locator of few ticks at integers."""
    from matplotlib.ticker import MaxNLocator

    return MaxNLocator(nbins=6, integer=True, min_n_ticks=1, steps=[1, 2, 5, 10])


def panels(
    count: int, columns: int, width: float, height: float, given: Sequence[Axes] = ()
) -> tuple[Figure, list[Axes]]:
    """Small multiples of one size, row by row.

    Args:
        count: number of panels.
        columns: maximum number of panels in a row.
        width: width of a panel, inches.
        height: height of a panel, inches.
        given: axes to draw on in place of those of a new figure.

    Returns:
        The figure, and the axes of each panel.
    """
    if given:
        return figure_of(given), list(given)
    from matplotlib.figure import Figure

    across = min(columns, count)
    down = -(-count // across)
    figure = Figure(figsize=(width * across, height * down), layout="constrained")
    grid = figure.subplots(down, across, squeeze=False).ravel()
    for unused in grid[count:]:
        unused.set_axis_off()
    return figure, list(grid[:count])


def bottom_panels(places: Sequence[Axes], columns: int) -> list[Axes]:
    """The panels whose horizontal axes are labelled.

    They are those of the last row, and of the one above where that is longer, so that a row has
    labels below all of its panels or below none.

    Args:
        places: row by row.
        columns: number of panels in a row.
    """
    last = (len(places) - 1) % columns + 1
    return list(places[-last:] if last == columns else places[-last - columns :])


def figure_of(given: Sequence[Axes]) -> Figure:
    """The figure of axes, which may be in one of its subfigures."""
    figure: Figure | None = given[0].get_figure(root=True)
    assert figure is not None
    return figure


def is_narrow(axes: Axes) -> bool:
    """Whether the figure of some axes is less than half as wide as those for wide windows."""
    return figure_of([axes]).get_figwidth() < WIDTH / 2


def wrapped(name: str, letters: int) -> str:
    """A name in lines that break after signs, at hyphens only where a part is too long.

    Args:
        name: such as of a method.
        letters: most letters of a line where its parts permit.
    """
    parts = []
    for part in re.split(r"(?<=[@,:/])", name):
        parts += [part] if len(part) <= letters else re.split(r"(?<=[-_=])", part)
    lines = [""]
    for part in parts:
        if lines[-1] and len(lines[-1]) + len(part) > letters:
            lines.append("")
        lines[-1] += part
    return "\n".join(lines)


def spread(values: Sequence[float], gap: float, low: float, high: float) -> list[float]:
    """Positions close to the given values and at least a gap apart where the range permits.

    Args:
        values: preferred positions.
        gap: minimum distance of two positions.
        low: lowest position.
        high: highest position.

    Returns:
        Position for each value.
    """
    order = sorted(range(len(values)), key=lambda index: values[index])
    placed = [0.0] * len(values)
    floor = low
    for index in order:
        placed[index] = floor = max(values[index], floor)
        floor += gap
    ceiling = high
    for index in reversed(order):
        placed[index] = ceiling = min(placed[index], ceiling)
        ceiling -= gap
    return placed
