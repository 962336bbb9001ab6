"""Callbacks for `bcfl.Federation.run(on_round=...)` that log the numbers of each round.

One metric has one name wherever it is logged: that of its column in `bcfl.Run.to_dataframe`, such
as `accuracy`, `ari`, `trainings_run` or `seconds_train`; numbers that are not known are left out.
The step is the round, from 1.

An error of a logger, such as a full disk, becomes a warning, so that the run goes on. A run that is
continued from an earlier state with the same file, folder or run of a logger continues its log: a
round that was logged before the interruption is there once.
"""

from __future__ import annotations

import csv
import json
import math
import warnings
from collections.abc import Callable, Mapping, Sequence
from contextlib import suppress
from dataclasses import dataclass
from importlib import import_module
from io import StringIO
from pathlib import Path
from typing import TYPE_CHECKING, Any

from bcfl.analysis.rows import numbers, round_row
from bcfl.analysis.true_groups import Groups, groups_after
from bcfl.runtime.folders import as_path, whole_lines, write_aside

if TYPE_CHECKING:
    from bcfl.rounds.state import FederationState, RoundRecord

__all__ = ["RoundLogger", "csv_file", "jsonl", "mlflow", "tensorboard", "together", "wandb"]

Write = Callable[[Mapping[str, float], int], object]


@dataclass(frozen=True)
class RoundLogger:
    """Hands the numbers of each round to a function, whose errors become warnings.

    Attributes:
        write: takes numbers by name, and the round.
        groups: true group of each client, such as `bcfl.Federation.groups`, for the agreement with
            them; None leaves that out.
    """

    write: Write
    groups: Groups | None = None

    def __call__(self, state: FederationState, record: RoundRecord) -> None:
        """Log a round.

        Args:
            state: after the round.
            record: of the round.
        """
        groups = groups_after(self.groups, record.round, state.planned_rounds)
        row = numbers(round_row(record, groups, sum(record.ledger.seconds.values())))
        known = {k: v for k, v in row.items() if v is not None and math.isfinite(v)}
        known.pop("round")
        try:
            self.write(known, record.round)
        except Exception as error:
            warnings.warn(
                f"round {record.round} was not logged: {type(error).__name__}: {error}",
                RuntimeWarning,
                stacklevel=2,
            )


def tensorboard(folder: str | Path, groups: Groups | None = None) -> RoundLogger:
    """Log scalars for TensorBoard, which compares the runs of different folders.

    Args:
        folder: of the event files of one run. Rounds from the first one logged on that an earlier
            run has left there are no longer shown.
        groups: see `bcfl.analysis.loggers.RoundLogger`.

    Raises:
        ModuleNotFoundError: TensorBoard is not installed.
        OSError: the folder cannot be written.
    """
    _required("tensorboard")
    make = import_module("torch.utils.tensorboard").SummaryWriter
    as_path("folder", folder).mkdir(parents=True, exist_ok=True)
    writer: Any = None

    def begin(round: int) -> None:
        nonlocal writer
        if writer is not None:
            with suppress(OSError):
                writer.close()
        writer = make(str(folder), purge_step=round)

    def write(values: Mapping[str, float], round: int) -> None:
        for name, value in values.items():
            writer.add_scalar(name, value, round)
        writer.flush()

    return RoundLogger(_beginning(begin, write), groups)


def mlflow(groups: Groups | None = None) -> RoundLogger:
    """Log metrics to the active run of MLflow, which begins one if there is none.

    Rounds that the run of MLflow holds already are not logged again.

    Args:
        groups: see `bcfl.analysis.loggers.RoundLogger`.

    Raises:
        ModuleNotFoundError: MLflow is not installed.
    """
    library = _required("mlflow")
    logged = 0

    def begin(round: int) -> None:
        nonlocal logged
        del round
        active = library.active_run()
        id = active.info.run_id if active else None
        past = library.MlflowClient().get_metric_history(id, "participants") if active else ()
        logged = max((metric.step for metric in past), default=0)

    def write(values: Mapping[str, float], round: int) -> None:
        if round <= logged:
            raise ValueError(f"the active run of MLflow holds rounds up to {logged}")
        library.log_metrics(dict(values), step=round)

    return RoundLogger(_beginning(begin, write), groups)


