"""The run folder of a deployed federation: `metrics.jsonl` and `checkpoints/`."""

from __future__ import annotations

import json
import os
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, replace
from pathlib import Path

from bcfl.analysis.rows import Row
from bcfl.rounds import checkpoint
from bcfl.rounds.state import FederationState
from bcfl.runtime.folders import locked


@dataclass(frozen=True, eq=False)
class DeploymentFolder:
    """The files of a run, and the state that its newest checkpoint holds.

    Attributes:
        folder: the folder.
        state: of the newest checkpoint; None where there is none, or before `opened`.
    """

    folder: Path
    state: FederationState | None = None

    @property
    def metrics(self) -> Path:
        """One line of JSON for each round, as `bcfl.analysis.rows` describes."""
        return self.folder / "metrics.jsonl"

    @property
    def checkpoints(self) -> Path:
        """Folder of checkpoints."""
        return self.folder / "checkpoints"

    def rows(self) -> list[Row]:
        """The rounds so far; a last line that is not whole is left out."""
        if not self.metrics.is_file():
            return []
        text = self.metrics.read_text(encoding="utf-8")
        lines = text[: text.rfind("\n") + 1].splitlines()
        return [json.loads(line) for line in lines]

    @contextmanager
    def opened(self, clients: Sequence[str]) -> Iterator[DeploymentFolder]:
        """The folder with its state, locked for this process; rounds after it are dropped.

        Args:
            clients: names of the clients, sorted.

        Raises:
            BusyError: another process is working in the folder.
            CheckpointError: the newest checkpoint is damaged, or of other clients.
        """
        self.folder.mkdir(parents=True, exist_ok=True)
        with locked(self.folder):
            newest = checkpoint.newest(self.checkpoints)
            state = None if newest is None else checkpoint.load(newest)
            if state is not None:
                theirs = state.hypotheses.best.association.clients
                if theirs != tuple(clients):
                    raise checkpoint.CheckpointError(
                        f"checkpoint {newest} is of the clients {', '.join(theirs)}, not "
                        f"{', '.join(clients)}; give a new folder"
                    )
            done = state.round if state else 0
            kept = [row for row in self.rows() if row["round"] <= done]
            aside = self.metrics.with_name(".metrics.partial")
            aside.write_text("".join(json.dumps(row) + "\n" for row in kept), encoding="utf-8")
            aside.replace(self.metrics)
            yield replace(self, state=state)

    def write(self, state: FederationState, row: Row, saves: bool) -> None:
        """Write the line of a round, and a checkpoint where one is due.

        Args:
            state: after the round.
            row: of the round.
            saves: whether a checkpoint is due.
        """
        with self.metrics.open("a", encoding="utf-8") as file:
            file.write(json.dumps(row, allow_nan=False) + "\n")
            file.flush()
            os.fsync(file.fileno())
        if saves:
            checkpoint.save(state, self.checkpoints)
