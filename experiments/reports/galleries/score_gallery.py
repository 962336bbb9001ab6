"""Figures of scores and costs over methods, which any rounds and seeds have."""

from __future__ import annotations

from collections import Counter
from functools import partial

import numpy as np
from numpy.typing import NDArray

from experiments.reports.pictures import cost, curves
from experiments.reports.pictures.drawing import Picture
from experiments.reports.pictures.time_steps import CONCEPT, TimeSteps
from experiments.reports.terms import TRUE_GROUP
from experiments.runs.run_folder import RunFolder, nothing_to_tell


def score_pictures(run: RunFolder, group: str = TRUE_GROUP) -> dict[str, Picture | None]:
    """Learning curves and costs by name, None where the run has no data for one.

    Args:
        run: the run.
        group: what the true groups of clients are called.
    """
    return {"curves": _curves(run, group), "scores": _scores(run), "cost": _cost(run)}


def recorded(run: RunFolder, field: str, factor: float = 1.0) -> curves.Series:
    """(seeds, rounds) values of a field by method, for the methods that record it.

    Args:
        run: the run.
        field: of the rounds.
        factor: of the values.
    """
    series = {method: run.series(method, field) * factor for method in run.methods}
    return {m: values for m, values in series.items() if np.isfinite(values).any()}


def _curves(run: RunFolder, group: str) -> Picture | None:
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
    accuracy, agreement = (bool(panel.series) for panel in panels)
    early = f"Look for methods that recover the {group}s early (index 1)"
    if agreement:
        look = f"{early}: their accuracy should rise at the same time." if accuracy else f"{early}."
    else:
        why = f"{group.capitalize()}s are unknown, so agreement with them cannot be scored."
        if run.one_group:
            told = nothing_to_tell(stream=group == CONCEPT)
            why = f"{told[0].upper()}{told[1:]}; it is left out."
        look = f"Look for when the methods diverge and whether they still improve at the end. {why}"
    return curves.picture(
        panels,
        run.methods,
        "curves",
        f"{curves.named(panels)} over rounds, one line per method",
        f"{look} Numbers: last round. The first rounds may lie below the axis.",
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
    look = "Look for a likelihood that still gets better at the end."
    if all(panel.series for panel in panels):
        look = (
            "Look for a likelihood that gets worse while F1 still rises: predictions become "
            "overconfident."
        )
    return curves.picture(
        panels,
        run.methods,
        "scores",
        f"{curves.named(panels)} over rounds, one line per method",
        f"{look} The first rounds may lie outside the axis.",
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
