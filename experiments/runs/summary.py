"""Summary of a run: mean, spread and values over seeds; and all rounds as one table."""

from __future__ import annotations

import csv
import json
import shlex
from collections.abc import Mapping, Sequence
from dataclasses import asdict
from io import StringIO
from pathlib import Path
from statistics import fmean, stdev
from typing import TYPE_CHECKING, Any

from bcfl.analysis import rows
from experiments.config.variants import Pair
from experiments.runs.files import RunFiles, write_aside
from experiments.runs.grids import choices, read_held_out
from experiments.runs.index import Contents, read_contents, read_index
from experiments.runs.plan import FolderError
from experiments.scores import costs

if TYPE_CHECKING:
    from experiments.runs.plan import Plan

LAST_ROUNDS = 3
AVERAGED = ("accuracy", "macro_f1", "weighted_f1", "ari", "ami", "nll", "ece")
OVER_ROUNDS = ("ari", "ami", "homogeneity", "completeness", "macro_f1", "hold_out_f1")
OF_SOME = ("rmse", "coverage_error", "micro_f1")
"""Scores of numbers and of labels alone, averaged like those of `AVERAGED`."""
SUMMED = ("trainings_requested", "trainings_run")
SCALARS = (
    "accuracy",
    "macro_f1",
    "weighted_f1",
    "nll",
    "ece",
    "brier",
    "hold_out_f1",
    "ari",
    "ami",
    "homogeneity",
    "completeness",
    "clusters_used",
    "effective_hypotheses",
    "log_captured_mass",
    "participants",
    *rows.COUNTS,
    *costs.PER_ROUND,
    "num_floored",
    "outside_hull",
    "outweighed",
)

Statistic = dict[str, Any]


def of_seed(rounds: Sequence[rows.Row]) -> dict[str, float | None]:
    """The metrics of one method with one seed.

    Scores are means of the last three rounds, of a stream of those that belong to its last time
    step, null if one of them is; a stream has `step_accuracy` too; those named `mean_` are means of
    all rounds, so that clusters found early count; the learning gap lies between the F1 on the
    clients' own test samples and that on the hold-out samples, where there are any (OCFL, equation
    5); seconds, those of the four phases, and trainings are sums over all rounds; costs are in
    units of FedAvg, and traffic is in MB of the first, the mean and the largest round, see
    `experiments.scores.costs`; with differential privacy releases and epsilon are those of the
    whole run.

    Args:
        rounds: at least one round.
    """
    last = last_rounds(rounds)
    averaged = {name: _mean([row.get(name) for row in last]) for name in AVERAGED}
    summed = {name: _sum([row.get(name) for row in rounds]) for name in SUMMED}
    always = {f"mean_{name}": _mean([row.get(name) for row in rounds]) for name in OVER_ROUNDS}
    return {
        **averaged,
        **{name: _mean([row.get(name) for row in last]) for name in OF_SOME if name in last[-1]},
        **({"step_accuracy": step_accuracy(rounds)} if "time_step" in last[-1] else {}),
        **always,
        "learning_gap": _distance(always["mean_macro_f1"], always["mean_hold_out_f1"]),
        "seconds": _sum([row["seconds"][phase] for row in rounds for phase in rows.PHASES]),
        **summed,
        **costs.over_rounds(rounds),
        **costs.traffic(rounds),
        **{name: last[-1][name] for name in ("releases", "epsilon") if name in last[-1]},
    }


def last_rounds(rounds: Sequence[Mapping[str, Any]]) -> Sequence[Mapping[str, Any]]:
    """The rounds whose scores are averaged: the last three, as far as they share a time step.

    Args:
        rounds: of one method with one seed.
    """
    last = rounds[-LAST_ROUNDS:]
    return [row for row in last if row.get("time_step") == last[-1].get("time_step")]


def step_accuracy(rounds: Sequence[rows.Row]) -> float | None:
    """Accuracy after the last round of each time step, mean over the steps; None if one is unknown.

    Args:
        rounds: of one method with one seed; without time steps, only the last counts.
    """
    return _mean([row.get("accuracy") for row in {r.get("time_step"): r for r in rounds}.values()])


def over_seeds(values: Sequence[float | None]) -> Statistic:
    """Mean, sample standard deviation (0 of a single value) and the values themselves."""
    known = [value for value in values if value is not None]
    spread = stdev(known) if len(known) > 1 else 0.0
    return {
        "mean": fmean(known) if known else None,
        "std": spread if known else None,
        "values": list(values),
    }


def summarise(
    scenario: str,
    rounds: Mapping[Pair, Sequence[rows.Row]],
    held_out: Mapping[Pair, Mapping[str, float | None]] | None = None,
) -> dict[str, Any]:
    """The contents of `summary.json`, methods in the order in which their rounds are given.

    Args:
        scenario: name of the scenario.
        rounds: all rounds of each method and seed.
        held_out: scores of samples that the clients set aside, where there are any.
    """
    by_method: dict[str, list[dict[str, float | None]]] = {pair.method: [] for pair in rounds}
    for pair in sorted(rounds, key=lambda pair: pair.seed):
        scores = {**of_seed(rounds[pair]), **(held_out or {}).get(pair, {})}
        by_method[pair.method].append(scores)
    methods = {
        method: {name: over_seeds([seed[name] for seed in seeds]) for name in seeds[0]}
        for method, seeds in by_method.items()
    }
    return {"scenario": scenario, "methods": methods}


