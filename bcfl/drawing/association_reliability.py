"""How often pairs of clients are of one group, by the probability that they share a cluster."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from types import MappingProxyType
from typing import TYPE_CHECKING, Any, Protocol

import numpy as np
from numpy.typing import NDArray

from bcfl.drawing.reliability import COLUMNS, EDGE, HEIGHT, WIDTH, name_axes
from bcfl.drawing.style import COLOURS, FAINT, mark_bands, panels, wrapped

if TYPE_CHECKING:
    from matplotlib.axes import Axes
    from matplotlib.figure import Figure

TITLE = 32
"""Letters of a line above a panel."""
ROOM, ABOVE, LINE = 0.5, 30, 12
"""Inches above a panel for the numbers of pairs; points from it to its texts, and of their lines.
"""


class PairBins(Protocol):
    """Bins of pairs, such as `bcfl.analysis.pairs.PairReliability`."""

    @property
    def counts(self) -> NDArray[np.int64]:
        """(bins,) pairs."""
        ...

    @property
    def predicted(self) -> NDArray[np.float64]:
        """(bins,) mean probability of sharing a cluster."""
        ...

    @property
    def observed(self) -> NDArray[np.float64]:
        """(bins,) share of pairs of one group."""
        ...

    @property
    def low(self) -> NDArray[np.float64]:
        """(bins,) lower end of the interval of `observed`."""
        ...

    @property
    def high(self) -> NDArray[np.float64]:
        """(bins,) upper end of the interval of `observed`."""
        ...

    @property
    def num_bins(self) -> int:
        """Number of bins of equal width, empty ones included."""
        ...


def draw_association_reliability(
    methods: Mapping[str, PairBins],
    given: Sequence[Axes] = (),
    columns: int = COLUMNS,
    notes: Mapping[str, str] = MappingProxyType({}),
    group: str = "group",
) -> Figure:
    """One panel per method; on the diagonal probabilities are right.

    Args:
        methods: bins by method.
        given: axes to draw on, one per method; by default those of a new figure.
        columns: largest number of panels in a row of a new figure.
        notes: lines of text below the name of a method.
        group: what clients are grouped by, such as `concept` in a stream.
    """
    lines = max((1 + note.count("\n") for note in notes.values()), default=0)
    height = HEIGHT + ROOM + lines * LINE / 72
    figure, places = panels(len(methods), columns, WIDTH, height, given)
    for axes, (method, bins) in zip(places, methods.items(), strict=True):
        axes.plot([0, 1], [0, 1], color=FAINT, linewidth=0.7)
        gaps = np.clip([bins.observed - bins.low, bins.high - bins.observed], 0, None)
        drawn = axes.errorbar(
            bins.predicted,
            bins.observed,
            gaps,
            color=COLOURS[0],
            marker="o",
            markersize=4,
            linewidth=1.2,
            elinewidth=0.9,
            capsize=2,
            clip_on=False,
        )
        drawn[0].set_gid(f"pairs-{method}")
        mark_bands(axes, method, np.linspace(0, 1, bins.num_bins + 1).tolist())
        axes.set_xlim(0, 1)
        axes.set_ylim(0, 1)
        name_axes(axes, "", "probability of sharing a cluster", f"share of pairs of one {group}")
        above = ABOVE + LINE * lines
        axes.set_title(wrapped(method, TITLE), loc="left", fontweight="bold", pad=above)
        if method in notes:
            _write_note(axes, notes[method], above)
        _write_counts(axes, bins)
    return figure


def pair_bin(probability: float, num_bins: int) -> int:
    """Index of the bin of pairs of a mean probability, from 0; bins hold their lower edges.

    Args:
        probability: from 0 to 1.
        num_bins: number of bins of equal width.
    """
    return min(int(num_bins * probability + EDGE), num_bins - 1)


def _write_note(axes: Axes, note: str, above: float) -> None:
    """Text below the title, which is some points above the panel."""
    beside: dict[str, Any] = {"xycoords": "axes fraction", "textcoords": "offset points"}
    axes.annotate(note, (0, 1), (0, above - 3), **beside, va="top", fontsize=9, color=FAINT)


def _write_counts(axes: Axes, bins: PairBins) -> None:
    """Numbers of pairs above the panel, in the middle of their bins."""
    for value, count in zip(bins.predicted, bins.counts, strict=True):
        middle = (pair_bin(value, bins.num_bins) + 0.5) / bins.num_bins
        axes.text(
            middle,
            1.03,
            f"{count:,}",
            transform=axes.get_xaxis_transform(),
            ha="center",
            va="bottom",
            fontsize=9,
            color=FAINT,
            rotation=45,
        )
