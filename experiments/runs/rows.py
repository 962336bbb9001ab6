"""The rows of `metrics.jsonl`, one per round.

A value that isn't known, such as ARI without true groups, is null; JSON has no NaN. All but
`seconds` is the same to the last bit whether a run was interrupted or not.
"""

from __future__ import annotations

import json
import os
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import TYPE_CHECKING

from bcfl.analysis import rows as rounds
from experiments.scores.costs import models_used

if TYPE_CHECKING:
    from bcfl import Model, RoundRecord
    from bcfl.protocol import PredictionSums

Row = rounds.Row
PHASES, COUNTS = rounds.PHASES, rounds.COUNTS


class MetricsError(ValueError):
    """A `metrics.jsonl` that is not a sequence of complete rounds in order."""


def round_row(
    record: RoundRecord,
    groups: Mapping[str, int | None] | None,
    seconds: float,
    held_out: Mapping[str, PredictionSums] | None = None,
    unit: Model | None = None,
    num_training: Mapping[str, int] | None = None,
) -> Row:
    """The row of a round; see `bcfl.analysis.rows`.

    Args:
        record: outcome of the round.
        groups: true group of each client, None where unknown; None where there are none.
        seconds: wall-clock time of the whole round, its share of logging included.
        held_out: predictions of each client's model on samples that no client holds.
        unit: the network that FedAvg would use, in which costs are counted.
        num_training: training samples of each client, by which `weighted_f1` weighs them.
    """
    used = models_used(record, unit)
    return rounds.round_row(record, groups, seconds, held_out, used, num_training)


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
        MetricsError: a line is no JSON, or the rounds aren't 1, 2, 3, ...
    """
    rows: list[Row] = []
    for number, line in enumerate(_whole_lines(path), start=1):
        try:
            row = json.loads(line)
            actual = row["round"]
        except (ValueError, KeyError, TypeError):
            actual = None
        if actual != number:
            raise MetricsError(
                f"line {number} of {path} isn't round {number}; the file was changed after the run"
            )
        rows.append(row)
    return rows


def keep_rounds(path: Path, rounds: int) -> list[Row]:
    """Truncate a file after a number of rounds, and return their rows.

    Args:
        path: `metrics.jsonl` of a method and seed.
        rounds: number of rounds that are kept.

    Raises:
        MetricsError: the file has fewer rounds, or a line is malformed.
    """
    lines = _whole_lines(path)
    if len(lines) < rounds:
        raise MetricsError(
            f"{path} holds {len(lines)} rounds, its checkpoint comes after round {rounds}; delete "
            f"{path.parent} to run this method and seed again from the beginning"
        )
    if path.is_file():
        os.truncate(path, sum(len(line) for line in lines[:rounds]))
    return read(path)


def _whole_lines(path: Path) -> list[bytes]:
    if not path.is_file():
        return []
    return [line for line in path.read_bytes().splitlines(keepends=True) if line.endswith(b"\n")]
