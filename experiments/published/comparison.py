"""Printed values beside measured ones."""

from __future__ import annotations

from collections.abc import Collection, Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from itertools import groupby
from statistics import fmean, stdev
from typing import Any

from experiments.published.data import Described, distinct
from experiments.published.results import Result, Results
from experiments.published.table import UNKNOWN, Column, Metric, Note, Printed, PublishedTable, Row
from experiments.published.units import missing_data, units_of
from experiments.runs.grids import METRIC as HELD_OUT
from experiments.scores.significance import compare_best

NOT_HERE = "data not here"
Found = Mapping[int, Result]
"""Results by seed."""


@dataclass(frozen=True, kw_only=True)
class Cell:
    """One metric of one method in one column.

    Attributes:
        metric: what it is.
        printed: the paper's value.
        values: ours, one for each seed with a result, in the metric's unit.
        broken: indices of the reasons why the printed value is known to be wrong.
        best: whether ours is better than that of every other method of the column, by paired tests
            over seeds.
        absent: what stands in the place of a value of ours.
    """

    metric: Metric
    printed: Printed
    values: tuple[float, ...]
    broken: tuple[int, ...]
    best: bool = False
    absent: str = UNKNOWN

    @property
    def mean(self) -> float | None:
        """Mean over seeds."""
        return fmean(self.values) if self.values else None

    @property
    def deviation(self) -> float | None:
        """Sample standard deviation over seeds, None for fewer than two."""
        return stdev(self.values) if len(self.values) > 1 else None

    @property
    def ours(self) -> str:
        """Mean and standard deviation as text."""
        if self.mean is None:
            return self.absent
        digits = self.metric.digits
        spread = "" if self.deviation is None else f" ± {self.deviation:.{digits}f}"
        return f"{self.mean:.{digits}f}{spread}"


@dataclass(frozen=True, kw_only=True)
class Line:
    """One method in one column.

    Attributes:
        column: the scenario.
        row: the method.
        cells: one for each metric.
        seeds: those with a result.
        errors: why units failed.
        seconds: wall-clock time of a seed, mean.
        data: that they were made from, each once.
    """

    column: Column
    row: Row
    cells: tuple[Cell, ...]
    seeds: tuple[int, ...]
    errors: tuple[str, ...] = ()
    seconds: float | None = None
    data: tuple[Described, ...] = ()

    @property
    def name(self) -> str:
        """Name of the row in the published table."""
        return self.row.of or self.row.name


@dataclass(frozen=True, kw_only=True)
class Comparison:
    """A table with our results at one scale.

    Attributes:
        table: the published one.
        scale: `small` or `paper`.
        lines: by column, then by row.
        missing: data that are not here, by column without results.
        is_part: whether lines were left out, and remarks on them are too.
        left_out: number of results that are left out, see `compare`.
    """

    table: PublishedTable
    scale: str
    lines: tuple[Line, ...]
    missing: Mapping[str, Sequence[str]]
    is_part: bool = False
    left_out: int = 0

    @property
    def has_results(self) -> bool:
        """Whether there is a number of ours."""
        return any(line.seeds for line in self.lines)

    @property
    def data(self) -> list[Described]:
        """The data that our results were made from, each once."""
        return distinct(data for line in self.lines for data in line.data)

    def notes(self) -> Iterator[Note]:
        """The table's notes that are about columns with lines here."""
        shown = {line.column.name for line in self.lines}
        return (note for note in self.table.notes if note.is_about(shown))

    def measured_columns(self) -> list[list[Line]]:
        """The lines of each column that has a number of ours."""
        blocks = [list(block) for _, block in groupby(self.lines, lambda line: line.column.name)]
        return [block for block in blocks if any(line.seeds for line in block)]


def compare(
    table: PublishedTable,
    scale: str,
    results: Results,
    found: Mapping[str, str],
    seeds: Sequence[int] | None = None,
    rows: Sequence[str] = (),
) -> Comparison:
    """Set the results of a table beside its printed values.

    Seeds that only some methods of a column have are left out, so that all means of a column are
    over the same draws, unless no seed is common to all.

    Args:
        table: the published one.
        scale: `small` or `paper`.
        results: ours.
        found: what is missing of each data set that is here, see `data_here`.
        seeds: other seeds than those of the scale.
        rows: names of the rows or methods whose seeds must be common; empty for all.
    """
    every: dict[str, dict[str, dict[int, Result]]] = {}
    for unit in units_of(table, scale, seeds):
        if (result := results.find(unit)) is not None:
            every.setdefault(unit.column.name, {}).setdefault(unit.row.name, {})[unit.seed] = result
    asked = {unit.row.name for unit in units_of(table, scale, seeds, rows=rows)}
    kept = {column: _of_common_seeds(of_rows, asked) for column, of_rows in every.items()}
    missing = {column.name: missing_data(table, column, found) for column in table.columns}
    lines = []
    for column in table.columns:
        for row in table.rows_of(column):
            variants = [
                (variant, kept.get(column.name, {}).get(variant.name, {}))
                for variant in table.variants_of(row)
            ]
            lines.append(_line(table, column, _chosen(variants), missing[column.name]))
    measured = {line.column.name for line in lines if line.seeds}
    absent = {name: sets for name, sets in missing.items() if sets and name not in measured}
    return Comparison(
        table=table,
        scale=scale,
        lines=_marked(lines),
        missing=absent,
        left_out=_number(every, asked) - _number(kept, asked),
    )


