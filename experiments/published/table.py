"""A published table: its columns, rows, printed values and scales."""

from __future__ import annotations

import re
from collections.abc import Collection, Mapping, Sequence
from dataclasses import dataclass, field, replace
from itertools import product
from typing import Any

from experiments.config.variants import nested

PAPER, SMALL = "paper", "small"
SCALES = (SMALL, PAPER)
UNKNOWN = "–"
_NUMBER = re.compile(r"\s*(-?[\d.]+)(?:\s*±\s*([\d.]+))?x?\s*")
KINDS = ("curves", "bars", "segments")
_NAMED = {"data": "dataset", "partition": "kind", "model": "name"}


@dataclass(frozen=True, kw_only=True)
class Metric:
    """A metric of a table.

    Attributes:
        name: as the paper prints it.
        measured: its name among the metrics of a result, see `experiments.published.results`.
        factor: of the measured value, such as 100 for per cent.
        digits: decimals that are shown.
        better: 1 if higher is better, -1 if lower, 0 if neither.
        note: how the two differ, if they do.
    """

    name: str
    measured: str
    factor: float = 100.0
    digits: int = 2
    better: int = 1
    note: str = ""


@dataclass(frozen=True, kw_only=True)
class Column:
    """A column of a table: one scenario.

    Attributes:
        name: short name, for the command and for files.
        title: as the paper prints it.
        scenario: keys and values of a scenario, over those of the table.
        small: the same, for the scale `small`.
        rows: rows that the column has; empty for all.
    """

    name: str
    title: str
    scenario: Mapping[str, Any] = field(default_factory=dict)
    small: Mapping[str, Any] = field(default_factory=dict)
    rows: tuple[str, ...] = ()

    @property
    def heading(self) -> str:
        """What stands before the comma of its title."""
        return self.title.partition(",")[0]


@dataclass(frozen=True, kw_only=True)
class Row:
    """A row of a table: a method with its options.

    Attributes:
        name: as the paper prints it.
        method: name of the method; none where there is none.
        options: of the method.
        note: why there is no method, or how it differs.
        of: name of the row that it is a variant of.
    """

    name: str
    method: str = ""
    options: Mapping[str, Any] = field(default_factory=dict)
    note: str = ""
    of: str = ""


@dataclass(frozen=True, kw_only=True)
class Broken:
    """Printed values that are known to be wrong.

    Attributes:
        reason: one sentence.
        columns: names; empty for all.
        rows: names; empty for all.
        metrics: names; empty for all.
    """

    reason: str
    columns: tuple[str, ...] = ()
    rows: tuple[str, ...] = ()
    metrics: tuple[str, ...] = ()

    def has(self, column: str, row: str, metric: str) -> bool:
        """Whether a printed value is one of these."""
        places = ((self.columns, column), (self.rows, row), (self.metrics, metric))
        return all(not names or name in names for names, name in places)


@dataclass(frozen=True)
class Note:
    """A remark below a table.

    Attributes:
        text: one or more sentences.
        columns: names of the columns that it is about; empty for all.
    """

    text: str
    columns: tuple[str, ...] = ()

    def is_about(self, columns: Collection[str]) -> bool:
        """Whether it is about one of some columns."""
        return not self.columns or any(name in columns for name in self.columns)


@dataclass(frozen=True, kw_only=True)
class Figure:
    """A figure of a table's results.

    Attributes:
        kind: `curves` over rounds, `bars` with standard deviations, or `segments` from the second
            metric to the first.
        metrics: measured names, one panel each beside each column; of segments two in one panel.
        titles: of the metrics, with units.
        pooled: whether curves are means over the columns whose titles agree before the comma.
    """

    kind: str
    metrics: tuple[str, ...]
    titles: tuple[str, ...]
    pooled: bool = False

    def __post_init__(self) -> None:
        if self.kind not in KINDS:
            raise ValueError(f"kind of a figure must be {', '.join(KINDS)}, got {self.kind!r}")
        if self.kind == "segments" and len(self.metrics) != 2:
            raise ValueError(f"segments have two ends, got metrics {', '.join(self.metrics)}")
        if len(self.metrics) != len(self.titles):
            raise ValueError(
                f"a figure needs a title for each of {len(self.metrics)} metrics, "
                f"got {len(self.titles)}"
            )


