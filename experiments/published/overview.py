"""Pages of all results: an overview, and one page for each paper."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from pathlib import Path
from statistics import fmean, median

import numpy as np
from scipy.stats import spearmanr

from experiments.published.comparison import Comparison, Line, part_of
from experiments.published.formats import in_columns, remarks
from experiments.published.reading import left_out
from experiments.published.table import UNKNOWN
from experiments.runs.files import write_aside

FEWEST = 4
"""Methods of a column whose order is compared."""
ALIKE = 0.7
"""Correlation of published and measured values from which their order is called alike."""
TITLE = "# The papers' tables"
INTRODUCTION = """Published values and those measured with this code. `bcfl reproduce` runs the
units of a table, each of one column, method and seed, and `bcfl reproduce --all --write` writes
these pages. *Columns* counts the columns for which more than one method was measured, or the only
one that there is, and *units* the units that were run. *Difference* is the measured value minus the
published one, as a median over all cells of the first metric that have both, without known
misprints. *Order* is Spearman's correlation of published and measured values over the methods of a
column, for columns of at least four methods, as a mean over columns. The scale `small` shortens
what a paper ran: values then differ, and only the order of methods can be compared. Each page says
what was changed. The best measured value is in bold if paired Wilcoxon tests over seeds tell it
from every other method of its column (Holm, level 0.05), which takes nine seeds for ten methods.
"""
SUMMARY = "summary.md"
"""Of the folder of a paper's results: what they show, in a few sentences."""
UNMARKED = "No value is in bold: so few seeds cannot tell the best method from every other one."
"""Of pages without a significant best."""


def write_overview(comparisons: Sequence[Comparison], folder: Path) -> list[Path]:
    """Write README.md and PAPER.md into the folder of all results.

    Args:
        comparisons: of all tables, by paper.
        folder: where they go.

    Returns:
        The files.
    """
    pages = {"README.md": overview(comparisons)}
    for paper, group in _by_paper(comparisons).items():
        if any(comparison.has_results for comparison in group):
            pages[f"{paper}.md"] = paper_page(group, folder)
    for name, text in pages.items():
        write_aside(folder / name, text)
    return [folder / name for name in pages]


def overview(comparisons: Sequence[Comparison]) -> str:
    """Markdown with a line for each table, and how theirs and ours agree.

    Args:
        comparisons: of all tables, by paper.
    """
    lines = [TITLE, "", _agreement(comparisons), "", INTRODUCTION]
    absent = left_out()
    for paper, group in _by_paper(comparisons).items():
        lines += [f"## {group[0].table.paper}", ""]
        if any(comparison.has_results for comparison in group):
            lines += [f"[All tables with results]({paper}.md)", ""]
        lines += [
            "| table | scale | columns | units | metric | difference | order | what it shows |",
            "|---|---|---:|---:|---|---:|---:|---|",
            *map(_summary, group),
            "",
        ]
        reasons = [entry for entry in absent if entry.names[0].startswith(f"{paper}/")]
        if reasons:
            lines += ["Not here:", "", *(f"- {each.items}: {each.reason}" for each in reasons), ""]
    return "\n".join(lines)


def paper_page(comparisons: Sequence[Comparison], folder: Path) -> str:
    """Markdown with the columns of a paper's tables that have results.

    Args:
        comparisons: of the tables of one paper.
        folder: of all results, in which pictures and the summary of the paper's are looked for.
    """
    lines = [f"# {comparisons[0].table.paper}", "", "[Overview](README.md)", ""]
    summary = folder / comparisons[0].table.name.partition("/")[0] / SUMMARY
    if summary.is_file():
        lines += [summary.read_text("utf-8").strip(), ""]
    if not any(cell.best for each in comparisons for line in each.lines for cell in line.cells):
        lines += [UNMARKED, ""]
    for comparison in comparisons:
        if comparison.has_results:
            lines += [*_section(comparison, folder), ""]
    return "\n".join(lines)


