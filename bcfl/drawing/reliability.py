"""Accuracy against confidence, one panel per method."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from typing import TYPE_CHECKING, Any, Protocol

from numpy.typing import NDArray

from bcfl.drawing.style import FAINT, line_style, panels

if TYPE_CHECKING:
    import numpy as np
    from matplotlib.axes import Axes
    from matplotlib.figure import Figure

COLUMNS, WIDTH, HEIGHT = 3, 3.4, 3.0


class Bins(Protocol):
    """Bins of confidence, such as `bcfl.analysis.uncertainty.Reliability`."""

    @property
    def confidence(self) -> NDArray[np.float64]:
        """(bins,) mean confidence."""
        ...

    @property
    def accuracy(self) -> NDArray[np.float64]:
        """(bins,) share of correct predictions."""
        ...


def draw_reliability(
    methods: Mapping[str, Mapping[str, Bins]], given: Sequence[Axes] = ()
) -> Figure:
    """Accuracy against confidence; on the diagonal confidence is right.

    Args:
        methods: by method, then by kind of prediction.
        given: axes to draw on, one per method; by default those of a new figure.
    """
    figure, places = panels(len(methods), COLUMNS, WIDTH, HEIGHT, given)
    styles = kind_styles(methods.values())
    for axes, (method, kinds) in zip(places, methods.items(), strict=True):
        axes.plot([0, 1], [0, 1], color=FAINT, linewidth=0.7)
        for kind, bins in kinds.items():
            style = {**styles[kind], "marker": "o", "markersize": 3.5}
            axes.plot(bins.confidence, bins.accuracy, label=kind, gid=f"{method}-{kind}", **style)
        axes.set_xlim(0, 1.02)
        axes.set_ylim(0, 1.02)
        name_axes(axes, method, "confidence", "accuracy")
    return figure if given else with_legend(figure, places)


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
    """A line style for each kind of prediction, the same in all panels."""
    kinds = dict.fromkeys(kind for method in methods for kind in method)
    return {kind: line_style(index) for index, kind in enumerate(kinds)}


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
    figure.legend(drawn.values(), drawn.keys(), loc="outside lower left", ncols=len(drawn))
    return figure
