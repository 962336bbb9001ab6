"""Tables of results: aligned text for a terminal, LaTeX for a paper."""

from __future__ import annotations

import string
import textwrap
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

from experiments.reports.columns import (
    ACCURACY,
    ARI,
    BEST,
    ECE,
    MACRO_F1,
    NLL,
    OF_SOME,
    STEP_ACCURACY,
    UNKNOWN,
    Column,
    Length,
    averaged,
    explain_marks,
    known,
    unequal,
    unequal_seeds,
)
from experiments.runs.index import Contents, read_index
from experiments.runs.plan import read_description
from experiments.runs.run_folder import shares_group, without_agreement
from experiments.runs.summary import read_summary

Metrics = Mapping[str, Mapping[str, Any]]


WIDTH = 100
"""Characters of a line of text below a table."""
SPREAD = "± is the sample standard deviation over seeds."


class NoResultsError(ValueError):
    """A run without a summary, because it is not finished."""


COLUMNS = (
    ACCURACY,
    MACRO_F1,
    ARI,
    NLL,
    ECE,
    Column(metric="seconds", title="seconds", format=".1f"),
    Column(metric="communication", title="down ×", format=".1f"),
    Column(metric="storage", title="peak ×", format=".1f"),
    Column(metric="computation", title="nets ×", format=".1f"),
)
"""The last three are payload sent to a client, mean and largest of the rounds, and networks that it
scored or trained, in units of FedAvg; runs of earlier versions lack them."""
MISSING: Mapping[str, Any] = {"mean": None, "std": None, "values": []}


def read_results(folder: Path) -> tuple[str, dict[str, Metrics]]:
    """Name of the scenario and the metrics of each method of a finished run.

    Agreement with true groups is unknown where all clients share one.

    Raises:
        FolderError: there is no run in the folder, or its summary cannot be read.
        MetricsError: the rounds of all methods and seeds are damaged.
        NoResultsError: the run is not finished.
    """
    summary = read_summary(folder)
    if summary:
        vain = shares_group(folder, read_index(folder).pairs)
        methods: dict[str, Metrics] = dict(summary["methods"])
        return summary["scenario"], without_agreement(methods) if vain else methods
    raise NoResultsError(f"{folder} is not finished; continue it with: bcfl resume {folder}")


def gather(folders: Sequence[Path]) -> dict[str, Metrics]:
    """Results of several runs by method, named as in `lettered` if there are several."""
    if len(folders) == 1:
        return read_results(folders[0])[1]
    return {
        f"{letter}/{method}": metrics
        for letter, folder in lettered(folders).items()
        for method, metrics in read_results(folder)[1].items()
    }


def lettered(folders: Sequence[Path]) -> dict[str, Path]:
    """Folders by letter, A to Z and then A1 to Z1, by which tables and figures name their rows.

    Args:
        folders: of runs.
    """
    letters = string.ascii_uppercase
    return {
        f"{letters[index % len(letters)]}{index // len(letters) or ''}": folder
        for index, folder in enumerate(folders)
    }


def lengths(folders: Sequence[Path]) -> dict[str, Length]:
    """Lengths of runs by letter.

    Args:
        folders: of runs.
    """
    return {
        letter: Length.of(Contents.of(folder).rounds.values())
        for letter, folder in lettered(folders).items()
    }


def unpaired(folders: Sequence[Path]) -> list[str]:
    """Of data, partition and seeds, those in which runs differ.

    Where there are none, a seed is the same data in all runs, and their methods are paired by it.

    Args:
        folders: of runs.
    """
    told = [read_description(folder).get("scenario", {}) for folder in folders]
    parts = [part for part in ("data", "partition") if _differ([t.get(part) for t in told])]
    seeds = [done for folder in folders for done in _seeds_by_method(folder).values()]
    return [*parts, *["seeds"] * _differ(seeds)]


def _differ(values: Sequence[Any]) -> bool:
    return any(value != values[0] for value in values)


def _seeds_by_method(folder: Path) -> dict[str, set[int]]:
    """Seeds of each method whose rounds are there."""
    seeds: dict[str, set[int]] = {}
    for pair in Contents.of(folder).rounds:
        seeds.setdefault(pair.method, set()).add(pair.seed)
    return seeds


def columns_of(results: Mapping[str, Metrics]) -> list[Column]:
    """The columns of a table: those of which a row has a value, and those of some runs alone."""
    scores = COLUMNS.index(ECE) + 1
    first = [COLUMNS[0], *known([STEP_ACCURACY], results), *COLUMNS[1:scores]]
    columns = [*first, *known(OF_SOME, results), *COLUMNS[scores:]]
    return [column for column in columns if _has_value(column, results)]


def _has_value(column: Column, results: Mapping[str, Metrics]) -> bool:
    return any(row.get(column.metric, MISSING)["mean"] is not None for row in results.values())


def text(column: Column, statistic: Mapping[str, Any], plus_minus: str = "±") -> str:
    """Format the mean, with the standard deviation where there are several seeds.

    Args:
        column: how the metric is shown.
        statistic: entry of `summary.json` with "mean", "std" and "values".
        plus_minus: sign between the two.
    """
    mean = column.text(statistic["mean"])
    if statistic["mean"] is None or len(statistic["values"]) < 2:
        return mean
    return f"{mean} {plus_minus}{column.text(statistic['std'])}"