def part_of(
    comparison: Comparison, columns: Collection[str] = (), rows: Collection[str] = ()
) -> Comparison:
    """The lines of some columns and rows; the best values are still those of all rows.

    Args:
        comparison: table and results.
        columns: names of columns; empty for all.
        rows: names of rows or methods; empty for all.
    """
    lines = tuple(
        line
        for line in comparison.lines
        if not columns or line.column.name in columns
        if not rows or {line.name, line.row.method} & set(rows)
    )
    kept = {line.column.name for line in lines}
    missing = {name: sets for name, sets in comparison.missing.items() if name in kept}
    is_part = len(lines) < len(comparison.lines)
    return replace(comparison, lines=lines, missing=missing, is_part=is_part)


def measured_table(comparison: Comparison) -> dict[str, Any]:
    """The comparison as plain values, for JSON."""
    table = comparison.table
    return {
        "table": table.name,
        "paper": table.paper,
        "item": table.item,
        "caption": table.caption,
        "scale": comparison.scale,
        "differences": {"paper": table.paper_scale, "small": table.small_scale},
        "notes": [note.text for note in comparison.notes()],
        "data": [dict(data) for data in comparison.data],
        "data_not_here": {name: list(names) for name, names in comparison.missing.items()},
        "known_broken": [broken.reason for broken in table.broken],
        "lines": [_plain(line) for line in comparison.lines],
    }


def _plain(line: Line) -> dict[str, Any]:
    cells = {
        cell.metric.name: {
            "theirs": {
                "text": cell.printed.text,
                "mean": cell.printed.mean,
                "std": cell.printed.deviation,
                "known_broken": list(cell.broken),
            },
            "ours": {"mean": cell.mean, "std": cell.deviation, "values": list(cell.values)},
        }
        for cell in line.cells
    }
    return {
        "column": line.column.name,
        "row": line.row.name,
        "method": line.row.method,
        "options": dict(line.row.options),
        "seeds": list(line.seeds),
        "seconds": line.seconds,
        "metrics": cells,
        "errors": list(line.errors),
    }


def _of_common_seeds(of_rows: Mapping[str, Found], asked: Collection[str]) -> dict[str, Found]:
    """The results of a column with the seeds that all rows that are asked for have.

    Those of all seeds, if no seed is common.
    """
    seeds = [set(found) for row, found in of_rows.items() if row in asked]
    common = set.intersection(*seeds) if seeds else set()
    return {
        row: {seed: result for seed, result in found.items() if seed in common or not common}
        for row, found in of_rows.items()
    }


def _number(results: Mapping[str, Mapping[str, Found]], rows: Collection[str]) -> int:
    of_rows = (pair for column in results.values() for pair in column.items())
    return sum(len(found) for row, found in of_rows if row in rows)


def _chosen(variants: Sequence[tuple[Row, Found]]) -> tuple[Row, Found]:
    """The variant with the least held-out negative log-likelihood, if each has a result."""
    scores = [
        [value for result in found.values() if (value := result.value(HELD_OUT)) is not None]
        for _, found in variants
    ]
    if len(variants) == 1 or not all(scores):
        row, found = variants[0]
        return (replace(row, name=row.of or row.name), found if len(variants) == 1 else {})
    return min(zip(variants, scores, strict=True), key=lambda pair: fmean(pair[1]))[0]


def _line(
    table: PublishedTable, column: Column, chosen: tuple[Row, Found], missing: Sequence[str]
) -> Line:
    row, found = chosen
    done = {seed: result for seed, result in found.items() if result.error is None}
    errors = tuple(f"seed {seed}: {r.error}" for seed, r in found.items() if r.error is not None)
    absent = NOT_HERE if missing and row.method else "failed" if errors else UNKNOWN
    cells = tuple(
        _cell(table, column, row, metric, list(done.values()), absent) for metric in table.metrics
    )
    seconds = [float(result.content["seconds"]) for result in done.values()]
    return Line(
        column=column,
        row=row,
        cells=cells,
        seeds=tuple(done),
        errors=errors,
        seconds=fmean(seconds) if seconds else None,
        data=tuple(distinct(result.data for result in done.values())),
    )


def _cell(
    table: PublishedTable,
    column: Column,
    row: Row,
    metric: Metric,
    results: Sequence[Result],
    absent: str,
) -> Cell:
    values = [result.value(metric.measured) for result in results]
    return Cell(
        metric=metric,
        printed=table.cell(column.name, row.of or row.name, metric.name),
        values=tuple(metric.factor * value for value in values if value is not None),
        broken=tuple(table.reasons(column.name, row.of or row.name, metric.name)),
        absent=absent,
    )


def _marked(lines: Sequence[Line]) -> tuple[Line, ...]:
    """The lines; a best value of ours is marked if paired tests tell it from every other one."""
    best = {
        (column, place, name)
        for column, block in _by_column(lines).items()
        for place, metric in enumerate(cell.metric for cell in block[0].cells)
        if (name := _best_of(block, place, metric.better)) is not None
    }
    return tuple(
        replace(
            line,
            cells=tuple(
                replace(cell, best=(line.column.name, place, line.row.name) in best)
                for place, cell in enumerate(line.cells)
            ),
        )
        for line in lines
    )


def _by_column(lines: Sequence[Line]) -> Mapping[str, list[Line]]:
    columns: dict[str, list[Line]] = {}
    for line in lines:
        columns.setdefault(line.column.name, []).append(line)
    return columns


def _best_of(lines: Sequence[Line], place: int, better: int) -> str | None:
    """Name of the row that is significantly better than each other one; None if there is none."""
    known = [line for line in lines if line.cells[place].values]
    if not better or len({line.seeds for line in known}) != 1:
        return None
    values = {line.row.name: line.cells[place].values for line in known}
    compared = compare_best(values, 1 if better > 0 else -1)
    return compared.best if compared is not None and compared.is_significant else None