def as_csv(rounds: Mapping[Pair, Sequence[rows.Row]]) -> str:
    """All rounds of all methods and seeds, one line each; unknown values are empty.

    Args:
        rounds: by method and seed; those of a stream have their time step as well.
    """
    text = StringIO()
    writer = csv.writer(text, lineterminator="\n")
    seconds = [f"seconds_{phase}" for phase in (*rows.PHASES, "total")]
    streams = any("time_step" in row for done in rounds.values() for row in done)
    names = [*(["time_step"] if streams else []), *SCALARS]
    writer.writerow(["method", "seed", "round", *names, *seconds])
    for pair, done in rounds.items():
        for row in done:
            spent = [row["seconds"][phase] for phase in (*rows.PHASES, "total")]
            scalars = [row.get(name) for name in names]
            writer.writerow([pair.method, pair.seed, row["round"], *scalars, *spent])
    return text.getvalue()


def read_summary(folder: Path) -> Mapping[str, Any]:
    """The contents of `summary.json`; of a run without a scenario, those that it would have.

    Methods and seeds whose rounds are damaged or missing are left out.

    Args:
        folder: of a run.

    Returns:
        Empty for an unfinished run.

    Raises:
        FolderError: there is no run in the folder, or the file is not as it was written.
        MetricsError: no rounds can be read, and some are damaged.

    Warns:
        DamagedRunWarning: a method and seed is damaged, or missing from a finished run.
    """
    return summary_of(folder, read_contents(folder))


def summary_of(folder: Path, contents: Contents) -> Mapping[str, Any]:
    """The same as `read_summary`, of contents that were read before.

    Args:
        folder: of a run.
        contents: of the folder.

    Raises:
        FolderError: the file is not as it was written.
    """
    files, index = RunFiles(folder), read_index(folder)
    if files.summary.is_file():
        written = _written_summary(files.summary, index.has_scenario)
        if not contents.left_out and not _averages_steps(written, contents):
            return written
    elif index.has_scenario:
        return {}
    finished = {
        pair: done
        for method in index.methods
        for pair, done in contents.rounds.items()
        if pair.method == method and (files.summary.is_file() or files.of(pair).is_finished)
    }
    held_out = {pair: read_held_out(files.of(pair)) for pair in finished}
    return summarise(index.name, finished, held_out) if finished else {}


def _averages_steps(written: Mapping[str, Any], contents: Contents) -> bool:
    """Whether a summary of a stream is of a version that averaged rounds of several time steps."""
    streams = any("time_step" in row for done in contents.rounds.values() for row in done)
    return streams and not any("step_accuracy" in row for row in written["methods"].values())


def _written_summary(path: Path, resumes: bool) -> Mapping[str, Any]:
    """The contents of a `summary.json`, or what to do about one that was changed."""
    try:
        written: Mapping[str, Any] = json.loads(path.read_text(encoding="utf-8"))
        if isinstance(written["scenario"], str) and isinstance(written["methods"], dict):
            return written
        why = "scenario must be text and methods an object"
    except (ValueError, KeyError, TypeError) as error:
        why = f"it lacks {error}" if isinstance(error, KeyError) else str(error)
    command = f"bcfl resume {shlex.quote(str(path.parent))}"
    again = f", and `{command}` writes it again" if resumes else ""
    raise FolderError(f"{path} isn't as it was written: {why}; delete it{again}")


def write_summary(plan: Plan, files: RunFiles) -> None:
    """Write `summary.json` and `rounds.csv` of a run whose rounds are all done.

    Args:
        plan: of the run.
        files: of its folder.
    """
    rounds = {pair: rows.read_run(files.of(pair)) for pair in plan.scenario.pairs}
    held_out = {pair: read_held_out(files.of(pair)) for pair in plan.scenario.pairs}
    summary = summarise(plan.scenario.name, rounds, held_out)
    in_order = {name: summary["methods"][name] for name in plan.scenario.methods}
    chosen = {choice.method: asdict(choice) for choice in choices(in_order)}
    summary = {**summary, "chosen": chosen} if chosen else summary
    text = json.dumps({**summary, "methods": in_order}, indent=2, allow_nan=False)
    write_aside(files.summary, text + "\n")
    by_method = sorted(rounds, key=lambda pair: plan.scenario.methods.index(pair.method))
    write_aside(files.rounds, as_csv({pair: rounds[pair] for pair in by_method}))


def _mean(values: Sequence[float | None]) -> float | None:
    known = [value for value in values if value is not None]
    return fmean(known) if len(known) == len(values) else None


def _sum(values: Sequence[float | None]) -> float | None:
    known = [value for value in values if value is not None]
    return sum(known) if len(known) == len(values) else None


def _distance(first: float | None, second: float | None) -> float | None:
    return None if first is None or second is None else abs(first - second)
