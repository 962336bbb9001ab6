"""Heat maps of the cosine similarity of models of clusters and of clients.

After Figure 3.4 of Ma (2023), "Clustered federated learning", PhD thesis: models of
clusters should differ, those of clients in one cluster should be similar.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import TYPE_CHECKING, Any, TypeVar

import numpy as np
from numpy.typing import NDArray

from bcfl.drawing import NARROW, WIDTH, panels, wrapped

if TYPE_CHECKING:
    from matplotlib.axes import Axes
    from matplotlib.figure import Figure

Matrix = NDArray[np.float64]
Real = TypeVar("Real", bound=np.floating[Any])
TITLE = 21
"""Letters above a heat map."""
WRITTEN = 6
"""Maximum number of rows of a heat map with printed values."""
ROOMY = 5
"""Number of rows up to which printed values have room in a panel a quarter of the page wide."""
TICKS = 10
"""Maximum number of numbered rows of a heat map."""
BESIDE = 0.9
"""Width of the colour scale beside the maps, inches."""
LOW, HIGH = 0.0, 1.0
"""Cosines at the ends of the colours; those below have the colour of the lower end."""


def cosines(vectors: NDArray[Real]) -> NDArray[Real]:
    """(n, n) cosine similarity of each pair of rows; 0 for a row of zeros.

    Args:
        vectors: (n, parameters) floats.
    """
    lengths = np.linalg.norm(vectors, axis=1, keepdims=True)
    unit = np.divide(vectors, lengths, out=np.zeros_like(vectors), where=lengths > 0)
    similarity: NDArray[Real] = np.clip(unit @ unit.T, -1, 1)
    return similarity


def draw_clusters(methods: Mapping[str, tuple[Matrix, Sequence[int]]], columns: int = 4) -> Figure:
    """Heat map per method, all on the same colour scale from 0 to 1.

    Args:
        methods: by method, (clusters, clusters) cosine similarities and the cluster numbers.
        columns: most panels in a row.
    """
    most = max(len(names) for _, names in methods.values())
    columns = min(columns, 3) if len(methods) < 4 or most > ROOMY else columns
    width = (WIDTH - BESIDE) / columns if columns > 1 else NARROW
    height = width + 0.5
    figure, places = panels(len(methods), columns, width, height)
    if columns > 1:
        figure.set_figwidth(figure.get_figwidth() + BESIDE)
    for axes, (method, (matrix, names)) in zip(places, methods.items(), strict=True):
        image = _draw_map(axes, matrix, f"likeness-{method}")
        axes.set_title(wrapped(method, TITLE), loc="left", fontweight="bold")
        shown = range(0, len(names), -(-len(names) // TICKS))
        axes.set_xticks(shown, [str(names[place]) for place in shown])
        axes.set_yticks(shown, [str(names[place]) for place in shown])
        axes.set_xlabel("cluster")
        if len(names) <= WRITTEN:
            _write_numbers(axes, matrix)
    for axes in places[::columns]:
        axes.set_ylabel("cluster")
    if columns > 1:
        figure.colorbar(image, ax=list(places), label="cosine", aspect=16, pad=0.02)
    else:
        figure.colorbar(image, ax=places[-1], label="cosine", location="bottom")
    return figure


def draw_clients(models: Matrix, updates: Matrix, sizes: Sequence[int], columns: int = 2) -> Figure:
    """Heat maps of the clients' models and of their updates, clients ordered by cluster.

    Args:
        models: (clients, clients) cosine similarities of models after local training.
        updates: (clients, clients) cosine similarities of the updates.
        sizes: number of clients of each cluster, in that order.
        columns: panels in a row.
    """
    width = WIDTH / 2 if columns > 1 else NARROW
    figure, places = panels(2, columns, width, 4.3 / 5.2 * width)
    titles = ("models after training", "updates of the round")
    for axes, matrix, title in zip(places, (models, updates), titles, strict=True):
        image = _draw_map(axes, matrix, f"likeness-{title.split()[0]}")
        axes.set_title(title, loc="left")
        edges = np.cumsum([0, *sizes])
        for edge in edges[1:-1]:
            axes.axhline(edge - 0.5, color="white", linewidth=1.2)
            axes.axvline(edge - 0.5, color="white", linewidth=1.2)
        middles = (edges[:-1] + edges[1:]) / 2 - 0.5
        used = [k for k, size in enumerate(sizes) if size]
        axes.set_xticks(middles[used], [str(k) for k in used])
        axes.set_yticks(middles[used], [str(k) for k in used])
        axes.set_xlabel("cluster")
        figure.colorbar(image, ax=axes, shrink=0.85, label="cosine")
    for axes in places[::columns]:
        axes.set_ylabel("cluster")
    return figure


def _draw_map(axes: Axes, matrix: Matrix, name: str) -> Any:  # noqa: ANN401
    image = axes.imshow(
        matrix, cmap="Blues", vmin=LOW, vmax=HIGH, interpolation="nearest", gid=name
    )
    axes.tick_params(length=0)
    for spine in axes.spines.values():
        spine.set_visible(False)
    return image


def _write_numbers(axes: Axes, matrix: Matrix) -> None:
    for (row, column), value in np.ndenumerate(matrix):
        dark = value > LOW + 0.6 * (HIGH - LOW)
        axes.text(
            column,
            row,
            f"{round(float(value), 2) + 0.0:.2f}".replace("-", "−"),
            ha="center",
            va="center",
            fontsize=9,
            color="#fefefe" if dark else "#1a1a1a",
            gid=f"number-{row}-{column}",
        )
