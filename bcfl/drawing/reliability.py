"""Accuracy against confidence, one panel per method."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from math import ceil
from typing import TYPE_CHECKING, Any, Protocol

import numpy as np
from numpy.typing import NDArray

from bcfl.drawing.style import FAINT, line_style, mark_bands, panels

if TYPE_CHECKING:
    from matplotlib.axes import Axes
    from matplotlib.figure import Figure

COLUMNS, WIDTH, HEIGHT = 3, 3.4, 3.0
ENTRY = 1.7
"""Width of an entry of a legend, inches."""


KINDS = (0, 1, 5, 3, 6, 4, 2)
"""Line styles of kinds of prediction, neighbours far apart in lightness."""
THINNEST, WIDER = 1.5, 1.0
"""Points: width of the line of the last kind of prediction, and what each one below adds."""
EDGE = 1e-9
"""Distance to an edge, in bins, within which a probability counts as the edge."""
ROW = 0.17
"""Inches above a panel for the numbers of samples of one kind of prediction."""
MOST_LEVEL, SLANTED = 10, 0.36
"""Bins up to which these numbers have room beside each other, and a row of numbers at a slant."""
QUANTILE = 1.959964
"""Standard normal quantile of a two-sided interval of 95 %."""


class Bins(Protocol):
    """Bins of confidence, such as `bcfl.analysis.uncertainty.Reliability`."""

    @property
    def counts(self) -> NDArray[np.int64]:
        """(bins,) samples."""
        ...

    @property
    def confidence(self) -> NDArray[np.float64]:
        """(bins,) mean confidence."""
        ...

    @property
    def accuracy(self) -> NDArray[np.float64]:
        """(bins,) share of correct predictions."""
        ...

    @property
    def num_bins(self) -> int:
        """Number of bins of equal width, empty ones included."""
        ...


def draw_reliability(
    methods: Mapping[str, Mapping[str, Bins]], given: Sequence[Axes] = (), *, legend: bool = True
) -> Figure:
    """Accuracy against confidence; on the diagonal confidence is right.

    Bars are 95 % intervals of the accuracy after Wilson; numbers above a panel are samples, of
    several kinds a row for each, with its line.

    Args:
        methods: by method, then by kind of prediction.
        given: axes to draw on, one per method; by default those of a new figure.
        legend: whether a new figure has one.
    """
    above = max((_row(kinds) * len(kinds) for kinds in methods.values()), default=0.0)
    figure, places = panels(len(methods), COLUMNS, WIDTH, HEIGHT + above, given)
    styles = kind_styles(methods.values())
    for axes, (method, kinds) in zip(places, methods.items(), strict=True):
        axes.plot([0, 1], [0, 1], color=FAINT, linewidth=0.7)
        for row, (kind, bins) in enumerate(reversed(list(kinds.items()))):
            up = 72 * (row + 0.5) * _row(kinds)
            _write_counts(axes, bins, up)
            if len(kinds) > 1:
                _draw_key(axes, up, styles[kind])
        for kind, bins in kinds.items():
            gaps = np.abs(bins.accuracy - wilson(bins.accuracy, bins.counts))
            colour = styles[kind]["color"]
            axes.errorbar(
                bins.confidence, bins.accuracy, gaps, fmt="none", ecolor=colour, elinewidth=0.9
            )
            style = {**styles[kind], "marker": "o", "markersize": 3.5}
            axes.plot(bins.confidence, bins.accuracy, label=kind, gid=f"{method}-{kind}", **style)
        mark_bands(axes, method, np.linspace(0, 1, finest(kinds.values()) + 1).tolist())
        axes.set_xlim(0, 1.02)
        axes.set_ylim(0, 1.02)
        name_axes(axes, "", "confidence", "accuracy")
        axes.set_title(method, loc="left", fontweight="bold", pad=6 + 72 * above)
    return with_legend(figure, places) if legend and not given else figure


def finest(kinds: Iterable[Bins]) -> int:
    """Number of bins of a panel: the largest of its kinds of prediction."""
    return max((bins.num_bins for bins in kinds), default=1)


def bin_of(probability: float, num_bins: int) -> int:
    """Index of the bin of a mean probability, from 0; bins hold their upper edges.

    Args:
        probability: from 0 to 1.
        num_bins: number of bins of equal width.
    """
    return max(0, ceil(num_bins * probability - EDGE) - 1)


def wilson(shares: NDArray[np.float64], counts: NDArray[np.int64]) -> NDArray[np.float64]:
    """(2, bins) lower and upper ends of the 95 % intervals of binomial proportions.

    Args:
        shares: (bins,) observed proportions.
        counts: (bins,) samples, at least 1.

    References:
        Wilson (1927), "Probable inference, the law of succession, and statistical inference".
    """
    spread = QUANTILE**2 / counts
    centre = shares + spread / 2
    half = np.sqrt(spread * (shares * (1 - shares) + spread / 4))
    return np.stack([centre - half, centre + half]) / (1 + spread)


def _row(kinds: Mapping[str, Bins]) -> float:
    """Height of the numbers of samples of one kind of prediction, inches."""
    return ROW if finest(kinds.values()) <= MOST_LEVEL else SLANTED


def _draw_key(axes: Axes, up: float, style: Mapping[str, Any]) -> None:
    """The line of a kind of prediction beside its numbers of samples."""
    from matplotlib.transforms import offset_copy

    beside = offset_copy(axes.transAxes, axes.get_figure(root=True), y=up, units="points")
    line = {"arrowstyle": "-", "shrinkA": 0, "shrinkB": 0, **style}
    axes.annotate(
        "", (-0.13, 1), (-0.03, 1), beside, beside, arrowprops=line, annotation_clip=False
    )


def _write_counts(axes: Axes, bins: Bins, up: float) -> None:
    """Numbers of samples above a panel, in the middle of their bins."""
    at: dict[str, Any] = {"xycoords": "axes fraction", "textcoords": "offset points"}
    at |= {"rotation": 45 if bins.num_bins > MOST_LEVEL else 0, "fontsize": 9, "color": FAINT}
    for value, count in zip(bins.confidence, bins.counts, strict=True):
        text = f"{count:,}" if count < 1000 else f"{count / 1000:.2g}k"
        middle = (bin_of(value, bins.num_bins) + 0.5) / bins.num_bins
        axes.annotate(text, (middle, 1), (0, up), **at, ha="center", va="center")


def name_axes(axes: Axes, title: str, across: str, up: str) -> None:
    """Title and labels of a panel.

    Args:
        axes: the panel.
        title: above it, at the left.
        across: of the horizontal axis.
        up: of the vertical axis.
    """
    axes.set_title(title, loc="left")
    axes.set_xlabel(across)
    axes.set_ylabel(up)
    axes.grid(axis="y")


def kind_styles(methods: Iterable[Iterable[str]]) -> dict[str, dict[str, Any]]:
    """A line style for each kind of prediction, the same in all panels.

    Later kinds are drawn on earlier ones and are narrower, so that equal lines are all seen.
    """
    kinds = dict.fromkeys(kind for method in methods for kind in method)
    return {
        kind: {
            **line_style(KINDS[index % len(KINDS)]),
            "linewidth": THINNEST + WIDER * (len(kinds) - 1 - index),
        }
        for index, kind in enumerate(kinds)
    }


def with_legend(figure: Figure, places: Sequence[Axes]) -> Figure:
    """The figure, with one legend for all panels.

    Args:
        figure: figure to add the legend to.
        places: panels whose labelled artists it lists.
    """
    drawn: dict[str, Any] = {}
    for axes in places:
        handles, names = axes.get_legend_handles_labels()
        for name, handle in zip(names, handles, strict=True):
            drawn.setdefault(name, handle)
    columns = min(len(drawn), max(1, int(figure.get_figwidth() / ENTRY)))
    figure.legend(drawn.values(), drawn.keys(), loc="outside lower left", ncols=columns)
    return figure
