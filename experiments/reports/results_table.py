"""Tables of results: one row per method, one column per metric, a significant best marked."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from math import isfinite
from typing import Any

import numpy as np

from experiments.reports.columns import (
    ACCURACY,
    ARI,
    ECE,
    MACRO_F1,
    NLL,
    OF_SOME,
    STEP_ACCURACY,
    UNKNOWN,
    Column,
    explain_marks,
    known,
    unequal_seeds,
)
from experiments.reports.pictures.cost import unit_of
from experiments.runs.run_folder import RunFolder


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
        seeds: number of seeds of each method where methods differ in it.
    """

    columns: Sequence[Column]
    rows: Mapping[str, Sequence[Cell]]
    note: str = ""
    seeds: Mapping[str, int] = field(default_factory=dict)


COLUMNS = (
    ACCURACY,
    MACRO_F1,
    ARI,
    Column(title="AMI", metric="ami", better=1, format="z.2f"),
    NLL,
    ECE,
    Column(title="time", unit="s", metric="seconds", format=".1f"),
    Column(title="trainings requested", metric="trainings_requested", format=",.0f"),
    Column(title="trainings run", metric="trainings_run", format=",.0f"),
    Column(title="sent down", unit="× FedAvg", metric="communication", format=".1f"),
    Column(title="largest round", unit="× FedAvg", metric="storage", format=".1f"),
    Column(title="networks run", unit="× FedAvg", metric="computation", format=".1f"),
    Column(
        title="F1 by samples", unit="%", metric="weighted_f1", better=1, format=".1f", factor=100.0
    ),
)

AGREEMENT_COLUMNS = (
    Column(title="ARI", metric="mean_ari", better=1, format="z.3f"),
    Column(title="AMI", metric="mean_ami", better=1, format="z.3f"),
    Column(title="homogeneity", metric="mean_homogeneity", better=1, format=".3f"),
    Column(title="completeness", metric="mean_completeness", better=1, format=".3f"),
)


PRIVACY_COLUMNS = (
    Column(title="releases", metric="releases", format=",.0f"),
    Column(title="privacy ε", metric="epsilon", format=",.1f"),
)
"""Of runs with differential privacy: of the client that released most."""


def agreement_table(run: RunFolder, *, paired: bool = True) -> Table | None:
    """Agreement with the true groups, mean over all rounds; None where groups are unknown.

    Args:
        run: the run.
        paired: whether a seed is the same data for all methods.
    """
    methods = [method for method in run.methods if method in run.summary]
    columns = known(AGREEMENT_COLUMNS, {method: run.summary[method] for method in methods})
    if not any(isfinite(_mean_std(run, m, c.metric)[0]) for m in methods for c in columns):
        return None
    return _table(run, methods, columns, paired)


def results_table(run: RunFolder, *, paired: bool = True) -> Table | None:
    """Results of the finished methods, None if there is none yet.

    Args:
        run: the run.
        paired: whether a seed is the same data for all methods.
    """
    methods = [method for method in run.methods if method in run.summary]
    if not methods:
        return None
    results = {method: run.summary[method] for method in methods}
    scores, private = known(OF_SOME, results), known(PRIVACY_COLUMNS, results)
    steps = known([STEP_ACCURACY], results)
    bytes = _bytes_columns(run, methods)
    columns = [COLUMNS[0], *steps, *COLUMNS[1:], *scores, *bytes, *private]
    return _table(run, methods, columns, paired)


def _table(
    run: RunFolder, methods: Sequence[str], columns: Sequence[Column], paired: bool
) -> Table:
    paired = paired and len({run.seeds(method) for method in methods}) == 1
    found = [(column, _column(run, methods, column, paired)) for column in columns]
    shown = [
        (column, cells)
        for column, cells in found
        if column in PRIVACY_COLUMNS or not _is_unknown(cells)
    ]
    rows = dict(zip(methods, zip(*(cells for _, cells in shown), strict=True), strict=True))
    marked = any(cell.best for _, cells in shown for cell in cells)
    note = explain_marks(len(methods), len(run.seeds(methods[0])), paired=paired, marked=marked)
    columns = [column for column, _ in shown]
    return Table(columns, rows, note, unequal_seeds({m: run.summary[m] for m in methods}))


def _is_unknown(cells: Sequence[Cell]) -> bool:
    """Whether nothing is known in a column, such as agreement with groups where there are none."""
    return all(cell.mean == UNKNOWN for cell in cells)


def _bytes_columns(run: RunFolder, methods: Sequence[str]) -> list[Column]:
    named = {"bytes down": "bytes_down", "bytes up": "bytes_up"}
    columns = []
    for title, name in named.items():
        factor, unit = unit_of(max(_mean_std(run, method, name)[0] for method in methods))
        columns.append(
            Column(title=title, unit=unit, metric=name, format=",.1f", factor=1 / factor)
        )
    return columns


def _column(run: RunFolder, methods: Sequence[str], column: Column, paired: bool) -> list[Cell]:
    numbers = [_mean_std(run, method, column.metric) for method in methods]
    values = {m: run.summary[m].get(column.metric, {}).get("values", []) for m in methods}
    best = column.best(values) if paired else None
    cells = []
    for method, (mean, std) in zip(methods, numbers, strict=True):
        shown = column.text(mean)
        deviates = isfinite(std) and (column.better or std > 0)
        cells.append(Cell(shown, column.text(std) if deviates else "", method == best))
    return cells


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
