"""Bubble chart of a partition: clients by classes, areas proportional to sample counts.

After Figures A.1 to A.4 of Ma (2023), "Clustered federated learning", PhD thesis.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from itertools import groupby, pairwise
from textwrap import wrap
from typing import TYPE_CHECKING

import numpy as np
from numpy.typing import NDArray

from bcfl.drawing import FAINT, GROUP_COLOURS, INK, WIDTH, is_narrow

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

FEW_CLASSES = 20
"""Number of classes up to which those without samples have a row, too."""
LETTER, LINE = 0.08, 0.16
"""Width of a letter and height of a line below the picture, inches."""
NO_BREAK = "\N{NO-BREAK SPACE}"


def classes_with_samples(counts: NDArray[np.int64]) -> NDArray[np.int64]:
    """Classes to show: all of a few, and of many those that a client has samples of.

    Args:
        counts: (clients, classes) int64 samples.
    """
    classes = np.arange(counts.shape[1])
    held = counts.any(axis=0)
    return classes if len(classes) <= FEW_CLASSES or not held.any() else classes[held]


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
    span = places[-1] + 1
    step = (width - LEFT - RIGHT) / (span + GAP)
    known = sorted({group for group in groups if group is not None})
    labels = {group: f"{group}: {names[group]}" for group in known if group in range(len(names))}
    members = [len(list(own)) for _, own in groupby(groups[client] for client in order)]
    fits = _fit(labels, [(number + GAP) * step for number in members])
    lines = [] if fits else lines_of(labels.values(), width - LEFT - RIGHT)
    below = BELOW + LINE * len(lines)
    height = ABOVE + below + ROW * (classes + 0.5)
    figure = Figure(figsize=(width, height))
    across = width - LEFT - RIGHT
    box = (LEFT / width, below / height, across / width, 1 - (ABOVE + below) / height)
    axes = figure.add_axes(box)
    largest = min(0.92 * ROW, (APART if is_narrow(axes) else OVERLAP) * step) * 72
    areas = largest**2 * counts[order] / max(1, counts.max())
    for group in [*known, None]:
        rows = [row for row, client in enumerate(order) if groups[client] == group]
        if rows:
            text = f"group {group}" if len(known) < 9 else str(group)
            text = labels.get(group or 0, text) if fits else text
            _draw_group(axes, places[rows], areas[rows], group, (known, text))
    axes.set_xlim(-GAP / 2 - 0.5, span - 0.5 + GAP / 2)
    axes.set_ylim(classes - 0.25, -0.75)
    axes.set_yticks(range(classes), [str(label) for label in shown])
    axes.set_ylabel("class")
    axes.set_xlabel("\n".join([f"{clients:,} clients", *lines]), labelpad=14 if known else 2)
    axes.tick_params(length=0)
    axes.set_xticks([])
    axes.grid(axis="y")
    axes.set_title(f"largest circle: {int(counts.max()):,} samples", loc="right", color=FAINT)
    return figure


def _fit(labels: Mapping[int, str], widths: Sequence[float]) -> bool:
    """Whether the names of groups have room below them, of these widths in inches."""
    return all(
        LETTER * len(name) <= width for name, width in zip(labels.values(), widths, strict=False)
    )


def lines_of(labels: Iterable[str], across: float, what: str = "group") -> list[str]:
    """Numbers and names of groups in lines.

    Args:
        labels: of the groups, such as `0: mnist`.
        across: width of a line, inches.
        what: of which these are the names.
    """
    pairs = [f"{what} {label}".replace(" ", NO_BREAK) for label in labels]
    return wrap(
        "   ".join(pairs), int(across / LETTER), break_long_words=False, break_on_hyphens=False
    )


def partition_tips(
    counts: NDArray[np.int64], groups: Sequence[int | None], clients: Sequence[str]
) -> dict[str, list[tuple[str, str]]]:
    """Client, class and samples of each circle, by id of its group.

    Args:
        counts: (clients, classes) int64 samples.
        groups: true group of each client, None where unknown.
        clients: their names.
    """
    tips: dict[str, list[tuple[str, str]]] = {}
    for client in along(groups)[0]:
        group = groups[client]
        for label in np.flatnonzero(counts[client]):
            number = int(counts[client, label])
            text = f"{clients[client]}\nclass {label}: {number:,} sample{'s' * (number != 1)}"
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


def _draw_group(
    axes: Axes,
    places: NDArray[np.float64],
    areas: NDArray[np.float64],
    group: int | None,
    look: tuple[Sequence[int], str],
) -> None:
    """Circles of a group; `look` has all groups, which give its colour, and its text."""
    known, text = look
    row, label = np.nonzero(areas)
    index = 0 if group is None else known.index(group)
    axes.scatter(
        places[row],
        label,
        s=areas[row, label],
        color=GROUP_COLOURS[index % len(GROUP_COLOURS)],
        alpha=0.75,
        linewidth=0,
        gid=_circles(group),
    )
    if group is not None:
        axes.annotate(
            text,
            (places.mean(), 0),
            (0, -10),
            xycoords=("data", "axes fraction"),
            textcoords="offset points",
            ha="center",
            fontsize=9.5,
            color=INK,
            annotation_clip=False,
        )
