"""The run folder of a deployed federation, laid out as that of `bcfl run`.

DIR/run.json names the methods and seeds that were run in it, each with its settings;
DIR/METHOD/seed-S/ holds `metrics.jsonl`, `checkpoints/` and, after the last round, graphs.
"""

from __future__ import annotations

import json
from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any

from bcfl.analysis import rows
from bcfl.analysis.graphs import write_graphs
from bcfl.analysis.rows import Row
from bcfl.analysis.run import Run
from bcfl.rounds import checkpoint
from bcfl.rounds.state import FederationState
from bcfl.runtime.folders import GRAPHS, OTHER_GRAPHS, RUN_FORMAT, MethodFiles, locked, write_aside


@dataclass(frozen=True, eq=False)
class DeploymentFolder:
    """The files of one method and seed, and the state that its newest checkpoint holds.

    Attributes:
        folder: of all methods and seeds.
        method: name of the method.
        seed: of the run.
        state: of the newest checkpoint; None where there is none, or before `opened`.
    """

    folder: Path
    method: str
    seed: int = 0
    state: FederationState | None = None

    @property
    def files(self) -> MethodFiles:
        """The files of this method and seed."""
        return MethodFiles(self.folder / self.method / f"seed-{self.seed}")

    def rows(self) -> list[Row]:
        """The rounds so far; a last line that is not whole is left out.

        Raises:
            MetricsError: the file was changed.
        """
        return rows.read(self.files.metrics)

    @contextmanager
    def opened(
        self, clients: Sequence[str], name: str, settings: Mapping[str, Any]
    ) -> Iterator[DeploymentFolder]:
        """The folder with its state, locked for this process; rounds and graphs after it go.

        Args:
            clients: names of the clients, sorted.
            name: of what is learned, for tables.
            settings: from which server and nodes build the federation.

        Raises:
            BusyError: another process is working in the folder.
            CheckpointError: the newest checkpoint is damaged, or of other clients.
            MetricsError: the rounds so far are fewer than the checkpoint says.
        """
        self.files.folder.mkdir(parents=True, exist_ok=True)
        with locked(self.files.folder):
            newest = checkpoint.newest(self.files.checkpoints)
            state = None if newest is None else checkpoint.load(newest)
            if state is not None:
                theirs = state.hypotheses.best.association.clients
                if theirs != tuple(clients):
                    raise checkpoint.CheckpointError(
                        f"checkpoint {newest} is of the clients {', '.join(theirs)}, not "
                        f"{', '.join(clients)}; give a new folder"
                    )
            self._describe(clients, name, settings)
            for kind in (*GRAPHS, *OTHER_GRAPHS):
                self.files.graph(kind).unlink(missing_ok=True)
            rows.keep_rounds(self.files.metrics, state.round if state else 0)
            yield replace(self, state=state)

    def _describe(self, clients: Sequence[str], name: str, settings: Mapping[str, Any]) -> None:
        """Write `run.json`, or add this method and seed to it."""
        path = self.folder / "run.json"
        known = json.loads(path.read_text(encoding="utf-8")) if path.is_file() else {}
        description = {
            "format": RUN_FORMAT,
            "scenario": {"name": name},
            "methods": list(dict.fromkeys((*known.get("methods", ()), self.method))),
            "seeds": sorted({*known.get("seeds", ()), self.seed}),
            "data": {"clients": len(clients), "groups": 0},
            "deployment": {**known.get("deployment", {}), self.method: dict(settings)},
        }
        write_aside(path, json.dumps(description, indent=2) + "\n")

    def write(self, state: FederationState, row: Row, saves: bool) -> None:
        """Write the line of a round, and a checkpoint where one is due.

        Args:
            state: after the round.
            row: of the round.
            saves: whether a checkpoint is due.
        """
        rows.append(self.files.metrics, row)
        if saves:
            checkpoint.save(state, self.files.checkpoints)

    def finish(self, run: Run) -> None:
        """Write the graphs of a run after its last round.

        Args:
            run: the run.
        """
        write_graphs(run, self.files.graph)
