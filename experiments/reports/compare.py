"""Tables of results: aligned text for a terminal, LaTeX for a paper."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from experiments.runs.files import RunFiles
from experiments.runs.plan import read_description
from experiments.runs.summary import read_summary

Metrics = Mapping[str, Mapping[str, Any]]
BEST = "▲"
UNKNOWN = "–"


class NoResultsError(ValueError):
    """A run without a summary, because it is not finished."""


@dataclass(frozen=True, kw_only=True)
class Column:
    """How a metric is displayed.

    Attributes:
        metric: its key in `summary.json`.
        title: heading.
        digits: decimals shown.
        scale: factor applied to the value.
        best: `max` or `min`, picks the best of several values; None for an unranked metric.
    """

    metric: str
    title: str
    digits: int
    scale: float = 1.0
    best: Callable[[Sequence[float]], float] | None = None

    def text(self, statistic: Mapping[str, Any], plus_minus: str = "±") -> str:
        """Format the mean, with the standard deviation where there are several seeds.

        Args:
            statistic: entry of `summary.json` with "mean", "std" and "values".
            plus_minus: sign between the two.
        """
        if statistic["mean"] is None:
            return UNKNOWN
        mean = f"{self.scale * statistic['mean']:.{self.digits}f}"
        if len(statistic["values"]) < 2:
            return mean
        return f"{mean} {plus_minus}{self.scale * statistic['std']:.{self.digits}f}"

    def marked(self, results: Mapping[str, Metrics]) -> set[str]:
        """Names of the rows with the best displayed mean, ties included; empty for a single row."""
        means = {name: row.get(self.metric, MISSING)["mean"] for name, row in results.items()}
        known = {
            name: round(self.scale * m, self.digits) for name, m in means.items() if m is not None
        }
        if self.best is None or len(results) < 2 or not known:
            return set()
        best = self.best(list(known.values()))
        return {name for name, value in known.items() if value == best}


COLUMNS = (
    Column(metric="accuracy", title="accuracy", digits=1, scale=100.0, best=max),
    Column(metric="macro_f1", title="macro-F1", digits=1, scale=100.0, best=max),
    Column(metric="ari", title="ARI", digits=2, best=max),
    Column(metric="nll", title="NLL", digits=3, best=min),
    Column(metric="ece", title="ECE", digits=3, best=min),
    Column(metric="seconds", title="seconds", digits=1),
    Column(metric="communication", title="comm. ×", digits=1),
    Column(metric="storage", title="stor. ×", digits=1),
    Column(metric="computation", title="comp. ×", digits=1),
)
"""Costs are relative to FedAvg; runs of earlier versions lack them."""
MISSING: Mapping[str, Any] = {"mean": None, "std": None, "values": []}


def read_results(folder: Path) -> tuple[str, dict[str, Metrics]]:
    """Name of the scenario and the metrics of each method of a finished run.

    Raises:
        FolderError: there is no run in the folder.
        NoResultsError: the run is not finished, or its summary cannot be read.
    """
    read_description(folder)
    try:
        summary = read_summary(folder)
        if summary:
            return summary["scenario"], summary["methods"]
    except (ValueError, KeyError, TypeError) as error:
        path = RunFiles(folder).summary
        raise NoResultsError(f"{path} cannot be read: {error!r}") from error
    raise NoResultsError(f"{folder} is not finished; continue it with: bcfl resume {folder}")


def gather(folders: Sequence[Path]) -> dict[str, Metrics]:
    """Results of several runs by method, prefixed with the folder's name if there are several."""
    results: dict[str, Metrics] = {}
    for folder in folders:
        _, methods = read_results(folder)
        prefix = f"{folder.resolve().name}  " if len(folders) > 1 else ""
        results |= {f"{prefix}{method}": metrics for method, metrics in methods.items()}
    return results


def aligned(results: Mapping[str, Metrics]) -> list[str]:
    """Lines of a text table: one row per method, the best of each column marked.

    Args:
        results: metrics by name of the row, as in `summary.json`.
    """
    columns = [["method", *results]]
    for column in COLUMNS:
        best = column.marked(results)
        mark = {name: f" {BEST}" if name in best else "  " for name in results}
        cells = [
            column.text(row.get(column.metric, MISSING)) + mark[name]
            for name, row in results.items()
        ]
        columns.append([f"{column.title}  ", *cells])
    columns.append([" trainings requested / run", *map(_trainings, results.values())])
    widths = [max(map(len, column)) for column in columns]
    lines = []
    for name, *cells in zip(*columns, strict=True):
        first = f"{name:{widths[0]}}"
        rest = [f"{cell:>{width}}" for cell, width in zip(cells, widths[1:], strict=True)]
        lines.append("  ".join([first, *rest]).rstrip())
    return lines


def latex(results: Mapping[str, Metrics]) -> list[str]:
    r"""Lines of a LaTeX table (booktabs): mean $\pm$ standard deviation, the best in bold."""
    titles = (column.title.replace("×", r"$\times$") for column in COLUMNS)
    header = " & ".join(["Method", *titles])
    lines = [
        rf"\begin{{tabular}}{{l{'r' * len(COLUMNS)}}}",
        r"\toprule",
        rf"{header} \\",
        r"\midrule",
    ]
    best = {column.metric: column.marked(results) for column in COLUMNS}
    for name, row in results.items():
        cells = [name.replace("_", r"\_")]
        for column in COLUMNS:
            text = column.text(row.get(column.metric, MISSING), r"$\pm$ ")
            text = text.replace(UNKNOWN, "--")
            cells.append(rf"\textbf{{{text}}}" if name in best[column.metric] else text)
        lines.append(rf"{' & '.join(cells)} \\")
    return [*lines, r"\bottomrule", r"\end{tabular}"]


def _trainings(row: Metrics) -> str:
    requested, run = (row[name]["mean"] for name in ("trainings_requested", "trainings_run"))
    return f"{requested:.0f} / {run:.0f}"
