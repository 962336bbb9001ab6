"""Callbacks for `Federation.run(on_round=...)` that log the numbers of each round.

One metric has one name wherever it is logged: that of its column in `Run.to_dataframe`, such as
`accuracy`, `ari`, `trainings_run` or `seconds_train`; numbers that are not known are left out. The
step is the round, from 1.
"""

from __future__ import annotations

import csv
import json
import math
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from importlib import import_module
from pathlib import Path
from typing import TYPE_CHECKING, Any

from bcfl.analysis.rows import numbers, round_row

if TYPE_CHECKING:
    from bcfl.rounds.state import FederationState, RoundRecord

Groups = Mapping[str, int | None] | None
Write = Callable[[Mapping[str, float], int], object]


@dataclass(frozen=True)
class RoundLogger:
    """Hands the numbers of each round to a function.

    Attributes:
        write: takes numbers by name, and the round.
        groups: true group of each client, such as `Federation.groups`, for the agreement with them;
            None leaves that out.
    """

    write: Write
    groups: Groups = None

    def __call__(self, state: FederationState, record: RoundRecord) -> None:
        """Log a round.

        Args:
            state: after the round.
            record: of the round.
        """
        del state
        row = numbers(round_row(record, self.groups, sum(record.ledger.seconds.values())))
        known = {k: v for k, v in row.items() if v is not None and math.isfinite(v)}
        known.pop("round")
        self.write(known, record.round)


def tensorboard(folder: str | Path, groups: Groups = None) -> RoundLogger:
    """Log scalars for TensorBoard.

    Args:
        folder: of the event files.
        groups: see `RoundLogger`.

    Raises:
        ModuleNotFoundError: TensorBoard is not installed.
    """
    _required("tensorboard")
    writer = import_module("torch.utils.tensorboard").SummaryWriter(str(folder))

    def write(values: Mapping[str, float], round: int) -> None:
        for name, value in values.items():
            writer.add_scalar(name, value, round)
        writer.flush()

    return RoundLogger(write, groups)


def mlflow(groups: Groups = None) -> RoundLogger:
    """Log metrics to the active run of MLflow, which begins one if there is none.

    Args:
        groups: see `RoundLogger`.

    Raises:
        ModuleNotFoundError: MLflow is not installed.
    """
    library = _required("mlflow")
    return RoundLogger(lambda values, round: library.log_metrics(dict(values), step=round), groups)


def wandb(groups: Groups = None) -> RoundLogger:
    """Log metrics to the active run of Weights & Biases, that of `wandb.init()`.

    Args:
        groups: see `RoundLogger`.

    Raises:
        ModuleNotFoundError: Weights & Biases is not installed.
        ValueError: there is no active run.
    """
    library = _required("wandb")
    if library.run is None:
        raise ValueError("wandb must have an active run: call wandb.init() before, got none")
    return RoundLogger(lambda values, round: library.run.log(dict(values), step=round), groups)


def jsonl(path: str | Path, groups: Groups = None) -> RoundLogger:
    """Append a line of JSON for each round, with `round` and the numbers.

    Args:
        path: the file.
        groups: see `RoundLogger`.
    """

    def write(values: Mapping[str, float], round: int) -> None:
        with Path(path).open("a", encoding="utf-8") as file:
            file.write(json.dumps({"round": round, **values}) + "\n")

    return RoundLogger(write, groups)


def csv_file(path: str | Path, groups: Groups = None) -> RoundLogger:
    """Append a line for each round to a table, whose columns are those of its first line.

    Args:
        path: the file.
        groups: see `RoundLogger`.
    """
    place = Path(path)

    def write(values: Mapping[str, float], round: int) -> None:
        line = {"round": round, **values}
        if place.exists():
            with place.open(encoding="utf-8", newline="") as file:
                names = next(csv.reader(file))
        else:
            names = list(line)
            place.write_text(",".join(names) + "\n", encoding="utf-8")
        with place.open("a", encoding="utf-8", newline="") as file:
            csv.DictWriter(file, names, extrasaction="ignore", lineterminator="\n").writerow(line)

    return RoundLogger(write, groups)


def together(
    *callbacks: Callable[[FederationState, RoundRecord], object],
) -> Callable[[FederationState, RoundRecord], bool]:
    """One callback of several, which stops the run where one of them returns True.

    Args:
        callbacks: called after each round, in this order.
    """
    return lambda state, record: any([one(state, record) is True for one in callbacks])


def _required(package: str) -> Any:  # noqa: ANN401 - a module
    try:
        return import_module(package)
    except ModuleNotFoundError as error:
        if error.name != package:
            raise
        raise ModuleNotFoundError(
            f"this logger needs {package}: pip install 'bcfl[{package}]'", name=package
        ) from error