def best_rows(results: Mapping[str, Metrics], *, paired: bool) -> dict[str, str | None]:
    """By metric, the row that is better than every other one, see `Column.best`.

    Args:
        results: metrics by name of the row.
        paired: whether a seed is the same data for all rows.
    """
    return {
        column.metric: column.best(
            {name: row.get(column.metric, MISSING)["values"] for name, row in results.items()}
        )
        if paired
        else None
        for column in columns_of(results)
    }


def aligned(
    results: Mapping[str, Metrics],
    *,
    paired: bool = True,
    rounds: Mapping[str, Length] | None = None,
    width: int | None = None,
) -> list[str]:
    """Lines of a text table: one row per method, a significant best of each column marked.

    Args:
        results: metrics by name of the row, as in `summary.json`.
        paired: whether a seed is the same data for all rows.
        rounds: length of the runs by letter, see `lengths`; None where all are longer than three.
        width: characters of a line; columns beyond it go on below. None has no limit.

    Returns:
        The header, a line for each row, and below what is averaged and what the marks mean.
    """
    columns = [["method", *named_rows(results)]]
    best = best_rows(results, paired=paired)
    for column in columns_of(results):
        mark = {name: f" {BEST}" if name == best[column.metric] else "  " for name in results}
        cells = [
            text(column, row.get(column.metric, MISSING)) + mark[name]
            for name, row in results.items()
        ]
        columns.append([f"{column.title}  ", *cells])
    columns.append([" trainings requested / run", *map(_trainings, results.values())])
    lines = _side_by_side(columns[0], columns[1:], width)
    return [*lines, *_note(results, paired, rounds, marked=any(best.values()))]


def named_rows(results: Mapping[str, Metrics]) -> list[str]:
    """Names of rows, with their numbers of seeds where these differ.

    Args:
        results: metrics by name of the row.
    """
    counts = unequal_seeds(results)
    told = {name: f" ({count} seed{'s' * (count != 1)})" for name, count in counts.items()}
    return [name + told.get(name, "") for name in results]


def _side_by_side(
    names: Sequence[str], columns: Sequence[Sequence[str]], width: int | None
) -> list[str]:
    """Lines of names and as many columns as fit, then of names and the next columns."""
    first = max(map(len, names))
    widths = [max(map(len, column)) for column in columns]
    fitting, used = 0, first
    while fitting < len(columns) and (
        width is None or not fitting or used + 2 + widths[fitting] <= width
    ):
        used += 2 + widths[fitting]
        fitting += 1
    lines = []
    for name, *cells in zip(names, *columns[:fitting], strict=True):
        rest = [f"{cell:>{wide}}" for cell, wide in zip(cells, widths, strict=False)]
        lines.append("  ".join([f"{name:{first}}", *rest]).rstrip())
    if fitting < len(columns):
        lines += ["", *_side_by_side(names, columns[fitting:], width)]
    return lines


def _note(
    results: Mapping[str, Metrics],
    paired: bool,
    rounds: Mapping[str, Length] | None,
    *,
    marked: bool,
) -> list[str]:
    seeds = max(len(row["seconds"]["values"]) for row in results.values())
    note = explain_marks(len(results), seeds, paired=paired, marked=marked)
    spread = SPREAD if seeds > 1 else ""
    lengths = rounds or {}
    lines = [averaged(lengths.values()), unequal(lengths), note, spread]
    return [part for line in lines for part in textwrap.wrap(line, WIDTH)]


def latex(
    results: Mapping[str, Metrics],
    *,
    paired: bool = True,
    rounds: Mapping[str, Length] | None = None,
) -> list[str]:
    r"""Lines of a LaTeX table (booktabs): mean $\pm$ deviation, a significant best in bold.

    Args:
        results: metrics by name of the row, as in `summary.json`.
        paired: whether a seed is the same data for all rows.
        rounds: as in `aligned`.
    """
    columns = columns_of(results)
    titles = (column.title.replace("×", r"$\times$") for column in columns)
    header = " & ".join(["Method", *titles])
    lines = [
        rf"\begin{{tabular}}{{l{'r' * len(columns)}}}",
        r"\toprule",
        rf"{header} \\",
        r"\midrule",
    ]
    best = best_rows(results, paired=paired)
    for (name, row), told in zip(results.items(), named_rows(results), strict=True):
        cells = [told.replace("_", r"\_")]
        for column in columns:
            shown = text(column, row.get(column.metric, MISSING), r"$\pm$ ").replace(UNKNOWN, "--")
            cells.append(rf"\textbf{{{shown}}}" if name == best[column.metric] else shown)
        lines.append(rf"{' & '.join(cells)} \\")
    note = [f"% {line}" for line in _note(results, paired, rounds, marked=any(best.values()))]
    return [*lines, r"\bottomrule", *note, r"\end{tabular}"]


def _trainings(row: Metrics) -> str:
    means = (row[name]["mean"] for name in ("trainings_requested", "trainings_run"))
    return " / ".join(UNKNOWN if mean is None else f"{mean:.0f}" for mean in means)
