"""Rounds as rows of numbers, as lines of `metrics.jsonl`, and as a data frame.

A value that isn't known, such as ARI without true groups, is None; JSON has no NaN. All but
`seconds` is the same to the last bit whether a run was interrupted or not.
"""

from __future__ import annotations

import json
import math
import os
from collections.abc import Mapping, Sequence
from pathlib import Path
from types import NoneType
from typing import TYPE_CHECKING, Any, TypeVar

from bcfl.analysis import metrics
from bcfl.analysis.export import required_pandas
from bcfl.analysis.true_groups import TrueGroups, groups_after
from bcfl.executors.privacy import MissingAccountantError
from bcfl.rounds import checkpoint
from bcfl.runtime.folders import MethodFiles, whole_lines

if TYPE_CHECKING:
    import pandas

    from bcfl.executors import Privacy
    from bcfl.hypotheses.history import Snapshot
    from bcfl.protocol.statistics.predictions import PredictionSums
    from bcfl.rounds.state import RoundRecord

__all__ = [
    "COUNTS",
    "PHASES",
    "DamagedRunWarning",
    "MetricsError",
    "Row",
    "append",
    "as_dataframe",
    "keep_rounds",
    "numbers",
    "privacy_columns",
    "read",
    "read_run",
    "read_sound",
    "round_row",
    "snapshot_row",
    "to_dataframe",
    "write",
]

Row = dict[str, Any]
Key = TypeVar("Key")
PHASES = ("train", "score", "server", "evaluate")
COUNTS = (
    "exchanges",
    "scores_requested",
    "scores_run",
    "trainings_requested",
    "trainings_run",
    "bytes_down",
    "bytes_up",
)
BELIEF_COSTS = ("exchanges", "scores_run", "bytes_down", "bytes_up")
KINDS: Mapping[str, tuple[type, ...]] = {
    **dict.fromkeys(("cluster_sizes", "hypothesis_weights", "parents", "failures"), (list,)),
    **dict.fromkeys(("facts", "seconds"), (dict,)),
    "belief": (dict, NoneType),
}
"""Types of the columns that are not numbers; a deployed federation has more of its own."""
NUMBERS = {
    *("round", "time_step", "weighted_f1", "hold_out_f1", "clusters_used", "effective_hypotheses"),
    *("log_captured_mass", "participants", *COUNTS, "models_sent", "models_run", "num_floored"),
    *("outside_hull", "outweighed", "num_candidates", *metrics.AGREEMENT),
    *(name for names in metrics.SCORES.values() for name in names),
}


class MetricsError(ValueError):
    """A `metrics.jsonl` that is not a sequence of rounds in order, with columns of their types."""


class DamagedRunWarning(UserWarning):
    """The rounds of a method and seed are damaged; others of the folder are read."""


def round_row(
    record: RoundRecord,
    groups: Mapping[str, int | None] | None,
    seconds: float,
    held_out: Mapping[str, PredictionSums] | None = None,
    used: Mapping[str, float | None] | None = None,
) -> Row:
    """The row of a round.

    Scores of predictions are those of the model's likelihood
    (`bcfl.analysis.metrics.SCORES`), and of classes `weighted_f1` and `hold_out_f1`; without test
    samples they are None.

    Args:
        record: outcome of the round.
        groups: true group of each client, None where unknown; None where there are none. Of those
            that know the time steps of a stream, the ones after this round are taken, and the row
            has the `time_step` of the round, from 0.
        seconds: wall-clock time of the whole round, its share of logging included.
        held_out: predictions of each client's model on samples that no client holds.
        used: `models_sent` and `models_run`, in units of a network, where they were counted.

    Returns:
        Numbers, lists and mappings by the names of columns; None where a value is not known.
    """
    ledger, fusion = record.ledger, record.info.fusion
    phases = {phase: ledger.seconds.get(phase, 0.0) for phase in PHASES}
    groups = groups_after(groups, record.round)
    row = {
        "round": record.round,
        **_time_step(groups),
        **metrics.SUMMARIES[record.likelihood](record.predicted),
        **_of_classes(record, held_out),
        **_hypotheses(record.snapshot, groups),
        "participants": len(record.participants),
        **{name: getattr(ledger, name) for name in COUNTS},
        **(used or dict.fromkeys(("models_sent", "models_run"))),
        "num_floored": fusion.num_floored,
        "outside_hull": fusion.outside_hull,
        "outweighed": fusion.outweighed,
        "num_candidates": record.info.num_candidates,
        "facts": dict(record.info.facts),
        "failures": list(ledger.failures),
        "belief": _belief_costs(record),
        "seconds": {**phases, "total": seconds},
    }
    finite: Row = _finite(row)
    return finite


