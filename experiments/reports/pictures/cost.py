"""Cost of each method: bytes, local trainings and seconds."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING

import numpy as np

from bcfl.drawing import INK, NARROW, SHARES, WIDTH, wrapped

if TYPE_CHECKING:
    from matplotlib.artist import Artist
    from matplotlib.axes import Axes
    from matplotlib.figure import Figure

PHASES = ("train", "score", "server", "evaluate")
NAME = 24
"""Letters of a line of a name beside its bar."""
BELOW = 2.4
"""Room for the numbers between an axis and its legend, in sizes of its font."""
UNITS = ((1e9, "GB"), (1e6, "MB"), (1e3, "kB"), (1.0, "bytes"))


@dataclass(frozen=True, kw_only=True)
class Cost:
    """Cost of a run of one method, mean over seeds.

    Attributes:
        bytes_down: payload sent to clients, bytes per round.
        bytes_up: payload of the clients' replies, bytes per round.
        trainings_requested: local trainings requested by all hypotheses, whole run.
        trainings_run: local trainings run after deduplication, whole run.
        seconds: wall-clock time by phase, whole run.
    """

    bytes_down: float
    bytes_up: float
    trainings_requested: float
    trainings_run: float
    seconds: Mapping[str, float]


def unit_of(largest: float) -> tuple[float, str]:
    """Size in bytes and name of the largest unit that does not exceed a number of bytes."""
    return next((unit for unit in UNITS if largest >= unit[0]), UNITS[-1])


def draw_cost(costs: Mapping[str, Cost], columns: int = 3) -> Figure:
    """Bars of bytes, local trainings and seconds by method.

    Args:
        costs: by method.
        columns: panels in a row, 3 or 1.
    """
    from matplotlib.figure import Figure

    size = (WIDTH if columns > 1 else NARROW), 3 // columns * (1.35 + 0.33 * len(costs))
    figure = Figure(figsize=size, layout="constrained")
    data, work, time = figure.subplots(3 // columns, columns, sharey="row").ravel()
    factor, unit = unit_of(max(c.bytes_down + c.bytes_up for c in costs.values()))
    data.set_title(f"{unit} per round", loc="left")
    parts = {
        "to clients": [c.bytes_down / factor for c in costs.values()],
        "from clients": [c.bytes_up / factor for c in costs.values()],
    }
    _stack(data, parts, SHARES[::2], list(costs))
    work.set_title("local trainings", loc="left")
    _pairs(work, costs)
    time.set_title("seconds by phase", loc="left")
    known = [phase for phase in PHASES if any(phase in c.seconds for c in costs.values())]
    phases = known or PHASES
    spent = {phase: [c.seconds.get(phase, 0.0) for c in costs.values()] for phase in phases}
    _stack(time, spent, SHARES, list(costs))
    for axes in (data, work, time)[::columns]:
        axes.set_yticks(range(len(costs)), [wrapped(method, NAME) for method in costs])
        axes.invert_yaxis()
    for axes in (data, work, time):
        axes.grid(axis="x")
        axes.tick_params(axis="y", length=0)
        axes.legend(
            loc="upper center",
            bbox_to_anchor=(0.5, 0.0),
            borderaxespad=BELOW,
            ncols=4,
            fontsize=9,
            columnspacing=1.0,
            handlelength=1.2,
            labelcolor=INK,
        )
    return figure


def cost_tips(costs: Mapping[str, Cost]) -> dict[str, str]:
    """The value of each bar, by its id.

    Args:
        costs: by method.
    """
    factor, unit = unit_of(max(c.bytes_down + c.bytes_up for c in costs.values()))
    tips: dict[str, str] = {}
    for method, one in costs.items():
        sent = {"to clients": one.bytes_down, "from clients": one.bytes_up}
        shown = {
            part: f"{size / factor:,.3g} {unit} per round {part}" for part, size in sent.items()
        }
        shown |= {phase: f"{phase}: {value:,.3g} s" for phase, value in one.seconds.items()}
        shown["requested"] = f"{one.trainings_requested:,.0f} local trainings requested"
        shown["run"] = f"{one.trainings_run:,.0f} local trainings run after deduplication"
        tips |= {_bar(method, part): f"{method}\n{text}" for part, text in shown.items()}
    return tips


def _bar(method: str, part: str) -> str:
    """Id of a bar."""
    return f"bar-{method}-{part.replace(' ', '-')}"


def _name_bars(bars: Iterable[Artist], methods: Sequence[str], part: str) -> None:
    for bar, method in zip(bars, methods, strict=True):
        bar.set_gid(_bar(method, part))


def _stack(
    axes: Axes, parts: Mapping[str, list[float]], colours: Sequence[str], methods: Sequence[str]
) -> None:
    left = np.zeros(max(map(len, parts.values()), default=0))
    for (name, lengths), colour in zip(parts.items(), colours, strict=False):
        bars = axes.barh(
            range(len(lengths)),
            lengths,
            0.62,
            left=left,
            color=colour,
            edgecolor=INK,
            linewidth=0.5,
            label=name,
        )
        _name_bars(bars, methods, name)
        left = left + np.array(lengths)


def _pairs(axes: Axes, costs: Mapping[str, Cost]) -> None:
    rows = range(len(costs))
    requested = [c.trainings_requested for c in costs.values()]
    run = [c.trainings_run for c in costs.values()]
    bars = axes.barh(
        rows, requested, 0.62, facecolor="white", edgecolor=INK, linewidth=0.9, label="requested"
    )
    _name_bars(bars, list(costs), "requested")
    bars = axes.barh(rows, run, 0.34, color=SHARES[1], label="run after deduplication")
    _name_bars(bars, list(costs), "run")
