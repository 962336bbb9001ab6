"""Clients of a stream: samples by class over all time steps, and the concept of each step."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import TYPE_CHECKING, Any

import numpy as np
from numpy.typing import NDArray

from bcfl.drawing import FAINT, INK, WIDTH, Palette, whole_numbers
from experiments.partitions import classes_with_samples
from experiments.reports.pictures.bubbles import LINE, lines_of, partition_tips

if TYPE_CHECKING:
    from matplotlib.axes import Axes
    from matplotlib.figure import Figure

    from experiments.reports.pictures.time_steps import Concepts

LEFT, RIGHT, ABOVE, BELOW, BETWEEN = 0.62, 0.1, 0.3, 0.35, 0.45
ROW, TILE = 0.24, 0.24
"""Height of a class and of a time step, inches."""
WIDEST = 0.3
"""Width of a tile at most, inches."""
DIGIT = 0.13
"""Width of a tile from which on it has the number of its concept, inches."""
DIGIT_SIZE = 52
"""Of such a number, in square points."""


def order_of(concepts: Concepts) -> list[str]:
    """Clients with those of like concepts beside each other: by the concepts from step 0 on.

    Args:
        concepts: of the clients.
    """
    return sorted(concepts, key=lambda name: ([(c is None, c or 0) for c in concepts[name]], name))


def draw_stream(
    concepts: Concepts,
    counts: Mapping[str, NDArray[np.int64]] | None,
    width: float = WIDTH,
    names: Sequence[str] = (),
) -> Figure:
    """Circles of samples by client and class above tiles of the concept at each time step.

    Args:
        concepts: of the clients at each time step.
        counts: (classes,) int64 samples of each client; None leaves out the circles.
        width: of the figure, inches.
        names: of the concepts, by number.
    """
    from matplotlib.figure import Figure

    order = order_of(concepts)
    steps = max(len(known) for known in concepts.values())
    table = None if counts is None else np.stack([counts[name] for name in order])
    shown = np.arange(0) if table is None else classes_with_samples(table)
    classes = len(shown)
    occurring = sorted({c for own in concepts.values() for c in own if c is not None})
    known = [f"{each}: {names[each]}" for each in occurring if each in range(len(names))]
    lines = lines_of(known, width - LEFT - RIGHT, "concept")
    below = BELOW + LINE * len(lines)
    circles = ROW * (classes + 0.5) + BETWEEN if classes else 0.0
    tiles = TILE * steps
    height = ABOVE + circles + tiles + below
    figure, across = Figure(figsize=(width, height)), width - LEFT - RIGHT
    axes = figure.add_axes(
        (LEFT / width, below / height, across / width, tiles / height), label="concepts"
    )
    _draw_tiles(axes, [concepts[name] for name in order], steps, across)
    axes.set_xlabel("\n".join([f"{len(order):,} clients", *lines]))
    if table is not None:
        bottom = below + tiles + BETWEEN
        box = (LEFT / width, bottom / height, across / width, (circles - BETWEEN) / height)
        samples = figure.add_axes(box, label="samples")
        _draw_circles(samples, table[:, shown], across)
        samples.set_yticks(range(classes), [str(label) for label in shown])
    return figure


def stream_tips(
    concepts: Concepts, counts: Mapping[str, NDArray[np.int64]] | None
) -> dict[str, list[tuple[str, str]]]:
    """Client and text of each circle and tile, by id of its group; digits on tiles have none.

    Args:
        concepts: of the clients at each time step.
        counts: (classes,) int64 samples of each client; None where there are no circles.
    """
    order, tips = order_of(concepts), {}
    if counts is not None:
        table = np.stack([counts[name] for name in order])
        tips = partition_tips(table, [None] * len(order), order)
    for concept in Palette().including(c for own in concepts.values() for c in own).groups:
        texts = [
            (name, f"{name}\ntime step {step}: concept {concept}")
            for name in order
            for step, own in enumerate(concepts[name])
            if own == concept
        ]
        tips[_tiles(concept)] = texts
    return tips


def _tiles(concept: int, part: str = "tiles") -> str:
    """Id of the tiles of a concept, or of the digits on them."""
    return f"{part}-concept-{concept}"


def _draw_tiles(
    axes: Axes, rows: Sequence[Sequence[int | None]], steps: int, across: float
) -> None:
    from matplotlib import rc_context

    palette, step = Palette().including(c for row in rows for c in row), across / len(rows)
    for concept in palette.groups:
        places = [
            (x, y) for x, row in enumerate(rows) for y, own in enumerate(row) if own == concept
        ]
        x, y = np.array(places).T
        axes.scatter(
            x,
            y,
            s=(72 * 0.92 * min(step, TILE, WIDEST)) ** 2,
            marker="s",
            color=palette.colour(concept),
            linewidth=0,
            gid=_tiles(concept),
        )
        if step >= DIGIT:
            digit: Any = f"${concept}$"
            gid = _tiles(concept, "digits")
            # Markers are scaled to their longer side, which for more than a letter is the width.
            size = min(DIGIT_SIZE * len(str(concept)) ** 2, (72 * 0.85 * min(step, TILE)) ** 2)
            size = max(size, DIGIT_SIZE)
            with rc_context({"text.parse_math": True}):  # markers of letters are formulas
                axes.scatter(x, y, s=size, marker=digit, color="white", linewidth=0, gid=gid)
    _frame(axes, len(rows))
    axes.set_ylim(steps - 0.5, -0.5)
    axes.yaxis.set_major_locator(whole_numbers())
    axes.set_ylabel("time step")
    axes.set_title("concept", loc="right", color=FAINT)


def _draw_circles(axes: Axes, counts: NDArray[np.int64], across: float) -> None:
    clients, classes = counts.shape
    largest = 0.92 * min(ROW, across / clients) * 72
    client, label = np.nonzero(counts)
    areas = largest**2 * counts[client, label] / max(1, counts.max())
    axes.scatter(
        client, label, s=areas, color=INK, alpha=0.75, linewidth=0, gid="bubbles-group-unknown"
    )
    _frame(axes, clients)
    axes.set_ylim(classes - 0.25, -0.75)
    axes.set_ylabel("class")
    axes.grid(axis="y")
    axes.set_title(
        f"largest circle: {int(counts.max()):,} samples of all time steps", loc="right", color=FAINT
    )


def _frame(axes: Axes, clients: int) -> None:
    axes.set_xlim(-1, clients)
    axes.set_xticks([])
    axes.tick_params(length=0)