def _time_step(groups: Mapping[str, int | None] | None) -> dict[str, int]:
    """The time step of the groups as a column; empty where the data have one."""
    if not isinstance(groups, TrueGroups) or groups.num_steps == 1:
        return {}
    return {"time_step": groups.step}


def _of_classes(record: RoundRecord, held_out: Mapping[str, PredictionSums] | None) -> Row:
    """The columns that only predictions of classes have, after those of `metrics.SCORES`."""
    if record.likelihood != "categorical":
        return {}
    return {
        "weighted_f1": metrics.macro_f1_per_client(record.evaluations, record.num_training),
        "hold_out_f1": metrics.macro_f1_per_client(held_out or {}),
    }


def snapshot_row(snapshot: Snapshot, groups: Mapping[str, int | None]) -> Row:
    """The row of a round without a record: its hypotheses are known, scores and costs are not.

    Args:
        snapshot: of the history of a state.
        groups: true group of each client, None where unknown; see `bcfl.analysis.rows.round_row`.
    """
    groups = groups_after(groups, snapshot.round) or {}
    unknown = ("participants", *COUNTS, "models_sent", "models_run")
    finite: Row = _finite(
        {
            "round": snapshot.round,
            **_time_step(groups),
            **_hypotheses(snapshot, groups),
            **dict.fromkeys(unknown),
            "facts": {},
            "failures": [],
            "belief": None,
            "seconds": dict.fromkeys((*PHASES, "total")),
        }
    )
    return finite


def _hypotheses(snapshot: Snapshot, groups: Mapping[str, int | None] | None) -> Row:
    """The columns of the hypotheses after a round."""
    leading = snapshot.associations[0]
    return {
        **metrics.agreement(leading, groups),
        "cluster_sizes": leading.sizes.tolist(),
        "clusters_used": int((leading.sizes > 0).sum()),
        "hypothesis_weights": snapshot.weights.tolist(),
        "parents": [list(parents) for parents in snapshot.parents],
        "effective_hypotheses": snapshot.effective_number,
        "log_captured_mass": snapshot.log_captured_mass,
    }


def _belief_costs(record: RoundRecord) -> dict[str, int] | None:
    """What recording beliefs after a round cost, apart from it; None where none were recorded."""
    ledger = record.belief_ledger
    return None if ledger is None else {name: getattr(ledger, name) for name in BELIEF_COSTS}


def privacy_columns(releases: Mapping[str, int], privacy: Privacy | None) -> Row:
    """What the client that has released most has released so far, and its epsilon.

    Args:
        releases: of each client so far, as in `bcfl.FederationState.releases`.
        privacy: how clients randomise what they send; None has no columns.

    Returns:
        `releases` and `epsilon`, which is None where dp-accounting is not installed.
    """
    if privacy is None:
        return {}
    most = max(releases.values(), default=0)
    try:
        epsilon = privacy.epsilon(most)
    except MissingAccountantError:
        epsilon = None
    return {"releases": most, "epsilon": epsilon}


def _finite(value: Any) -> Any:  # noqa: ANN401
    if isinstance(value, dict):
        return {key: _finite(item) for key, item in value.items()}
    return None if isinstance(value, float) and not math.isfinite(value) else value


def to_dataframe(rows: Sequence[Row]) -> pandas.DataFrame:
    """Rows of rounds as a data frame: one line per round, one column per number.

    Columns are metrics by their names, and the time by phase of a round, such as `seconds_train`;
    `failures` counts requests without an answer. Lists, such as cluster sizes, are left out.

    Args:
        rows: of the rounds.

    Returns:
        A line for each row, in order; unknown numbers are NaN.

    Raises:
        ModuleNotFoundError: pandas is not installed.
    """
    return as_dataframe([numbers(row) for row in rows])


def as_dataframe(lines: Sequence[Mapping[str, Any]]) -> pandas.DataFrame:
    """Lines of values by column as a data frame.

    Args:
        lines: values by the names of columns.

    Raises:
        ModuleNotFoundError: pandas is not installed.
    """
    frame: pandas.DataFrame = required_pandas().DataFrame(lines)
    return frame


