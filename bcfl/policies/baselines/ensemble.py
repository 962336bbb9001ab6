"""Ensembles of K models without clusters: FedAvg+ and FedProx+ (CAM, section 5.1)."""

from __future__ import annotations

from dataclasses import dataclass, replace

import numpy as np

from bcfl.hypotheses.association import UNSEEN, Association
from bcfl.hypotheses.hypothesis import Hypothesis
from bcfl.policies.context import RoundContext
from bcfl.policies.policy import Candidate, Continue, Ranking
from bcfl.policies.trainings import trainings
from bcfl.protocol.objective import Objective
from bcfl.protocol.requests import Steps
from bcfl.runtime import check_whole


@dataclass(frozen=True)
class Ensemble:
    """K independent models; each client trains all of them and is served by their mean prediction.

    The storage and training of K cluster models, without clusters.

    Attributes:
        num_clusters: number of models.
        objective: local objective.
    """

    num_clusters: int
    objective: Objective

    def __post_init__(self) -> None:
        check_whole("num_clusters", self.num_clusters)

    def associate(self, hypothesis: Hypothesis, context: RoundContext) -> Steps[Ranking]:
        """Associate without any request. See `bcfl.policies.Policy.associate`."""
        yield from ()
        work = [
            trainings(
                hypothesis,
                dict.fromkeys(context.participants, posterior.key),
                self.objective,
                context.num_samples,
            )
            for posterior in hypothesis.clusters
        ]
        count = len(context.participants)
        association = _served_by_all(hypothesis.association, context.participants)
        chosen = Candidate(
            association=association,
            trainings=tuple(request for model_work in work for request in model_work.requests),
            contribution_weights=np.repeat(np.eye(self.num_clusters), count, axis=0),
            origins=tuple(Continue(index) for index in range(self.num_clusters)),
            models=tuple(model for model_work in work for model in model_work.models),
        )
        return Ranking.only(
            replace(chosen, state=hypothesis.state, carried_models=hypothesis.carried_models)
        )


def _served_by_all(association: Association, clients: tuple[str, ...]) -> Association:
    """The association in which the given clients too are served by all clusters equally."""
    seen = association.labels != UNSEEN
    seen[[association.position[client] for client in clients]] = True
    count = association.num_clusters
    soft = np.where(seen[:, None], 1.0 / count, 0.0) * np.ones((1, count))
    return Association(association.clients, np.where(seen, 0, UNSEEN), count, soft)
