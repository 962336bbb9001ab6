"""Centralised training on pooled samples: the upper reference of a federation."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace

import numpy as np

from bcfl.data.clients import pool_name
from bcfl.hypotheses.hypothesis import Hypothesis
from bcfl.policies.context import RoundContext
from bcfl.policies.policy import Candidate, Continue, Ranking
from bcfl.protocol.objective import Objective
from bcfl.protocol.requests import Steps, Train


@dataclass(frozen=True)
class Centralised:
    """One model, trained on the pooled samples of all clients, or one for each true group.

    Each round takes as many steps as the participants of a federation, or of a group, take
    together. Models of groups are the bound where groups conflict ("Asymmetric clustering in
    federated continual learning", tables 3.2 to 3.6).

    Attributes:
        objective: objective of one client.
        by_group: whether there is one model for each group.
        groups: group of each client, in the order of their names, numbered from 0; empty is one
            for all.
    """

    objective: Objective
    by_group: bool = False
    groups: tuple[int, ...] = ()

    @property
    def num_clusters(self) -> int:
        """Number of groups."""
        return max(self.groups, default=0) + 1

    def of_groups(self, groups: Sequence[int | None]) -> Centralised:
        """The policy that knows the true groups, if it is about groups.

        Args:
            groups: group of each client, in the order of their names; those without one are one
                more.
        """
        if not self.by_group:
            return self
        known = sorted({group for group in groups if group is not None})
        numbers = {group: number for number, group in enumerate(known)}
        found = tuple(len(known) if group is None else numbers[group] for group in groups)
        return replace(self, groups=found)

    def pools(self, clients: Sequence[str]) -> dict[str, list[str]]:
        """Clients whose samples are pooled, by the name of the pool.

        Args:
            clients: names of all clients, sorted.
        """
        pools: dict[str, list[str]] = {}
        for client, group in zip(clients, self._groups(clients), strict=True):
            pools.setdefault(self._pool(group), []).append(client)
        return pools

    def associate(self, hypothesis: Hypothesis, context: RoundContext) -> Steps[Ranking]:
        """Associate without any request. See `bcfl.policies.Policy.associate`."""
        yield from ()
        clients, count = hypothesis.association.clients, len(hypothesis.clusters)
        groups = dict(zip(clients, self._groups(clients), strict=True))
        labels = {client: groups[client] for client in context.participants}
        present = sorted(set(labels.values())) or [0]
        steps = [
            self.objective.local_steps * sum(label == group for label in labels.values())
            for group in present
        ]
        work = [
            Train(
                self._pool(group),
                hypothesis.clusters[group].key,
                replace(self.objective, local_steps=max(number, 1)),
            )
            for group, number in zip(present, steps, strict=True)
        ]
        chosen = Candidate(
            association=hypothesis.association.updated(labels),
            trainings=tuple(work),
            contribution_weights=np.eye(count)[present],
            origins=tuple(Continue(index) for index in range(count)),
            state=hypothesis.state,
        )
        return Ranking.only(chosen)

    def _groups(self, clients: Sequence[str]) -> tuple[int, ...]:
        return self.groups or (0,) * len(clients)

    def _pool(self, group: int) -> str:
        return pool_name(group if self.by_group else None)
