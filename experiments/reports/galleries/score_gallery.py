"""Figures of scores and costs over methods, which any rounds and seeds have."""

from __future__ import annotations

from collections import Counter
from functools import partial

import numpy as np
from numpy.typing import NDArray

from experiments.reports.pictures import cost, curves
from experiments.reports.pictures.drawing import Picture
from experiments.reports.pictures.time_steps import TimeSteps
from experiments.runs.run_folder import NOTHING_TO_TELL, RunFolder


def score_pictures(run: RunFolder) -> dict[str, Picture | None]:
    """Learning curves and costs by name, None where the run has no data for one."""
    return {"curves": _curves(run), "scores": _scores(run), "cost": _cost(run)}


def recorded(run: RunFolder, field: str, factor: float = 1.0) -> curves.Series:
    """(seeds, rounds) values of a field by method, for the methods that record it.

    Args:
        run: the run.
        field: of the rounds.
        factor: of the values.
    """
    series = {method: run.series(method, field) * factor for method in run.methods}
    return {m: values for m, values in series.items() if np.isfinite(values).any()}


def _curves(run: RunFolder) -> Picture | None:
    panels = [
        curves.Panel(
            name="accuracy",
            title="accuracy, %",
            series=recorded(run, "accuracy", 100.0),
            format="{:z.1f}",
            zoom=True,
        ),
        curves.Panel(
            name="ari",
            title="adjusted Rand index",
            series=recorded(run, "ari"),
            limits=(-0.03, 1.03),
        ),
    ]
    several = any(len(run.seeds(method)) > 1 for method in run.methods)
    band = " Line: mean over seeds; band: minimum to maximum." if several else ""
    both = all(panel.series for panel in panels)
    why = (
        f"{NOTHING_TO_TELL[0].upper()}{NOTHING_TO_TELL[1:]}; it is left out."
        if run.one_group
        else "True groups are unknown, so agreement with them cannot be scored."
    )
    look = (
        "Look for methods that recover the true groups early (index 1): their accuracy should rise "
        "at the same time."
        if both
        else f"Look for when the methods diverge and whether they still improve at the end. {why}"
    )
    return curves.picture(
        panels,
        run.methods,
        "curves",
        "Accuracy and adjusted Rand index over rounds, one line per method",
        f"{look}{band} Numbers: last round. The first rounds may lie below the axis.",
        TimeSteps.of(run),
    )


def _scores(run: RunFolder) -> Picture | None:
    panels = [
        curves.Panel(
            name="macro-f1",
            title="macro-F1, %, mean over clients",
            series=recorded(run, "macro_f1", 100.0),
            format="{:z.1f}",
            zoom=True,
        ),
        curves.Panel(
            name="nll",
            title="negative log-likelihood, nats",
            series=recorded(run, "nll"),
            zoom=True,
        ),
    ]
    return curves.picture(
        panels,
        run.methods,
        "scores",
        "Macro-F1 and negative log-likelihood over rounds, one line per method",
        "Look for a likelihood that gets worse while F1 still rises: predictions become "
        "overconfident. The first rounds may lie outside the axis.",
        TimeSteps.of(run),
    )


def _cost(run: RunFolder) -> Picture:
    costs = {method: _cost_of(run, method) for method in run.methods}
    return Picture.of(
        partial(cost.draw_cost, costs),
        "cost",
        "Bytes per round, local trainings and seconds by phase, by method",
        "Look for local trainings that deduplication saved: hypotheses shared them. Means over "
        "seeds; bytes are payload without evaluation.",
        cost.cost_tips(costs),
        narrow=partial(cost.draw_cost, costs, columns=1),
    )


def _cost_of(run: RunFolder, method: str) -> cost.Cost:
    phases: Counter[str] = Counter()
    for rounds in run.rounds[method].values():
        for entry in rounds:
            spent = entry.get("seconds") or {}
            phases.update({phase: time for phase, time in spent.items() if time is not None})
    seeds = len(run.seeds(method))
    return cost.Cost(
        bytes_down=_mean(run.series(method, "bytes_down")),
        bytes_up=_mean(run.series(method, "bytes_up")),
        trainings_requested=_mean(np.nansum(run.series(method, "trainings_requested"), axis=1)),
        trainings_run=_mean(np.nansum(run.series(method, "trainings_run"), axis=1)),
        seconds={phase: float(value) / seeds for phase, value in phases.items()},
    )


def _mean(values: NDArray[np.float64]) -> float:
    known = values[np.isfinite(values)]
    return float(known.mean()) if known.size else 0.0
