"""Clients whose data change over time: one view per time step.

A view named `train:2` holds the training samples of step 2; `train` alone is step 0. A client that
brings nothing new at a step keeps what it had, so static data are a stream of one step.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import dataclass

from bcfl.data.clients import TRAIN, VALIDATION, ClientData, View

VALIDATION_MEMORY = "validation-memory"


def view_name(name: str, step: int) -> str:
    """Name of the view of a step, such as `train:2`; that of step 0 is the plain name."""
    return f"{name}:{step}" if step else name


def num_steps(clients: Iterable[ClientData]) -> int:
    """Number of time steps: one more than the last that any client has a view of."""
    return 1 + max((_step(name) for data in clients for name in data.views), default=0)


def at_step(data: ClientData, step: int) -> ClientData:
    """What a client has at a step, under the plain names, with its past beside it.

    The past is the training samples of each earlier step that brought some, as `memory:STEP`, and
    the validation samples that the client then had, if any, as `validation-memory:STEP`.

    Args:
        data: the client with all its steps.
        step: number of the step, from 0.
    """
    views = _present(data, step)
    for earlier in range(step):
        name = view_name(TRAIN, earlier)
        if name in data.views:
            views[f"memory:{earlier}"] = data.views[name]
        held_out = _present(data, earlier).get(VALIDATION)
        if held_out is not None:
            views[f"{VALIDATION_MEMORY}:{earlier}"] = held_out
    return ClientData(data.client, views, data.group)


def _present(data: ClientData, step: int) -> dict[str, View]:
    """The newest view of each kind up to a step, under the plain names."""
    views: dict[str, View] = {}
    for name, view in sorted(data.views.items(), key=lambda item: _step(item[0])):
        if _step(name) <= step:
            views[name.partition(":")[0]] = view
    return views


def _step(name: str) -> int:
    _, _, number = name.partition(":")
    if number and not number.isdecimal():
        raise ValueError(f"a view's name must be like 'train' or 'train:2', got {name!r}")
    return int(number or 0)


@dataclass(frozen=True)
class Schedule:
    """Which time step a round belongs to: as many rounds for each, the first ones one more.

    Attributes:
        num_steps: time steps of the data.
        num_rounds: rounds of the run.
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
        """The time step of a round; later rounds belong to the last."""
        return min(round * self.num_steps // self.num_rounds, self.num_steps - 1)

    def rounds(self, step: int) -> int:
        """Number of rounds of a time step."""
        return sum(self.step(round) == step for round in range(self.num_rounds))

    def begins(self, round: int) -> bool:
        """Whether a round is the first of its time step."""
        return round == 0 or self.step(round) != self.step(round - 1)

    @classmethod
    def of(cls, clients: Sequence[ClientData], num_rounds: int) -> Schedule:
        """The schedule of some clients' data."""
        return cls(num_steps(clients), num_rounds)