def numbers(row: Row) -> dict[str, float | None]:
    """The numbers of a row by the names of columns, lists left out.

    See `bcfl.analysis.rows.to_dataframe`.

    Args:
        row: of a round.
    """
    plain = {
        name: value
        for name, value in row.items()
        if value is None or isinstance(value, int | float)
    }
    plain.pop("belief", None)
    failures = {"failures": len(row["failures"])} if "failures" in row else {}
    seconds = {f"seconds_{phase}": spent for phase, spent in row.get("seconds", {}).items()}
    return {**plain, **failures, **seconds}


def write(path: Path, rows: Sequence[Row]) -> None:
    """Write all rounds of a run.

    Args:
        path: the file, in a folder that need not be there yet.
        rows: of the rounds 1, 2, 3, ...
    """
    path.parent.mkdir(parents=True, exist_ok=True)
    lines = (json.dumps(row, allow_nan=False) + "\n" for row in rows)
    path.write_text("".join(lines), encoding="utf-8")


def append(path: Path, row: Row) -> None:
    """Append the row of a round to a file and flush it to disk.

    Args:
        path: `metrics.jsonl` of a method and seed.
        row: metrics of the round.
    """
    with path.open("ab") as file:
        file.write(json.dumps(row, allow_nan=False).encode() + b"\n")
        file.flush()
        os.fsync(file.fileno())


def read(path: Path) -> list[Row]:
    """Rounds of a file, none where there is no file; a last line that isn't whole is left out.

    Raises:
        MetricsError: a line is no JSON, the rounds aren't 1, 2, 3, ..., or a column is of another
            type.
    """
    rows: list[Row] = []
    for number, line in enumerate(whole_lines(path), start=1):
        try:
            row = json.loads(line)
            actual = row["round"]
        except (ValueError, KeyError, TypeError):
            actual = None
        if actual != number:
            raise MetricsError(
                f"line {number} of {path} isn't round {number}; the file was changed after the "
                f"run; {_remedy(path)}"
            )
        _check_types(row, number, path)
        rows.append(row)
    return rows


def _check_types(row: Row, number_of_line: int, path: Path) -> None:
    for name, value in row.items():
        number = (int, float, NoneType) if name in NUMBERS else (object,)
        kinds = KINDS.get(name, number)
        if not isinstance(value, kinds):
            words = " or ".join({NoneType: "null"}.get(kind, kind.__name__) for kind in kinds)
            raise MetricsError(
                f"{name} in line {number_of_line} of {path} must be {words}, got {value!r}; the "
                f"file was changed after the run; {_remedy(path)}"
            )


def _remedy(path: Path) -> str:
    return f"delete {path.parent} to run this method and seed again from the beginning"


def read_run(files: MethodFiles) -> list[Row]:
    """Rounds of a method and seed, at least those before its newest checkpoint.

    Args:
        files: of the method and seed.

    Raises:
        MetricsError: rounds are missing, a line is no JSON, or the rounds aren't 1, 2, 3, ...
    """
    found, newest = read(files.metrics), checkpoint.newest(files.checkpoints)
    if newest is not None:
        _check_num_rounds(files.metrics, len(found), checkpoint.round_of(newest))
    if not found and files.is_finished:
        raise MetricsError(
            f"{files.metrics} holds no rounds, though graphs of the last one lie beside it; "
            f"{_remedy(files.metrics)}"
        )
    return found


def read_sound(
    files: Mapping[Key, MethodFiles],
) -> tuple[dict[Key, list[Row]], dict[Key, MetricsError]]:
    """Rounds of the methods and seeds whose file is sound, and what is wrong with the others.

    Args:
        files: of methods and seeds.
    """
    found: dict[Key, list[Row]] = {}
    errors: dict[Key, MetricsError] = {}
    for key, place in files.items():
        try:
            found[key] = read_run(place)
        except MetricsError as error:
            errors[key] = error
    return found, errors


def _check_num_rounds(path: Path, found: int, rounds: int) -> None:
    if found < rounds:
        raise MetricsError(
            f"{path} holds {found} rounds, its checkpoint comes after round {rounds}; "
            f"{_remedy(path)}"
        )


def keep_rounds(path: Path, rounds: int) -> list[Row]:
    """Truncate a file after a number of rounds, and return their rows.

    Args:
        path: `metrics.jsonl` of a method and seed.
        rounds: number of rounds that are kept.

    Raises:
        MetricsError: the file has fewer rounds, or a line is malformed.
    """
    lines = whole_lines(path)
    _check_num_rounds(path, len(lines), rounds)
    if path.is_file():
        os.truncate(path, sum(len(line) for line in lines[:rounds]))
    return read(path)


def __dir__() -> list[str]:
    return __all__
