"""Clients and newest checkpoint of a method with a seed, from the folder of its run."""

from __future__ import annotations

from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING

from bcfl import Run
from bcfl.rounds import checkpoint
from experiments.config.variants import Pair
from experiments.runs.files import RunFiles
from experiments.runs.plan import read_plan
from experiments.runs.runner import Experiment

if TYPE_CHECKING:
    from bcfl import ClientData, FederationState, Model


@dataclass(frozen=True, eq=False)
class Restored:
    """What a run had learned when it last wrote a checkpoint.

    Attributes:
        setup: the scenario with its data set, on the CPU.
        model: the method's network.
        state: the newest checkpoint.
        clients: the clients' data, sorted by name, divided as the method divides them.
    """

    setup: Experiment
    model: Model
    state: FederationState
    clients: tuple[ClientData, ...]

    @property
    def run(self) -> Run:
        """The run, without its records."""
        groups = {data.client: data.group for data in self.clients}
        return Run(self.model, self.state, (), groups, self.clients)


def restore(folder: Path, pair: Pair, setup: Experiment | None = None) -> Restored:
    """Read the newest checkpoint of a method and seed, and divide the data again.

    Args:
        folder: folder of the run.
        pair: one that has a checkpoint.
        setup: of the same run, if it was made before.

    Raises:
        ValueError: a checkpoint is missing, damaged or of other clients, or the data are missing.
    """
    setup = setup or Experiment(read_plan(folder).scenario, "cpu")
    state = newest_state(folder, pair)
    if state is None:
        raise ValueError(f"{pair} has no checkpoint in {folder}")
    federation = setup.federation(pair)
    clients = federation.data
    if state.hypotheses.best.association.clients != tuple(one.client for one in clients):
        raise ValueError(f"the newest checkpoint of {pair} is of other clients than run.json says")
    return Restored(setup, federation.model, state, clients)


def newest_state(folder: Path, pair: Pair) -> FederationState | None:
    """The newest checkpoint of a method and seed; None if there is none."""
    path = checkpoint.newest(RunFiles(folder).of(pair).checkpoints)
    return None if path is None else checkpoint.load(path)