def wandb(groups: Groups | None = None) -> RoundLogger:
    """Log metrics to the active run of Weights & Biases, that of `wandb.init()`.

    Weights & Biases ignores rounds that its run holds already, with a warning of its own.

    Args:
        groups: see `bcfl.analysis.loggers.RoundLogger`.

    Raises:
        ModuleNotFoundError: Weights & Biases is not installed.
        ValueError: there is no active run.
    """
    library = _required("wandb")
    if library.run is None:
        raise ValueError("wandb must have an active run: call wandb.init() before, got none")
    return RoundLogger(lambda values, round: library.log(dict(values), step=round), groups)


def jsonl(path: str | Path, groups: Groups | None = None) -> RoundLogger:
    """Append a line of JSON for each round, with `round` and the numbers.

    Args:
        path: the file of one run. Lines of an earlier run are replaced from the first round on that
            is logged.
        groups: see `bcfl.analysis.loggers.RoundLogger`.
    """
    place = _in_folder(path)

    def begin(round: int) -> None:
        kept = [line for line in whole_lines(place) if json.loads(line)["round"] < round]
        write_aside(place, b"".join(kept).decode())

    def write(values: Mapping[str, float], round: int) -> None:
        with place.open("a", encoding="utf-8") as file:
            file.write(json.dumps({"round": round, **values}) + "\n")

    return RoundLogger(_beginning(begin, write), groups)


def csv_file(path: str | Path, groups: Groups | None = None) -> RoundLogger:
    """Append a line for each round to a table; numbers that are not known are empty.

    Args:
        path: the file of one run. Lines of an earlier run are replaced from the first round on that
            is logged.
        groups: see `bcfl.analysis.loggers.RoundLogger`.
    """
    place = _in_folder(path)
    names: list[str] = []

    def save(lines: Sequence[Mapping[str, Any]]) -> None:
        names[:] = dict.fromkeys(name for line in lines for name in line)
        text = StringIO()
        table = csv.DictWriter(text, names, lineterminator="\n")
        table.writeheader()
        table.writerows(lines)
        write_aside(place, text.getvalue())

    def write(values: Mapping[str, float], round: int) -> None:
        line = {"round": round, **values}
        if not line.keys() <= set(names):
            save([*csv.DictReader(line.decode() for line in whole_lines(place)), line])
            return
        with place.open("a", encoding="utf-8", newline="") as file:
            csv.DictWriter(file, names, lineterminator="\n").writerow(line)

    def begin(round: int) -> None:
        past = csv.DictReader(line.decode() for line in whole_lines(place))
        save([row for row in past if int(row["round"]) < round])

    return RoundLogger(_beginning(begin, write), groups)


def together(
    *callbacks: Callable[[FederationState, RoundRecord], object],
) -> Callable[[FederationState, RoundRecord], bool]:
    """One callback of several, which stops the run where one of them returns True.

    Args:
        callbacks: called after each round, in this order.

    Raises:
        TypeError: one of them is no function.
    """
    for callback in callbacks:
        if not callable(callback):
            raise TypeError(f"callbacks must be functions of state and record, got {callback!r}")
    return lambda state, record: any([one(state, record) is True for one in callbacks])


def _beginning(begin: Callable[[int], object], write: Write) -> Write:
    """Calls `begin` before the first round, one that does not follow the last, and after errors."""
    last = math.inf

    def checked(values: Mapping[str, float], round: int) -> None:
        nonlocal last
        is_next, last = round > last, math.inf
        if not is_next:
            begin(round)
        write(values, round)
        last = round

    return checked


def _in_folder(path: str | Path) -> Path:
    place = as_path("path", path)
    place.parent.mkdir(parents=True, exist_ok=True)
    return place


def _required(package: str) -> Any:  # noqa: ANN401 - a module
    try:
        return import_module(package)
    except ModuleNotFoundError as error:
        if error.name != package:
            raise
        raise ModuleNotFoundError(
            f"this logger needs {package}: pip install 'bcfl[{package}]'", name=package
        ) from error


def __dir__() -> list[str]:
    return __all__
