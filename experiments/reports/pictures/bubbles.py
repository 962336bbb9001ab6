"""Bubble chart of a partition: clients by classes, areas proportional to sample counts.

After Figures A.1 to A.4 of Ma (2023), "Clustered federated learning", PhD thesis.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from functools import cache
from itertools import chain, pairwise
from textwrap import wrap
from typing import TYPE_CHECKING

import numpy as np
from numpy.typing import NDArray

from bcfl.drawing import FAINT, GROUP_COLOURS, INK, WIDTH, Palette, is_narrow
from experiments.partitions import classes_with_samples

if TYPE_CHECKING:
    from matplotlib.axes import Axes
    from matplotlib.figure import Figure

LEFT, RIGHT, ABOVE, BELOW = 0.62, 0.1, 0.3, 0.45
MOST_NARROW = 60
"""Number of clients up to which circles stay apart in narrow windows."""
ROW = 0.24
"""Height of a class, inches."""
GAP = 1.0
"""Gap between groups, in distances between clients."""
OVERLAP, APART = 2.5, 1.0
"""Largest diameter of a circle, in distances between clients; bounded by the height of a row.

In narrow windows, neighbours stay apart.
"""
LINE = 0.166
"""Height of a line below the picture, inches."""
LABEL_SIZE, LINE_SIZE = 9.5, 9.0
"""Of the text below groups and of lines below the picture, points."""
HINTED = 1.06
"""How much wider text may be where its letters are fitted to pixels."""
ASIDE = 0.06
"""Room between texts beside each other, inches."""


def draw_partition(
    counts: NDArray[np.int64],
    groups: Sequence[int | None],
    width: float = WIDTH,
    names: Sequence[str] = (),
) -> Figure:
    """Bubble chart of sample counts by client and class, clients ordered by true group.

    Args:
        counts: (clients, classes) int64 samples.
        groups: true group of each client, None where unknown.
        width: of the figure, inches.
        names: of the groups, by number; where they have no room below the groups they stand below
            the number of clients.
    """
    from matplotlib.figure import Figure

    shown = classes_with_samples(counts)
    counts = counts[:, shown]
    clients, classes = counts.shape
    order, places = along(groups)
    span, across = places[-1] + 1, width - LEFT - RIGHT
    step = across / (span + GAP)
    members: dict[int | None, list[int]] = {}
    for row, client in enumerate(order):
        members.setdefault(groups[client], []).append(row)
    middles = {
        group: LEFT + step * (places[rows].mean() + (GAP + 1) / 2)
        for group, rows in members.items()
        if group is not None
    }
    named = {group: f"{group}: {names[group]}" for group in middles if group in range(len(names))}
    labels = labels_below(middles, named, width)
    fit = all(labels.get(group) == name for group, name in named.items())
    lines = [] if fit else lines_of(named.values(), across)
    below = BELOW + LINE * len(lines)
    height = ABOVE + below + ROW * (classes + 0.5)
    figure = Figure(figsize=(width, height))
    box = (LEFT / width, below / height, across / width, 1 - (ABOVE + below) / height)
    axes = figure.add_axes(box)
    largest = min(0.92 * ROW, (APART if is_narrow(axes) else OVERLAP) * step) * 72
    areas = largest**2 * counts[order] / max(1, counts.max())
    _draw_circles(axes, members, places, areas)
    for group, text in labels.items():
        _draw_label(axes, middles[group] - LEFT, text)
    axes.set_xlim(-GAP / 2 - 0.5, span - 0.5 + GAP / 2)
    by = " by group" if any(text.isdigit() for text in labels.values()) else ""
    axes.set_xlabel("\n".join([f"{clients:,} clients{by}", *lines]), labelpad=14 if middles else 2)
    axes.set_xticks([])
    _name_classes(axes, shown)
    axes.set_title(f"largest circle: {int(counts.max()):,} samples", loc="right", color=FAINT)
    return figure


def _name_classes(axes: Axes, shown: NDArray[np.int64]) -> None:
    axes.set_ylim(len(shown) - 0.25, -0.75)
    axes.set_yticks(range(len(shown)), [str(label) for label in shown])
    axes.set_ylabel("class")
    axes.tick_params(length=0)
    axes.grid(axis="y")


def labels_below(
    middles: Mapping[int, float], names: Mapping[int, str], width: float
) -> dict[int, str]:
    """Text below each group: its name, its number, or that of some groups alone, as there is room.

    Args:
        middles: of the groups, from the left edge, inches, ascending.
        names: of the groups, with their numbers.
        width: of the figure, inches.
    """
    numbered = {group: f"group {group}" for group in middles}
    thinned = (
        {group: str(group) for group in [*middles][::every]} for every in range(1, len(middles) + 1)
    )
    tried = chain(({**numbered, **names}, numbered), thinned)
    return next((labels for labels in tried if _apart(labels, middles, width)), {})


def _apart(labels: Mapping[int, str], middles: Mapping[int, float], width: float) -> bool:
    """Whether texts centred at these places overlap neither each other nor an edge."""
    halves = [text_width(text, LABEL_SIZE) / 2 for text in labels.values()]
    spans = [
        (middles[group] - half, middles[group] + half)
        for group, half in zip(labels, halves, strict=True)
    ]
    edges = [(0.0, 0.0), *spans, (width, width)]
    return all(start - end >= ASIDE for (_, end), (start, _) in pairwise(edges))


def text_width(text: str, size: float) -> float:
    """Width of a line of text in the font of figures at most, inches.

    Args:
        text: the text.
        size: of the font, points.
    """
    return HINTED * size / 72 * sum(map(_letter_width, text))


@cache
def _letter_width(letter: str) -> float:
    """Width of a letter of size 1."""
    from matplotlib.font_manager import FontProperties
    from matplotlib.textpath import text_to_path

    font = FontProperties(family="DejaVu Sans", size=1)
    width, _, _ = text_to_path.get_text_width_height_descent(letter, font, ismath=False)
    return float(width)


def lines_of(labels: Iterable[str], across: float, what: str = "group") -> list[str]:
    """Numbers and names of groups in lines.

    Args:
        labels: of the groups, such as `0: mnist`; one that is wider than a line is broken.
        across: width of a line, inches.
        what: of which these are the names.
    """
    lines: list[str] = []
    for entry in (f"{what} {label}" for label in labels):
        joined = " · ".join([*lines[-1:], entry])
        if lines and text_width(joined, LINE_SIZE) <= across:
            lines[-1] = joined
            continue
        letters, parts = len(entry), [entry]
        while letters > 1 and any(text_width(part, LINE_SIZE) > across for part in parts):
            letters -= 1
            parts = wrap(entry, letters, break_on_hyphens=False)
        lines += parts
    return lines


def partition_tips(
    counts: NDArray[np.int64],
    groups: Sequence[int | None],
    clients: Sequence[str],
    classes: Sequence[str] = (),
) -> dict[str, list[tuple[str, str]]]:
    """Client, class and samples of each circle, by id of its group.

    Args:
        counts: (clients, classes) int64 samples.
        groups: true group of each client, None where unknown.
        clients: their names.
        classes: names of the classes, by number; their numbers by default.
    """
    named = [str(name) for name in classes or range(counts.shape[1])]
    tips: dict[str, list[tuple[str, str]]] = {}
    for client in along(groups)[0]:
        group = groups[client]
        for label in np.flatnonzero(counts[client]):
            number = int(counts[client, label])
            text = (
                f"{clients[client]}\nclass {named[label]}: {number:,} sample{'s' * (number != 1)}"
            )
            tips.setdefault(_circles(group), []).append((clients[client], text))
    return tips


def _circles(group: int | None) -> str:
    """Id of the circles of a group."""
    return f"bubbles-group-{'unknown' if group is None else group}"


def along(groups: Sequence[int | None]) -> tuple[list[int], NDArray[np.float64]]:
    """Horizontal layout with the clients of a group next to each other.

    Args:
        groups: true group of each client, None where unknown.

    Returns:
        Clients in drawing order, and the (clients,) float64 position of each.
    """
    keys = [(group is None, group or 0) for group in groups]
    order = sorted(range(len(groups)), key=lambda client: (keys[client], client))
    changes = np.array([keys[a] != keys[b] for a, b in pairwise(order)])
    places = np.arange(len(order)) + GAP * np.concatenate([[0], np.cumsum(changes)])
    return order, places.astype(np.float64)


def _draw_circles(
    axes: Axes,
    members: Mapping[int | None, list[int]],
    places: NDArray[np.float64],
    areas: NDArray[np.float64],
) -> None:
    palette = Palette().including(members)
    for group, rows in members.items():
        row, label = np.nonzero(areas[rows])
        axes.scatter(
            places[rows][row],
            label,
            s=areas[rows][row, label],
            color=palette.colour(group) if palette.groups else GROUP_COLOURS[0],
            alpha=0.75,
            linewidth=0,
            gid=_circles(group),
        )


def _draw_label(axes: Axes, middle: float, text: str) -> None:
    """A text below the axes, centred so many inches from their left edge."""
    axes.annotate(
        text,
        (0, 0),
        (72 * middle, -10),
        xycoords="axes fraction",
        textcoords="offset points",
        ha="center",
        fontsize=LABEL_SIZE,
        color=INK,
        annotation_clip=False,
    )
