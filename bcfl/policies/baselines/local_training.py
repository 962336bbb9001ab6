"""Local training: each client on its own, the baseline without a federation."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, replace

from bcfl.hypotheses.association import Association
from bcfl.hypotheses.hypothesis import Hypothesis
from bcfl.policies.context import RoundContext
from bcfl.policies.policy import Continue, Given, Origin, Ranking, candidate
from bcfl.protocol.objective import Objective
from bcfl.protocol.requests import Steps


@dataclass(frozen=True)
class LocalTraining:
    """One cluster per client, without any aggregation across clients.

    The first round opens the clusters, in the order of the clients' names.

    Attributes:
        objective: local objective.
    """

    objective: Objective

    @property
    def num_clusters(self) -> int:
        """One, from which each client's own cluster continues."""
        return 1

    def associate(self, hypothesis: Hypothesis, context: RoundContext) -> Steps[Ranking]:
        """Associate without any request. See `bcfl.policies.Policy.associate`."""
        yield from ()
        clients = hypothesis.association.clients
        rows: Mapping[str, int] = {client: row for row, client in enumerate(clients)}
        labels = {client: rows[client] for client in context.participants}
        opened = hypothesis
        if len(hypothesis.clusters) < len(clients):
            initial = hypothesis.clusters[0]
            unseen = Association.unseen(clients, len(clients))
            opened = replace(hypothesis, clusters=(initial,) * len(clients), association=unseen)
        chosen = candidate(opened, labels, self.objective, num_samples=context.num_samples)
        origins: tuple[Origin, ...] = tuple(
            Continue(index) if opened is hypothesis else Given(posterior)
            for index, posterior in enumerate(opened.clusters)
        )
        return Ranking.only(replace(chosen, origins=origins))
