"""Columns of tables of results, which row of one is marked as the best, what its scores are."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from math import isfinite, nan
from typing import Any, Literal, Self

from experiments.runs.summary import LAST_ROUNDS, last_rounds
from experiments.scores.significance import LEVEL, compare_best, seeds_needed

BEST = "▲"
UNKNOWN = "–"


@dataclass(frozen=True, kw_only=True)
class Column:
    """A column of a table.

    Attributes:
        title: heading.
        metric: name in `summary.json`, or a field of the rounds that is summed over the run.
        format: format of mean and standard deviation.
        better: 1 if higher is better, -1 if lower is better, 0 if the best is not marked.
        factor: factor applied to the values.
        unit: unit of the values, empty for dimensionless ones.
    """

    title: str
    metric: str
    format: str
    better: Literal[-1, 0, 1] = 0
    factor: float = 1.0
    unit: str = ""

    def text(self, value: float | None) -> str:
        """A value as it is shown, or a dash where it is not known."""
        if value is None or not isfinite(value):
            return UNKNOWN
        return format(value * self.factor, self.format)

    def best(self, values: Mapping[str, Sequence[float | None]]) -> str | None:
        """The row that paired tests over seeds find better than every other one, if any.

        Args:
            values: by row, one value per seed, the same seeds in the same order for all.
        """
        if not self.better:
            return None
        filled = {row: [nan if v is None else v for v in found] for row, found in values.items()}
        found = compare_best(filled, self.better)
        return found.best if found is not None and found.is_significant else None


ACCURACY = Column(
    title="accuracy", unit="%", metric="accuracy", better=1, format=".1f", factor=100.0
)
MACRO_F1 = Column(
    title="macro-F1", unit="%", metric="macro_f1", better=1, format=".1f", factor=100.0
)
STEP_ACCURACY = Column(
    title="step accuracy",
    unit="%",
    metric="step_accuracy",
    better=1,
    format=".1f",
    factor=100.0,
)
"""Of streams."""
ARI = Column(title="ARI", metric="ari", better=1, format="z.2f")
NLL = Column(title="NLL", unit="nats", metric="nll", better=-1, format="z.3f")
ECE = Column(title="ECE", metric="ece", better=-1, format=".3f")


OF_SOME = (
    Column(title="RMSE", metric="rmse", better=-1, format=".3f"),
    Column(
        title="coverage error",
        unit="%",
        metric="coverage_error",
        better=-1,
        format=".1f",
        factor=100.0,
    ),
    Column(title="micro-F1", unit="%", metric="micro_f1", better=1, format=".1f", factor=100.0),
)
"""Columns of runs that predict numbers or labels."""


def known(columns: Sequence[Column], results: Mapping[str, Mapping[str, Any]]) -> list[Column]:
    """The columns of which all rows have the metric.

    Args:
        columns: some columns.
        results: metrics by row, as in `summary.json`.
    """
    return [c for c in columns if all(c.metric in row for row in results.values())]


def unequal_seeds(results: Mapping[str, Mapping[str, Any]]) -> dict[str, int]:
    """Number of seeds of each row where rows differ in it; empty where they do not.

    Args:
        results: metrics by row, as in `summary.json`.
    """
    counts = {
        name: max((len(found["values"]) for found in row.values()), default=0)
        for name, row in results.items()
    }
    return counts if len(set(counts.values())) > 1 else {}


def explain_marks(num_rows: int, num_seeds: int, *, paired: bool, marked: bool = True) -> str:
    """What the marks of a table mean, or why it has none; empty for a single row.

    Args:
        num_rows: methods compared.
        num_seeds: seeds of each.
        paired: whether a seed is the same data for all.
        marked: whether there is a mark.
    """
    if num_rows < 2:
        return ""
    if not paired:
        return (
            "No best method is marked: seeds or data of the rows differ, so they cannot be paired."
        )
    least = seeds_needed(num_rows)
    if num_seeds < least:
        return (
            f"No best method is marked: to show that one of {num_rows} is better than every other "
            f"needs at least {least} seeds (paired Wilcoxon tests, Holm, level {LEVEL}), and there "
            f"{'are' if num_seeds > 1 else 'is'} {num_seeds}."
        )
    if not marked:
        return (
            "No best method is marked: in no column is one better than every other by paired "
            f"Wilcoxon tests over {num_seeds} seeds (Holm, level {LEVEL})."
        )
    return (
        f"{BEST} better than every other method (accuracy, F1, ARI, AMI, homogeneity, "
        "completeness: higher; NLL, ECE, RMSE, coverage error: lower): two-sided Wilcoxon "
        f"signed-rank tests over {num_seeds} seeds, adjusted after Holm, p ≤ {LEVEL}. A column "
        f"without {BEST} has no such method."
    )


COSTS = "costs are those of the whole run."
AVERAGED: Mapping[bool, Mapping[int, str]] = {
    False: {
        1: "those of the only round",
        2: "means over both rounds",
        LAST_ROUNDS: "means over the last three rounds",
    },
    True: {
        1: "those of the only round of the last time step",
        2: "means over both rounds of the last time step",
        LAST_ROUNDS: "means over the last three rounds of the last time step",
    },
}
"""What scores are, of a stream or not, by the number of rounds they are taken over."""


@dataclass(frozen=True)
class Length:
    """Length of a run, that of its longest method and seed.

    Attributes:
        rounds: number of rounds.
        averaged: number of rounds whose scores are averaged.
        stream: whether the rounds have time steps.
    """

    rounds: int
    averaged: int = LAST_ROUNDS
    stream: bool = False

    @classmethod
    def of(cls, runs: Iterable[Sequence[Mapping[str, Any]]]) -> Self:
        """The length of a run.

        Args:
            runs: rounds of each method and seed.
        """
        longest = max(runs, key=len, default=())
        if not longest:
            return cls(0)
        return cls(len(longest), len(last_rounds(longest)), "time_step" in longest[-1])


def averaged(lengths: Iterable[Length]) -> str:
    """What scores of runs of some lengths are, and costs.

    Args:
        lengths: of the runs.
    """
    known = list(lengths)
    taken = {length.averaged for length in known} or {LAST_ROUNDS}
    streams = {length.stream for length in known}
    scores = AVERAGED[streams == {True}][max(taken)]
    if len(streams) > 1:
        scores += ", of streams those of the last time step"
    fewer = ", or all there are" if len(taken) > 1 else ""
    return f"Scores are {scores}{fewer}; {COSTS}"


def unequal(lengths: Mapping[str, Length]) -> str:
    """A sentence on runs of unequal length, empty where they are equal.

    Args:
        lengths: of the runs, by letter.
    """
    if len({length.rounds for length in lengths.values()}) < 2:
        return ""
    told = ", ".join(f"{letter} {length.rounds}" for letter, length in lengths.items())
    return f"The runs differ in their number of rounds ({told}), and so in scores and costs."
