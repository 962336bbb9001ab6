"""A comparison as Markdown, LaTeX and JSON."""

from __future__ import annotations

import json
from collections import Counter
from collections.abc import Iterator, Sequence
from pathlib import Path

from bcfl.runtime import counted
from experiments.config.variants import flattened
from experiments.published.comparison import Cell, Comparison, Line, measured_table
from experiments.published.data import Described, is_alike, remark
from experiments.published.latex import MARKS, latex, sides_of
from experiments.published.table import SMALL
from experiments.runs.files import write_aside

BOLD = (
    "Bold: better than every other method of its column, by paired Wilcoxon tests over seeds "
    "(Holm, level 0.05)"
)


def write(comparison: Comparison, folder: Path) -> list[Path]:
    """Write SCALE.md, SCALE.tex and SCALE.json into the folder of a table.

    Args:
        comparison: table and results.
        folder: of the table.

    Returns:
        The files.
    """
    content = {
        "md": markdown(comparison),
        "tex": latex(comparison, list(remarks(comparison))),
        "json": json.dumps(measured_table(comparison), indent=1, ensure_ascii=False) + "\n",
    }
    paths = [folder / f"{comparison.scale}.{suffix}" for suffix in content]
    for path, text in zip(paths, content.values(), strict=True):
        write_aside(path, text)
    return paths


def markdown(comparison: Comparison) -> str:
    """One Markdown table: a line for each method of each column, theirs beside ours."""
    table = comparison.table
    lines = [
        f"# {table.name}: {table.item}",
        "",
        f"{table.paper}. {table.caption}",
        "",
        f"`bcfl reproduce {table.name} --scale {comparison.scale}`",
        "",
        *in_columns(comparison.lines),
        "",
    ]
    return "\n".join([*lines, *(f"- {note}" for note in remarks(comparison)), ""])


def in_columns(lines: Sequence[Line]) -> Iterator[str]:
    """The lines of a Markdown table: theirs beside ours, or ours alone where nothing is printed.

    Args:
        lines: methods of columns of one table, at least one.
    """
    sides = sides_of(lines)
    heads = [f"{cell.metric.name} {whose}" for cell in lines[0].cells for whose in sides]
    yield f"| column | method | {' | '.join(heads)} | seeds |"
    yield f"|---|---|{'---:|' * len(heads)}---:|"
    for line in lines:
        cells = [text for cell in line.cells for text in _pair(cell)[-len(sides) :]]
        yield f"| {line.column.title} | {line.row.name} | {' | '.join(cells)} | {len(line.seeds)} |"


def _pair(cell: Cell) -> tuple[str, str]:
    marks = "".join(f"<sup>{MARKS[i]}</sup>" for i in cell.broken)
    return f"{cell.printed.text}{marks}", f"**{cell.ours}**" if cell.best else cell.ours


def remarks(comparison: Comparison) -> Iterator[str]:
    """Remarks below a table: scale, metrics, known faults, missing data, failures."""
    table = comparison.table
    if table.paper_scale:
        yield f"Scale `paper`: {table.paper_scale}"
    if comparison.scale == SMALL:
        yield f"Scale `small`: {table.small_scale}"
    yield from (f"{metric.name}: {metric.note}" for metric in table.metrics if metric.note)
    yield from _on_rows(comparison)
    yield from (note.text for note in comparison.notes())
    yield from _on_grids(comparison)
    yield from _on_faults(comparison)
    if any(cell.best for line in comparison.lines for cell in line.cells):
        yield BOLD
    if comparison.left_out:
        yield (
            f"Left out: {counted(comparison.left_out, 'result')} with seeds that not all measured "
            "methods of a column have; means of a column are over the same draws."
        )
    yield from _on_data(comparison)
    yield from _on_missing(comparison)
    for line in comparison.lines:
        for error in line.errors:
            yield f"Failed: {line.row.name} of column `{line.column.name}`, {error}"


def _on_missing(comparison: Comparison) -> Iterator[str]:
    """Data that are not here, each once, with the columns that have no results for want of them."""
    columns: dict[str, list[str]] = {}
    for column, missing in comparison.missing.items():
        columns.setdefault(", ".join(missing), []).append(f"`{column}`")
    for missing, names in columns.items():
        plural = "s" * (len(names) > 1)
        yield f"Data not here: {missing} (column{plural} {', '.join(names)})"


def _on_data(comparison: Comparison) -> Iterator[str]:
    """The data of all results; where they differ under one name, also the columns of each."""
    found = comparison.data
    names = Counter(data.get("dataset") for data in found)
    if found and max(names.values()) == 1:
        yield f"Data: {', '.join(remark(data) for data in found)}"
    elif found:
        parts = [f"{remark(data, True)} in {_columns_of(comparison, data)}" for data in found]
        yield f"Not all values are of the same data, and cannot be compared: {'; '.join(parts)}"


def _columns_of(comparison: Comparison, data: Described) -> str:
    """The columns with results of some data, with their rows where others are of other data."""
    parts = []
    for block in comparison.measured_columns():
        alike = [line for line in block if any(is_alike(data, each) for each in line.data)]
        done = [line for line in block if line.seeds]
        names = "" if len(alike) == len(done) else f" ({', '.join(line.name for line in alike)})"
        parts += [f"column `{block[0].column.name}`{names}"] if alike else []
    return ", ".join(parts)


def _on_rows(comparison: Comparison) -> Iterator[str]:
    rows, shown = comparison.table.rows, {line.name for line in comparison.lines}
    for row in rows:
        if row.note and (row.name in shown or not comparison.is_part):
            yield f"{row.name}: {row.note}"


def _on_grids(comparison: Comparison) -> Iterator[str]:
    """The values of each grid, and the methods whose choice is its least or greatest value."""
    for key, values in comparison.table.grid.items():
        if len(values) == 1:
            continue
        yield f"Grid of `{key}`: {', '.join(map(str, values))}"
        if not all(isinstance(value, int | float) for value in values):
            continue
        for other, value in (("smaller", min(values)), ("larger", max(values))):
            if places := list(_choosing(comparison, key, value)):
                yield f"Chose {value}, so that a {other} value may be better: {'; '.join(places)}"


def _choosing(comparison: Comparison, key: str, value: float) -> Iterator[str]:
    """The methods that chose a value of an option, by column."""
    for block in comparison.measured_columns():
        done = [line for line in block if line.seeds]
        chose = [line.name for line in done if flattened(line.row.options)[key] == value]
        if chose:
            names = "all methods" if len(chose) == len(done) > 1 else ", ".join(chose)
            yield f"{names} ({block[0].column.heading})"


def _on_faults(comparison: Comparison) -> Iterator[str]:
    marked = {index for line in comparison.lines for cell in line.cells for index in cell.broken}
    for index, broken in enumerate(comparison.table.broken):
        if index in marked or not comparison.is_part:
            yield f"({MARKS[index]}) known to be wrong in print: {broken.reason}"
