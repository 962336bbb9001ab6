"""Cluster of each client over rounds, one line per client."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from itertools import pairwise
from typing import TYPE_CHECKING, Any

import numpy as np
from numpy.typing import NDArray

from bcfl.drawing import (
    FAINT,
    NARROW,
    WIDTH,
    Palette,
    bottom_panels,
    is_narrow,
    panels,
    whole_numbers,
    wrapped,
)
from bcfl.hypotheses import UNSEEN
from experiments.reports.pictures.drawing import ClientText

if TYPE_CHECKING:
    from matplotlib.axes import Axes
    from matplotlib.figure import Figure

LANE = 0.72
"""Height of the band of a cluster, in distances between clusters."""
TITLE, NARROW_TITLE = 26, 13
"""Letters of a line above a wide and a narrow panel, beside the number of moves."""
LISTED = 8
"""Changes of cluster that a tip lists at most."""


@dataclass(frozen=True, eq=False)
class Moves:
    """Cluster assignments of all clients over rounds.

    Attributes:
        labels: (rounds, clients) int64 cluster after each round, -1 before a client was seen, in
            the numbers of `bcfl.hypotheses.cluster_numbers`.
        num_clusters: number of clusters.
        groups: true group of each client after the last round, None where unknown.
        over_rounds: (rounds, clients) true groups after each round; empty where they do not change.
        palette: true groups of all figures, in a stream at all time steps.
    """

    labels: NDArray[np.int64]
    num_clusters: int
    groups: Sequence[int | None]
    over_rounds: Sequence[Sequence[int | None]] = ()
    palette: Palette = field(default_factory=Palette)

    @property
    def moved(self) -> NDArray[np.bool_]:
        """(rounds - 1, clients) whether a client changed its cluster."""
        before, after = self.labels[:-1], self.labels[1:]
        changed: NDArray[np.bool_] = (before != UNSEEN) & (before != after)
        return changed

    def title(self) -> str:
        """Number of changes of cluster, and the round of the last moves."""
        moved = self.moved
        if not moved.any():
            return "no moves"
        last = int(np.flatnonzero(moved.any(axis=1))[-1]) + 2
        count = int(moved.sum())
        return f"{count} move{'' if count == 1 else 's'}, the last in round {last}"

    def heights(self) -> NDArray[np.float64]:
        """(rounds, clients) vertical position of each line within the band of its cluster.

        A client has the same offset in all bands, ordered by true group.
        """
        groups = [(group is None, group or 0) for group in self.groups]
        order = sorted(range(len(groups)), key=lambda client: (groups[client], client))
        rank = np.empty(len(order))
        rank[order] = np.arange(len(order))
        within = LANE * ((rank + 0.5) / len(order) - 0.5)
        return np.where(self.labels == UNSEEN, np.nan, self.labels + within)


def move_tips(methods: Mapping[str, Moves], clients: Sequence[str]) -> dict[str, ClientText]:
    """The clusters of each client with the rounds in which it came to them, by id of its line.

    Args:
        methods: assignments of the same clients by method.
        clients: their names.
    """
    tips = {}
    for method, moves in methods.items():
        for number, (client, labels) in enumerate(zip(clients, moves.labels.T, strict=True)):
            begins = np.flatnonzero(np.diff(labels, prepend=UNSEEN))
            rows = [
                f"from round {begin + 1}: cluster {labels[begin]}" for begin in begins[-LISTED:]
            ]
            more = ["..."] if len(begins) > LISTED else []
            group = moves.groups[number]
            known = [] if group is None else [moves.palette.name(group)]
            if moves.over_rounds:
                known = [
                    f"concept {text}" for text in spans([r[number] for r in moves.over_rounds])
                ]
            text = "\n".join([client, *known, method, *more, *rows])
            tips[_line(method, number)] = ClientText(client, text)
    return tips


def spans(groups: Sequence[int | None]) -> list[str]:
    """Each group of a client with its rounds, such as `1 from round 4`; unknown ones are left out.

    Args:
        groups: of the client after each round.
    """
    begins = [n for n, group in enumerate(groups) if n == 0 or group != groups[n - 1]]
    return [f"{groups[n]} from round {n + 1}" for n in begins if groups[n] is not None]


def _line(method: str, client: int) -> str:
    """Id of the line of a client."""
    return f"move-{method}-{client}"


def draw_moves(methods: Mapping[str, Moves], columns: int = 2) -> Figure:
    """One panel per method, one line per client in the colour of its true group.

    Args:
        methods: assignments of the same clients by method.
        columns: largest number of panels in a row.
    """
    most = max(moves.num_clusters for moves in methods.values())
    figure, places = panels(
        len(methods), columns, WIDTH / 2 if columns > 1 else NARROW, max(1.7, 0.5 + 0.34 * most)
    )
    for axes, (method, moves) in zip(places, methods.items(), strict=True):
        _draw_panel(axes, method, moves)
    for axes in places[::columns]:
        axes.set_ylabel("cluster")
    for axes in bottom_panels(places, columns) if columns > 1 else places:
        axes.set_xlabel("round")
    return figure


def _draw_panel(axes: Axes, method: str, moves: Moves) -> None:
    of_client = list(zip(*(moves.over_rounds or [moves.groups] * len(moves.labels)), strict=True))
    palette = moves.palette.including({group for groups in of_client for group in groups})
    rounds = np.arange(1, len(moves.labels) + 1)
    width = float(np.clip(40 / len(moves.groups), 0.35, 1.2))
    for cluster in range(moves.num_clusters):
        axes.axhspan(cluster - LANE / 2, cluster + LANE / 2, color="#f2f2f2", linewidth=0)
    for client, (line, groups) in enumerate(zip(moves.heights().T, of_client, strict=True)):
        colours = list(map(palette.colour, groups))
        if len(set(colours)) > 1:
            _draw_in_colours(
                axes, rounds, line, colours, linewidth=width, gid=_line(method, client)
            )
            continue
        axes.plot(
            rounds,
            line,
            color=colours[0],
            linewidth=width,
            solid_joinstyle="round",
            marker="o" if len(rounds) == 1 else "",
            markersize=1.5,
            gid=_line(method, client),
        )
    axes.set_title(
        wrapped(method, NARROW_TITLE if is_narrow(axes) else TITLE), loc="left", fontweight="bold"
    )
    axes.set_title(moves.title(), loc="right", fontsize=9.5, color=FAINT)
    axes.set_xlim(1 - 0.02 * len(rounds), len(rounds) + 0.02 * len(rounds))
    axes.set_ylim(-0.55, moves.num_clusters - 0.45)
    axes.set_yticks(range(moves.num_clusters), [str(k) for k in range(moves.num_clusters)])
    axes.tick_params(axis="y", length=0)
    axes.spines["left"].set_visible(False)
    axes.xaxis.set_major_locator(whole_numbers())


def _draw_in_colours(
    axes: Axes,
    rounds: NDArray[np.int64],
    line: NDArray[np.float64],
    colours: Sequence[str],
    **style: Any,  # noqa: ANN401
) -> None:
    """A line that is in each round, and on its way there, in the colour of the round."""
    from matplotlib.collections import LineCollection

    points = np.column_stack([rounds, line])
    changes = [n for n in range(1, len(colours)) if colours[n] != colours[n - 1]]
    edges = [0, *changes, len(colours)]
    pieces = [points[max(a - 1, 0) : b] for a, b in pairwise(edges)]
    axes.add_collection(
        LineCollection(pieces, colors=[colours[a] for a in edges[:-1]], joinstyle="round", **style)
    )