@dataclass(frozen=True)
class Printed:
    """A printed value.

    Attributes:
        text: as it is printed.
    """

    text: str = UNKNOWN

    @property
    def mean(self) -> float | None:
        """The number, in the paper's unit; None where the text is none."""
        match = _NUMBER.fullmatch(self.text)
        return float(match[1]) if match else None

    @property
    def deviation(self) -> float | None:
        """What stands behind the plus-minus sign."""
        match = _NUMBER.fullmatch(self.text)
        return float(match[2]) if match and match[2] else None


@dataclass(frozen=True, kw_only=True)
class PublishedTable:
    """A table, or a figure, of a paper.

    Attributes:
        name: PAPER/TABLE, as its file.
        paper: title and year.
        item: number in the paper, such as `Table 1`.
        caption: one sentence.
        metrics: in each cell.
        columns: scenarios.
        rows: methods.
        scenario: keys and values of a scenario that all columns share; `seeds` among them.
        small: the same, for the scale `small`.
        printed: values by column and row, in the order of the metrics.
        broken: printed values that are known to be wrong.
        figures: to draw.
        paper_scale: how the scale `paper` differs from the paper.
        small_scale: what the scale `small` changes.
        notes: remarks below the table.
        of: name of the table whose results these are, if they are of another.
        grid: values of options that all rows are run with; the variant of a row that is shown has
            the least negative log-likelihood of the samples that its clients hold out.
    """

    name: str
    paper: str
    item: str
    caption: str
    metrics: tuple[Metric, ...]
    columns: tuple[Column, ...]
    rows: tuple[Row, ...]
    scenario: Mapping[str, Any]
    small: Mapping[str, Any]
    printed: Mapping[str, Mapping[str, tuple[Printed, ...]]] = field(default_factory=dict)
    broken: tuple[Broken, ...] = ()
    figures: tuple[Figure, ...] = ()
    paper_scale: str = ""
    small_scale: str = ""
    notes: tuple[Note, ...] = ()
    of: str = ""
    grid: Mapping[str, Sequence[Any]] = field(default_factory=dict)

    @property
    def results_name(self) -> str:
        """Name of the table in whose folder the results are."""
        return self.of or self.name

    def cell(self, column: str, row: str, metric: str) -> Printed:
        """The printed value of a cell."""
        texts = self.printed.get(column, {}).get(row)
        if texts is None:
            return Printed()
        return texts[[entry.name for entry in self.metrics].index(metric)]

    def reasons(self, column: str, row: str, metric: str) -> list[int]:
        """Indices of `broken` that hold for a cell."""
        return [i for i, broken in enumerate(self.broken) if broken.has(column, row, metric)]

    def rows_of(self, column: Column) -> tuple[Row, ...]:
        """The rows that a column has."""
        return tuple(row for row in self.rows if not column.rows or row.name in column.rows)

    def variants_of(self, row: Row) -> tuple[Row, ...]:
        """A row with each choice from the grid; the row itself without one."""
        if not self.grid or not row.method:
            return (row,)
        varied = [key for key, values in self.grid.items() if len(values) > 1]
        chosen = [
            dict(zip(self.grid, values, strict=True)) for values in product(*self.grid.values())
        ]
        return tuple(
            replace(
                row,
                name=", ".join([row.name, *(f"{key}={options[key]}" for key in varied)]),
                options=overlaid(row.options, nested(options)),
                of=row.name,
            )
            for options in chosen
        )


def overlaid(first: Mapping[str, Any], second: Mapping[str, Any]) -> dict[str, Any]:
    """The union of two tables of a scenario; inner ones are joined key by key.

    Other data, a partition of another kind and another model keep nothing of the first.

    Args:
        first: keys and values.
        second: those that take precedence.
    """
    joined = dict(first)
    for key, value in second.items():
        before, named = joined.get(key), _NAMED.get(key, "")
        if isinstance(before, Mapping) and isinstance(value, Mapping):
            is_same = value.get(named, before.get(named)) == before.get(named)
            joined[key] = overlaid(before, value) if is_same else value
        else:
            joined[key] = value
    return joined
