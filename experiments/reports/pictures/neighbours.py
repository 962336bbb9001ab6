"""t-SNE of the clients' local models, one panel per round.

After Figure 3.5 of Ma (2023), "Clustered federated learning", PhD thesis. Neighbours
in the figure are neighbours in parameter space; larger distances are not meaningful.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING

import numpy as np
from numpy.typing import NDArray

from bcfl.drawing import FAINT, LARGER, Palette, cluster_colours, panels

if TYPE_CHECKING:
    from matplotlib.figure import Figure

FEWEST = 5
"""Minimum number of clients."""
PERPLEXITY = 30.0
NO_GROUPS = Palette()


@dataclass(frozen=True, eq=False)
class Neighbourhood:
    """Local models of one round.

    Attributes:
        round: number of the round, from 1.
        distances: (clients, clients) Euclidean distances of the models after local training.
        clusters: (clients,) int64 cluster of each client after the round.
    """

    round: int
    distances: NDArray[np.float64]
    clusters: NDArray[np.int64]


def embed(distances: NDArray[np.float64], seed: int = 0) -> NDArray[np.float64]:
    """Embed points with given distances in the plane by t-SNE.

    Args:
        distances: (points, points) distances of at least `FEWEST` points.
        seed: seed of the initialisation.

    Returns:
        (points, 2) coordinates.

    References:
        van der Maaten, Hinton (2008), "Visualizing data using t-SNE".
    """
    from sklearn.manifold import TSNE

    perplexity = min(PERPLEXITY, (len(distances) - 1) / 3)
    scale = float(np.median(distances)) or 1.0
    points: NDArray[np.float64] = TSNE(
        metric="precomputed", init="random", perplexity=perplexity, random_state=seed
    ).fit_transform(distances / scale)
    return points


def neighbour_tips(
    rounds: Sequence[Neighbourhood],
    clients: Sequence[Sequence[str]],
    groups: Sequence[Sequence[int | None]],
    palette: Palette = NO_GROUPS,
) -> dict[str, list[tuple[str, str]]]:
    """Client, cluster and true group of each point, by id of its group of points.

    Args:
        rounds: local models of each round.
        clients: for each round, the names of its clients.
        groups: for each round, the true group of each client, None where unknown.
        palette: true groups of all figures, in a stream at all time steps.
    """
    tips: dict[str, list[tuple[str, str]]] = {}
    for models, names, owners in zip(rounds, clients, groups, strict=True):
        for client, group, cluster in zip(names, owners, models.clusters, strict=True):
            known = "" if group is None else f"\n{palette.name(group)}"
            text = f"{client}\nround {models.round}: cluster {cluster}{known}"
            tips.setdefault(_points(models.round, group), []).append((client, text))
    return tips


def _points(number: int, group: int | None) -> str:
    """Id of the points of a group."""
    return f"neighbours-{number}-{'unknown' if group is None else group}"


def draw_neighbours(
    rounds: Sequence[Neighbourhood],
    groups: Sequence[Sequence[int | None]],
    num_clusters: int,
    palette: Palette = NO_GROUPS,
) -> Figure:
    """One panel per round: colour is the cluster, shape the true group.

    Args:
        rounds: local models of each round.
        groups: for each round, the true group of each client, None where unknown.
        num_clusters: number of clusters, which sets the colours.
        palette: true groups of all figures, in a stream at all time steps.
    """
    figure, places = panels(len(rounds), 4, 2.6, 2.7)
    colours = cluster_colours(num_clusters)
    known = palette.including(group for owners in groups for group in owners)
    for axes, models, owners in zip(places, rounds, groups, strict=True):
        points = embed(models.distances)
        for group in [*known.groups, None]:
            rows = np.array([row for row, own in enumerate(owners) if own == group], dtype=int)
            if len(rows):
                marker = known.marker(group)
                axes.scatter(
                    points[rows, 0],
                    points[rows, 1],
                    s=26 * LARGER.get(marker, 1.0),
                    marker=marker,
                    color=colours[models.clusters[rows]],
                    edgecolor="white",
                    linewidth=0.4,
                    gid=_points(models.round, group),
                )
        axes.set_title(f"round {models.round}", loc="left")
        axes.set_xticks([])
        axes.set_yticks([])
        for spine in axes.spines.values():
            spine.set_visible(True)
            spine.set_color(FAINT)
        axes.margins(0.08)
    return figure
