"""FedAvg (McMahan et al., 2017): one model for all clients. FedProx is FedAvg with a penalty."""

from __future__ import annotations

from dataclasses import dataclass

from bcfl.hypotheses.hypothesis import Hypothesis
from bcfl.policies.context import RoundContext
from bcfl.policies.policy import Ranking, candidate
from bcfl.protocol.objective import Objective
from bcfl.protocol.requests import Steps


@dataclass(frozen=True)
class FedAvg:
    """All clients belong to one cluster.

    Attributes:
        objective: local objective.
    """

    objective: Objective

    @property
    def num_clusters(self) -> int:
        """One."""
        return 1

    def associate(self, hypothesis: Hypothesis, context: RoundContext) -> Steps[Ranking]:
        """Associate without any request. See `bcfl.policies.Policy.associate`."""
        yield from ()
        labels = dict.fromkeys(context.participants, 0)
        return Ranking.only(
            candidate(hypothesis, labels, self.objective, num_samples=context.num_samples)
        )