def _agreement(comparisons: Sequence[Comparison]) -> str:
    """How many tables have results, and how often the order of methods is that in print."""
    measured = {each.table.name for each in comparisons if each.has_results}
    all_names = {each.table.name for each in comparisons}
    text = f"{len(measured)} of {len(all_names)} tables and figures have results."
    blocks = [block for each in comparisons for block in each.measured_columns()]
    distinct: dict[tuple[float, ...], Sequence[Line]] = {}
    for block in blocks:
        distinct.setdefault(tuple(ours for line in block for _, ours in _both(line)), block)
    orders = [order for block in distinct.values() if (order := _order(block)) is not None]
    if not orders:
        return text
    alike = sum(order >= ALIKE for order in orders)
    return (
        f"{text} The order of methods can be compared in {len(orders)} of their columns, where "
        "columns of the same runs count once: its correlation with the published order is "
        f"{median(orders):.2f} (median), from {min(orders):.2f} to {max(orders):.2f}, and at least "
        f"{ALIKE} in {alike}."
    )


def _section(comparison: Comparison, folder: Path) -> Iterator[str]:
    table, scale = comparison.table, comparison.scale
    files = ", ".join(f"[{kind}]({table.name}/{scale}.{kind})" for kind in ("md", "tex", "json"))
    yield f"## {table.item}, scale `{scale}`"
    command = f"bcfl reproduce {table.name} --scale {scale}"
    yield f"\n{table.caption}. `{command}`; the whole table: {files}\n"
    measured = [block[0].column.name for block in comparison.measured_columns()]
    shown = part_of(comparison, measured)
    yield from in_columns(shown.lines)
    yield ""
    for picture in sorted((folder / table.name).glob(f"{scale}-figure-*.svg")):
        yield f"![{table.caption}]({table.name}/{picture.name})\n"
    yield from (f"- {note}" for note in remarks(shown))


def _summary(comparison: Comparison) -> str:
    table = comparison.table
    lines = comparison.lines
    columns = f"{sum(map(_is_measured, comparison.measured_columns()))}/{len(table.columns)}"
    units = sum(len(line.seeds) for line in lines)
    differences = [ours - theirs for line in lines for theirs, ours in _both(line)]
    order = _mean_order(comparison)
    cells = (
        f"[{table.item}]({table.name}/{comparison.scale}.md)" if units else table.item,
        comparison.scale,
        columns,
        str(units),
        table.metrics[0].name,
        signed(median(differences), table.metrics[0].digits) if differences else UNKNOWN,
        UNKNOWN if order is None else f"{order:.2f}",
        table.caption,
    )
    return f"| {' | '.join(cells)} |"


def _is_measured(block: Sequence[Line]) -> bool:
    """Whether more than one method of a column has a number of ours, or the only one it has."""
    return sum(bool(line.seeds) for line in block) >= min(2, len(block))


def _both(line: Line) -> Iterator[tuple[float, float]]:
    """Theirs and ours of the first metric, if both are known."""
    cell = line.cells[0]
    if cell.printed.mean is not None and cell.mean is not None and not cell.broken:
        yield cell.printed.mean, cell.mean


def signed(value: float, digits: int) -> str:
    """A difference with its sign, unless it rounds to 0.

    Args:
        value: the difference.
        digits: after the point.
    """
    rounded = round(value, digits)
    return f"{rounded:+.{digits}f}" if rounded else f"{0:.{digits}f}"


def _mean_order(comparison: Comparison) -> float | None:
    """The mean correlation of its columns; None if none can be compared."""
    orders = [
        order for block in comparison.measured_columns() if (order := _order(block)) is not None
    ]
    return fmean(orders) if orders else None


def _order(block: Sequence[Line]) -> float | None:
    """Spearman's correlation of theirs and ours; None for few methods, or if all are alike."""
    pairs = np.array([pair for line in block for pair in _both(line)], float)
    if len(pairs) < FEWEST or (np.ptp(pairs, axis=0) == 0).any():
        return None
    return float(spearmanr(pairs).statistic)


def _by_paper(comparisons: Sequence[Comparison]) -> Mapping[str, list[Comparison]]:
    papers: dict[str, list[Comparison]] = {}
    for comparison in comparisons:
        papers.setdefault(comparison.table.name.partition("/")[0], []).append(comparison)
    return papers
