"""Which cluster each client was in, as one line per client through the rounds."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING

import numpy as np
from numpy.typing import NDArray

from bcfl.drawing import FAINT, GROUP_COLOURS, panels, whole_numbers
from bcfl.hypotheses import UNSEEN, best_matching

if TYPE_CHECKING:
    from matplotlib.axes import Axes
    from matplotlib.figure import Figure

SAME_NUMBER = 1e-3
"""What it counts, in clients, that a cluster keeps its number."""
LANE = 0.72
"""Height of a cluster's lane, where the clusters are 1 apart."""


@dataclass(frozen=True, eq=False)
class Moves:
    """The clusters of all clients over rounds.

    Attributes:
        labels: (rounds, clients) cluster of each client after each round, -1 before it was seen.
        num_clusters: number of clusters.
        groups: true group of each client, None where unknown.
    """

    labels: NDArray[np.int64]
    num_clusters: int
    groups: Sequence[int | None]

    @classmethod
    def of(
        cls,
        labels: NDArray[np.int64],
        num_clusters: int,
        groups: Sequence[int | None],
        goes_on: Sequence[bool] = (),
    ) -> Moves:
        """Name clusters so that as few clients as can be move; in the last round as they are.

        Another hypothesis that takes the lead may number the same clusters differently.

        Args:
            labels: (rounds, clients) cluster of each client after each round, -1 before it was
                seen.
            num_clusters: number of clusters.
            groups: true group of each client, None where unknown.
            goes_on: for each round but the last, whether the next one numbers the same clusters
                alike, so that all clients may really move at once; empty where nobody knows.
        """
        named, names = np.array(labels), np.arange(num_clusters)
        for row in range(len(named) - 2, -1, -1):
            if goes_on and goes_on[row]:
                named[row] = np.where(named[row] == UNSEEN, UNSEEN, names[named[row]])
                continue
            shared = SAME_NUMBER * np.eye(num_clusters)
            both = (named[row] != UNSEEN) & (named[row + 1] != UNSEEN)
            np.add.at(shared, (named[row, both], named[row + 1, both]), 1)
            names = best_matching(shared)
            named[row] = np.where(named[row] == UNSEEN, UNSEEN, names[named[row]])
        return cls(named, num_clusters, groups)

    @property
    def moved(self) -> NDArray[np.bool_]:
        """(rounds - 1, clients) whether a client is elsewhere than the round before."""
        before, after = self.labels[:-1], self.labels[1:]
        found: NDArray[np.bool_] = (before != UNSEEN) & (before != after)
        return found

    def title(self) -> str:
        """How often clients moved, and when for the last time."""
        moved = self.moved
        if not moved.any():
            return "no moves"
        last = int(np.flatnonzero(moved.any(axis=1))[-1]) + 2
        count = int(moved.sum())
        return f"{count} move{'' if count == 1 else 's'}, the last in round {last}"

    def heights(self) -> NDArray[np.float64]:
        """(rounds, clients) place of each line: its cluster's lane, in it by true group.

        A client has the same place in all lanes, so that those of one group run side by side.
        """
        groups = [(group is None, group or 0) for group in self.groups]
        order = sorted(range(len(groups)), key=lambda client: (groups[client], client))
        rank = np.empty(len(order))
        rank[order] = np.arange(len(order))
        within = LANE * ((rank + 0.5) / len(order) - 0.5)
        return np.where(self.labels == UNSEEN, np.nan, self.labels + within)


def draw_moves(methods: Mapping[str, Moves]) -> Figure:
    """A panel per method, a line per client in the colour of its true group.

    Args:
        methods: clusters of the same clients by method.
    """
    most = max(one.num_clusters for one in methods.values())
    figure, places = panels(len(methods), 2, 5.2, max(1.7, 0.5 + 0.34 * most))
    for axes, (method, one) in zip(places, methods.items(), strict=True):
        _draw_panel(axes, method, one)
    for axes in places[::2]:
        axes.set_ylabel("cluster")
    for axes in places[-2:]:
        axes.set_xlabel("round")
    return figure


def _draw_panel(axes: Axes, method: str, one: Moves) -> None:
    known = sorted({group for group in one.groups if group is not None})
    rounds = np.arange(1, len(one.labels) + 1)
    width = float(np.clip(40 / len(one.groups), 0.35, 1.2))
    for cluster in range(one.num_clusters):
        axes.axhspan(cluster - LANE / 2, cluster + LANE / 2, color="#f2f2f2", linewidth=0)
    for client, (line, group) in enumerate(zip(one.heights().T, one.groups, strict=True)):
        colour = FAINT if group is None else GROUP_COLOURS[known.index(group) % len(GROUP_COLOURS)]
        axes.plot(
            rounds,
            line,
            color=colour,
            linewidth=width,
            solid_joinstyle="round",
            marker="o" if len(rounds) == 1 else "",
            markersize=1.5,
            gid=f"move-{method}-{client}",
        )
    axes.set_title(method, loc="left", fontweight="bold")
    axes.set_title(one.title(), loc="right", fontsize=8.5, color=FAINT)
    axes.set_xlim(1 - 0.02 * len(rounds), len(rounds) + 0.02 * len(rounds))
    axes.set_ylim(-0.55, one.num_clusters - 0.45)
    axes.set_yticks(range(one.num_clusters), [str(k) for k in range(one.num_clusters)])
    axes.tick_params(axis="y", length=0)
    axes.spines["left"].set_visible(False)
    axes.xaxis.set_major_locator(whole_numbers())
