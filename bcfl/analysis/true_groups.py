"""True groups of clients after a round: those of its time step, where they change over time."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, replace

from bcfl.analysis.metrics import check_groups
from bcfl.data.clients import ClientData
from bcfl.data.names import checked_group
from bcfl.data.streams import Schedule, num_steps
from bcfl.drawing import concepts_text
from bcfl.runtime import as_given

Groups = Mapping[str, int | None]
"""True group of each client, None where unknown."""


@dataclass(frozen=True, eq=False)
class TrueGroups(Mapping[str, int | None]):
    """A mapping from clients to their true groups, None where unknown, after a round of a run.

    In a stream the true group of a client is its concept, which changes from one time step to
    another. After a round, groups are those of the round's time step; `dict(groups)` has these as a
    plain dictionary, such as `json.dumps` takes.

    Attributes:
        concepts: group of each client at each time step; the last one holds for further steps.
        num_steps: time steps of the data.
        planned_rounds: rounds of the run, over which time steps are spread; None where there is no
            run yet, for which groups are those of step 0.
        round: the last round done; 0 is the start.

    Example:
        >>> from bcfl.analysis import TrueGroups
        >>> groups = TrueGroups({"ann": (0, 1), "bob": (0,)}, num_steps=2, planned_rounds=6)
        >>> dict(groups.after(3)), dict(groups.after(4))
        ({'ann': 0, 'bob': 0}, {'ann': 1, 'bob': 0})
    """

    concepts: Mapping[str, tuple[int | None, ...]]
    num_steps: int = 1
    planned_rounds: int | None = None
    round: int = 0

    @classmethod
    def of(
        cls,
        clients: Sequence[ClientData],
        concepts: Mapping[str, Sequence[int | None]] | None = None,
    ) -> TrueGroups:
        """The true groups of clients before a run.

        Args:
            clients: the clients.
            concepts: group of clients at each time step; those of other clients do not change.

        Raises:
            TypeError: concepts are no mapping to sequences of whole numbers.
            ValueError: a client is unknown, or has no concept or more than there are time steps.
        """
        if concepts is not None and not isinstance(concepts, Mapping):
            raise TypeError(f"concepts must be a mapping of clients, got {as_given(concepts)}")
        given, steps = concepts or {}, num_steps(clients)
        check_groups(dict.fromkeys(given), [data.client for data in clients], "concepts")
        return cls(
            {
                data.client: _checked(data.client, given.get(data.client, (data.group,)), steps)
                for data in clients
            },
            steps,
        )

    def __getitem__(self, client: str) -> int | None:
        known = self.concepts[client]
        return known[min(self.step, len(known) - 1)]

    def __iter__(self) -> Iterator[str]:
        return iter(self.concepts)

    def __len__(self) -> int:
        return len(self.concepts)

    def __repr__(self) -> str:
        return f"TrueGroups({dict(self)}, step {self.step} of {self.num_steps})"

    @property
    def step(self) -> int:
        """Time step of the round."""
        if self.planned_rounds is None:
            return 0
        return Schedule(self.num_steps, self.planned_rounds).step(max(self.round - 1, 0))

    @property
    def change(self) -> bool:
        """Whether the group of a client changes at a time step."""
        return any(len(set(known)) > 1 for known in self.concepts.values())

    def text(self, client: str) -> str:
        """Groups of a client at all time steps, such as `0 1 1`; unknown ones are `-`.

        Args:
            client: its name.
        """
        known = self.concepts[client]
        return concepts_text((*known, *known[-1:] * (self.num_steps - len(known))))

    def after(self, round: int, planned_rounds: int | None = None) -> TrueGroups:
        """The groups after another round.

        Args:
            round: the round, from 1.
            planned_rounds: rounds of the run; by default those that are known.
        """
        return replace(self, round=round, planned_rounds=planned_rounds or self.planned_rounds)


def groups_after(
    groups: Groups | None, round: int, planned_rounds: int | None = None
) -> Groups | None:
    """The true groups after a round; a plain mapping holds for all rounds.

    Args:
        groups: of the clients of a run, such as `bcfl.Federation.groups`; None where there are
            none.
        round: the round, from 1.
        planned_rounds: rounds of the run; by default those that the groups know.
    """
    return groups.after(round, planned_rounds) if isinstance(groups, TrueGroups) else groups


def number_of_groups(groups: Groups) -> int:
    """Number of true groups, in a stream of all time steps; unknown ones are not counted.

    Args:
        groups: of the clients.
    """
    if isinstance(groups, TrueGroups):
        known = {group for concepts in groups.concepts.values() for group in concepts}
    else:
        known = set(groups.values())
    return len(known - {None})


def _checked(client: str, concepts: Sequence[int | None], steps: int) -> tuple[int | None, ...]:
    if isinstance(concepts, str | bytes) or not hasattr(concepts, "__len__"):
        raise TypeError(
            f"concepts of client {client!r} must be a sequence with a group for each time step, "
            f"got {as_given(concepts)}"
        )
    if not 1 <= len(concepts) <= steps:
        raise ValueError(
            f"concepts of client {client!r} must be 1 to {steps}, the time steps of the data, got "
            f"{len(concepts)}"
        )
    return tuple(checked_group(client, group) for group in concepts)
