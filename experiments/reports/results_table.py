"""Tables of results: one row per method, one column per metric, a significant best marked."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from math import isfinite
from typing import Any

import numpy as np

from experiments.reports.pictures.cost import unit_of
from experiments.runs.run_folder import RunFolder
from experiments.scores.significance import LEVEL, compare_best, seeds_needed

UNKNOWN = "–"


@dataclass(frozen=True, kw_only=True)
class Column:
    """A column of the table.

    Attributes:
        title: heading.
        unit: unit of the values, empty for dimensionless ones.
        metric: name in `summary.json`, or a field of the rounds that is summed over the run.
        better: 1 if higher is better, -1 if lower is better, 0 if the best is not marked.
        format: format of mean and standard deviation.
        factor: factor applied to the values.
    """

    title: str
    unit: str
    metric: str
    better: int
    format: str
    factor: float = 1.0


@dataclass(frozen=True)
class Cell:
    """A formatted value.

    Attributes:
        mean: mean over seeds.
        spread: standard deviation over seeds, empty for one seed.
        best: whether it is better than every other method by paired tests over seeds.
    """

    mean: str
    spread: str = ""
    best: bool = False


@dataclass(frozen=True)
class Table:
    """A table of results.

    Attributes:
        columns: the columns.
        rows: cells by method, in the order of the columns.
        note: what its marks mean, or why there is none.
    """

    columns: Sequence[Column]
    rows: Mapping[str, Sequence[Cell]]
    note: str = ""


COLUMNS = (
    Column(title="accuracy", unit="%", metric="accuracy", better=1, format=".1f", factor=100.0),
    Column(title="macro-F1", unit="%", metric="macro_f1", better=1, format=".1f", factor=100.0),
    Column(title="ARI", unit="", metric="ari", better=1, format=".2f"),
    Column(title="AMI", unit="", metric="ami", better=1, format=".2f"),
    Column(title="NLL", unit="nats", metric="nll", better=-1, format=".3f"),
    Column(title="ECE", unit="", metric="ece", better=-1, format=".3f"),
    Column(title="time", unit="s", metric="seconds", better=0, format=".1f"),
    Column(
        title="trainings requested", unit="", metric="trainings_requested", better=0, format=",.0f"
    ),
    Column(title="trainings run", unit="", metric="trainings_run", better=0, format=",.0f"),
    Column(title="sent", unit="× FedAvg", metric="communication", better=0, format=".1f"),
    Column(title="stored", unit="× FedAvg", metric="storage", better=0, format=".1f"),
    Column(title="computed", unit="× FedAvg", metric="computation", better=0, format=".1f"),
    Column(
        title="F1 by samples", unit="%", metric="weighted_f1", better=1, format=".1f", factor=100.0
    ),
)

AGREEMENT_COLUMNS = (
    Column(title="ARI", unit="", metric="mean_ari", better=1, format=".3f"),
    Column(title="AMI", unit="", metric="mean_ami", better=1, format=".3f"),
    Column(title="homogeneity", unit="", metric="mean_homogeneity", better=1, format=".3f"),
    Column(title="completeness", unit="", metric="mean_completeness", better=1, format=".3f"),
)


PRIVACY_COLUMNS = (
    Column(title="releases", unit="", metric="releases", better=0, format=",.0f"),
    Column(title="privacy ε", unit="", metric="epsilon", better=0, format=",.1f"),
)
"""Of runs with differential privacy: of the client that released most."""


def agreement_table(run: RunFolder, *, paired: bool = True) -> Table | None:
    """Agreement with the true groups, mean over all rounds; None where groups are unknown.

    Args:
        run: the run.
        paired: whether a seed is the same data for all methods.
    """
    methods = [method for method in run.methods if method in run.summary]
    known = [c for c in AGREEMENT_COLUMNS if all(c.metric in run.summary[m] for m in methods)]
    if not any(isfinite(_mean_std(run, m, c.metric)[0]) for m in methods for c in known):
        return None
    return _table(run, methods, known, paired)


def results_table(run: RunFolder, *, paired: bool = True) -> Table | None:
    """Results of the finished methods, None if there is none yet.

    Args:
        run: the run.
        paired: whether a seed is the same data for all methods.
    """
    methods = [method for method in run.methods if method in run.summary]
    if not methods:
        return None
    private = [c for c in PRIVACY_COLUMNS if all(c.metric in run.summary[m] for m in methods)]
    return _table(run, methods, [*COLUMNS, *_bytes_columns(run, methods), *private], paired)


def _table(
    run: RunFolder, methods: Sequence[str], columns: Sequence[Column], paired: bool
) -> Table:
    paired = paired and len({run.seeds(method) for method in methods}) == 1
    cells = [_column(run, methods, column, paired) for column in columns]
    rows = dict(zip(methods, zip(*cells, strict=True), strict=True))
    return Table(columns, rows, _note(run, methods, paired))


def _note(run: RunFolder, methods: Sequence[str], paired: bool) -> str:
    """What the marks mean; with too few seeds, how many it takes."""
    if len(methods) < 2:
        return ""
    if not paired:
        return "No best is marked: seeds or data of the rows differ, so they cannot be paired."
    number, least = len(run.seeds(methods[0])), seeds_needed(len(methods))
    if number < least:
        return (
            f"No best is marked: whether one of {len(methods)} methods is better than each other "
            f"one takes at least {least} seeds to tell (paired Wilcoxon tests, Holm, level "
            f"{LEVEL}); these are {number}."
        )
    return (
        f"▲ better than every other method (accuracy, F1, ARI, AMI, homogeneity, completeness: "
        f"higher; NLL, ECE: lower): two-sided Wilcoxon signed-rank tests over {number} seeds, "
        f"adjusted after Holm, p ≤ {LEVEL}. A column without ▲ has no such method."
    )


def _bytes_columns(run: RunFolder, methods: Sequence[str]) -> list[Column]:
    named = {"bytes down": "bytes_down", "bytes up": "bytes_up"}
    columns = []
    for title, name in named.items():
        factor, unit = unit_of(max(_mean_std(run, method, name)[0] for method in methods))
        columns.append(
            Column(title=title, unit=unit, metric=name, better=0, format=",.1f", factor=1 / factor)
        )
    return columns


def _column(run: RunFolder, methods: Sequence[str], column: Column, paired: bool) -> list[Cell]:
    numbers = [_mean_std(run, method, column.metric) for method in methods]
    best = _best(run, methods, column) if paired else None
    cells = []
    for method, (mean, std) in zip(methods, numbers, strict=True):
        shown = _shown(mean, column)
        deviates = isfinite(std) and (column.better or std > 0)
        cells.append(Cell(shown, _shown(std, column) if deviates else "", method == best))
    return cells


def _best(run: RunFolder, methods: Sequence[str], column: Column) -> str | None:
    """The method that paired tests over seeds find better than every other one, if any."""
    if not column.better:
        return None
    values = {
        m: [_number(value) for value in run.summary[m].get(column.metric, {}).get("values", [])]
        for m in methods
    }
    found = compare_best(values, 1 if column.better > 0 else -1)
    return found.best if found is not None and found.is_significant else None


def _shown(value: float, column: Column) -> str:
    return format(value * column.factor, column.format) if isfinite(value) else UNKNOWN


def _mean_std(run: RunFolder, method: str, metric: str) -> tuple[float, float]:
    """Mean and standard deviation over seeds; NaN where unknown, and the latter for one seed."""
    if metric not in run.summary[method]:
        return _totals(run, method, metric)
    entry = run.summary[method][metric]
    several = len([v for v in entry.get("values", []) if v is not None]) > 1
    return _number(entry.get("mean")), _number(entry.get("std")) if several else float("nan")


def _totals(run: RunFolder, method: str, field: str) -> tuple[float, float]:
    values = run.series(method, field)
    if not np.isfinite(values).any():
        return float("nan"), float("nan")
    totals = np.nansum(values, axis=1)
    return float(totals.mean()), float(totals.std()) if len(totals) > 1 else float("nan")


def _number(value: Any) -> float:  # noqa: ANN401
    return float(value) if isinstance(value, int | float) else float("nan")
