"""Every client on its own: the baseline without a federation."""

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
    """One cluster per client; nobody's model ever meets another's.

    The first round opens the clusters, in the order of the clients' names.

    Attributes:
        objective: local objective.
    """

    objective: Objective

    @property
    def num_clusters(self) -> int:
        """One, from which each client's own continues."""
        return 1

    def associate(self, hypothesis: Hypothesis, context: RoundContext) -> Steps[Ranking]:
        """Associate without any request. See `Policy.associate`."""
        yield from ()
        clients = hypothesis.association.clients
        place: Mapping[str, int] = {client: row for row, client in enumerate(clients)}
        labels = {client: place[client] for client in context.participants}
        opened = hypothesis
        if len(hypothesis.clusters) < len(clients):
            one = hypothesis.clusters[0]
            everyone = Association.unseen(clients, len(clients))
            opened = replace(hypothesis, clusters=(one,) * len(clients), association=everyone)
        made = candidate(opened, labels, self.objective, num_samples=context.num_samples)
        origins: tuple[Origin, ...] = tuple(
            Continue(index) if opened is hypothesis else Given(posterior)
            for index, posterior in enumerate(opened.clusters)
        )
        return Ranking.only(replace(made, origins=origins))
