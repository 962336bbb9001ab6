"""Local updates of one round: trained parameters minus the cluster model."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from functools import cached_property

import numpy as np
from numpy.typing import NDArray

from bcfl.architecture.model import Model
from bcfl.hypotheses.hypothesis import Hypothesis
from bcfl.hypotheses.posterior import Posterior
from bcfl.policies.context import RoundContext
from bcfl.policies.policy import Candidate, answered, candidate
from bcfl.policies.trainings import trainings
from bcfl.policies.updates.update_similarity import inner_products
from bcfl.protocol.answers import Trained
from bcfl.protocol.objective import Objective
from bcfl.protocol.requests import Exchange, Steps, Train


@dataclass(frozen=True, eq=False, kw_only=True)
class LocalUpdates:
    """Local updates of the clients of a round, each from the model of its cluster.

    Attributes:
        hypothesis: holds the models that they trained from.
        model: the architecture.
        labels: cluster of each client that answered, in the order of their names.
        answers: their trainings, in that order.
        num_samples: training samples of the participants.
    """

    hypothesis: Hypothesis
    model: Model
    labels: Mapping[str, int]
    answers: Mapping[Train, Trained]
    num_samples: Mapping[str, int]

    def __len__(self) -> int:
        return len(self.labels)

    @property
    def clients(self) -> list[str]:
        """Names of the clients that answered, sorted."""
        return list(self.labels)

    @property
    def clusters(self) -> NDArray[np.int64]:
        """(clients,) cluster of each client."""
        return np.array(list(self.labels.values()), dtype=np.int64)

    @cached_property
    def products(self) -> NDArray[np.float64]:
        """(clients, clients) inner products of the updates."""
        starts = {p.key: p.mean(self.model) for p in self.hypothesis.clusters}
        return inner_products(
            [starts[training.start] for training in self.answers],
            [reply.mean for reply in self.answers.values()],
        )

    def products_since(self, model: Posterior) -> NDArray[np.float64]:
        """(clients, clients) inner products of the clients' changes since one model."""
        start = model.mean(self.model)
        ends = [reply.mean for reply in self.answers.values()]
        return inner_products([start] * len(ends), ends)

    def candidate(self, objective: Objective) -> Candidate:
        """The association in which each client stays in the cluster that it trained in."""
        return candidate(
            self.hypothesis,
            self.labels,
            objective,
            answers=self.answers,
            num_samples=self.num_samples,
        )


def local_updates(
    hypothesis: Hypothesis,
    labels: Mapping[str, int],
    objective: Objective,
    context: RoundContext,
) -> Steps[LocalUpdates]:
    """Train clients, each from the model of its cluster.

    Args:
        hypothesis: holds the cluster models.
        labels: cluster of each client that trains.
        objective: local objective.
        context: read-only context of the round.
    """
    keys = [posterior.key for posterior in hypothesis.clusters]
    starts = {client: keys[labels[client]] for client in sorted(labels)}
    work = trainings(hypothesis, starts, objective, context.num_samples)
    replies = yield Exchange.of(work.requests, (*hypothesis.clusters, *work.models))
    answers = answered(work.requests, replies)
    answering = {training.client: labels[training.client] for training in answers}
    return LocalUpdates(
        hypothesis=hypothesis,
        model=context.model,
        labels=answering,
        answers=answers,
        num_samples=context.num_samples,
    )
