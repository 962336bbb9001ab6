"""Centralised training on pooled samples: the upper reference of federations with one model."""

from __future__ import annotations

from dataclasses import dataclass, replace

import numpy as np

from bcfl.data.clients import POOL
from bcfl.hypotheses.hypothesis import Hypothesis
from bcfl.policies.context import RoundContext
from bcfl.policies.policy import Candidate, Continue, Ranking
from bcfl.protocol.objective import Objective
from bcfl.protocol.requests import Steps, Train


@dataclass(frozen=True)
class Centralised:
    """One model, trained on the pooled samples of all clients.

    Each round takes as many steps as the participants of a federation take together.

    Attributes:
        objective: objective of one client.
    """

    objective: Objective

    @property
    def num_clusters(self) -> int:
        """One."""
        return 1

    def associate(self, hypothesis: Hypothesis, context: RoundContext) -> Steps[Ranking]:
        """Associate without any request. See `Policy.associate`."""
        yield from ()
        steps = self.objective.local_steps * len(context.participants)
        training = Train(
            POOL, hypothesis.clusters[0].key, replace(self.objective, local_steps=max(steps, 1))
        )
        labels = dict.fromkeys(context.participants, 0)
        chosen = Candidate(
            association=hypothesis.association.updated(labels),
            trainings=(training,),
            contribution_weights=np.ones((1, 1)),
            origins=(Continue(0),),
            state=hypothesis.state,
        )
        return Ranking.only(chosen)
