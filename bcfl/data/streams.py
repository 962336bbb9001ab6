"""Clients whose data change over time: one view per time step.

A view named `train:2` holds the training samples of step 2; `train` is step 0. A client without new
samples at a step keeps its previous ones, so static data are a stream of one step.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import dataclass, replace

from bcfl.data.clients import ClientData
from bcfl.data.names import MEMORY, TRAIN, VALIDATION, VALIDATION_MEMORY
from bcfl.data.view import View


def view_name(name: str, step: int) -> str:
    """Name of a view at a time step, such as `train:2`.

    Args:
        name: plain name of the view.
        step: time step; the name is plain at step 0.
    """
    return f"{name}:{step}" if step else name


def num_steps(clients: Iterable[ClientData]) -> int:
    """Number of time steps over all clients."""
    return 1 + max((_step(name) for data in clients for name in data.views), default=0)


def at_step(data: ClientData, step: int) -> ClientData:
    """Views of a client at one time step under plain names, with its past samples.

    Past training samples are the views `memory:STEP`, and past validation samples the views
    `validation-memory:STEP`.

    Args:
        data: the client with all time steps.
        step: time step, from 0.
    """
    views = _present(data, step)
    for earlier in range(step):
        name = view_name(TRAIN, earlier)
        if name in data.views:
            views[f"{MEMORY}:{earlier}"] = data.views[name]
        held_out = _present(data, earlier).get(VALIDATION)
        if held_out is not None:
            views[f"{VALIDATION_MEMORY}:{earlier}"] = held_out
    return replace(data, views=views)


def _present(data: ClientData, step: int) -> dict[str, View]:
    """Newest view of each kind up to a step, under plain names."""
    views: dict[str, View] = {}
    for name, view in sorted(data.views.items(), key=lambda item: _step(item[0])):
        if _step(name) <= step:
            views[name.partition(":")[0]] = view
    return views


def _step(name: str) -> int:
    return int(name.partition(":")[2] or 0)


@dataclass(frozen=True)
class Schedule:
    """Assignment of rounds to time steps, in numbers that differ by at most one.

    Attributes:
        num_steps: number of time steps of the data.
        num_rounds: number of rounds of the run.

    Raises:
        ValueError: there are fewer rounds than time steps.
    """

    num_steps: int = 1
    num_rounds: int = 1

    def __post_init__(self) -> None:
        if not 1 <= self.num_steps <= self.num_rounds:
            raise ValueError(
                f"num_rounds must be at least the {self.num_steps} time steps of the data, got "
                f"{self.num_rounds}"
            )

    def step(self, round: int) -> int:
        """Time step of a round; rounds beyond the schedule belong to the last."""
        return min(round * self.num_steps // self.num_rounds, self.num_steps - 1)

    def rounds(self, step: int) -> int:
        """Number of rounds of a time step."""
        return sum(self.step(round) == step for round in range(self.num_rounds))

    def begins(self, round: int) -> bool:
        """Whether a round is the first of its time step."""
        return round == 0 or self.step(round) != self.step(round - 1)

    @classmethod
    def of(cls, clients: Sequence[ClientData], num_rounds: int) -> Schedule:
        """Schedule for the time steps of the clients' data.

        Args:
            clients: the clients.
            num_rounds: number of rounds of the run.
        """
        return cls(num_steps(clients), num_rounds)
