"""What a policy is: given one hypothesis, rank the associations that may follow it."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any, Protocol, runtime_checkable

import numpy as np
from numpy.typing import NDArray

from bcfl.hypotheses.association import Association
from bcfl.hypotheses.hypothesis import Hypothesis
from bcfl.hypotheses.posterior import Posterior
from bcfl.policies.capacity import FREE, ClusterSize
from bcfl.policies.context import RoundContext as RoundContext
from bcfl.policies.trainings import Work as Work
from bcfl.policies.trainings import cluster_shares as cluster_shares
from bcfl.policies.trainings import trainings as trainings
from bcfl.protocol.answers import Trained
from bcfl.protocol.objective import Objective
from bcfl.protocol.requests import Replies, Steps, Train


@runtime_checkable
class Validates(Protocol):
    """A policy or tracker that cannot serve every federation, and says so before work starts."""

    def check(self, num_clusters: int, num_clients: int, num_asked: int) -> None:
        """Check what shows beforehand.

        Args:
            num_clusters: clusters at the start.
            num_clients: clients of the federation.
            num_asked: clients that are asked in a round.

        Raises:
            ValueError: it cannot serve such a federation.
        """
        ...


class Origin(Protocol):
    """Where a new cluster's model comes from."""

    def posterior(self, parent: Hypothesis) -> Posterior:
        """The model that the cluster continues from."""
        ...


@dataclass(frozen=True)
class Continue:
    """The cluster goes on from cluster `index` of the parent hypothesis."""

    index: int

    def posterior(self, parent: Hypothesis) -> Posterior:
        """The parent's posterior of that cluster."""
        return parent.clusters[self.index]


@dataclass(frozen=True, eq=False)
class Given:
    """The cluster goes on from a model that the policy made, such as a fresh or a merged one.

    Attributes:
        model: that model.
    """

    model: Posterior

    def posterior(self, parent: Hypothesis) -> Posterior:
        """The model itself."""
        del parent
        return self.model


@dataclass(frozen=True, eq=False)
class Costs:
    """The cost matrix behind a ranking.

    Attributes:
        clients: names of the rows.
        values: (clients, clusters) negative log weight of each client in each cluster, nats.
        cluster_size: bounds on the number of clients per cluster.
        judged: (clients, clusters) the same by which hypotheses compete, where that differs, such
            as by held-out samples.
    """

    clients: tuple[str, ...]
    values: NDArray[np.float64]
    cluster_size: ClusterSize = FREE
    judged: NDArray[np.float64] | None = None

    @property
    def competing(self) -> NDArray[np.float64]:
        """(clients, clusters) negative log weights by which hypotheses compete, nats."""
        return self.values if self.judged is None else self.judged


@dataclass(frozen=True, eq=False)
class Candidate:
    """One association that may follow a hypothesis, and the work that would make it true.

    Attributes:
        association: whose model each client uses from now on.
        trainings: local trainings to do.
        contribution_weights: (trainings, clusters) weight of each training in
            each cluster's model.
        origins: for each cluster, the model that it continues from.
        log_weight: log weight given the parent, nats, not normalised.
        answers: trainings that the policy has already had answered.
        state: what the policy wants to find in the hypothesis next time.
        costs: the cost matrix that it was ranked by, where there is one.
        kind: how a proposal was made; empty for a ranked association.
        models: models that the trainings name and that are no clusters of the parent.
        carried_models: models that the policy wants to find in the hypothesis next time, by name.
        partial: the clusters move only by the share of all answered samples that feeds them.
    """

    association: Association
    trainings: tuple[Train, ...]
    contribution_weights: NDArray[np.float64]
    origins: tuple[Origin, ...]
    log_weight: float = 0.0
    answers: Mapping[Train, Trained] = field(default_factory=dict)
    state: Mapping[str, Any] = field(default_factory=dict)
    costs: Costs | None = None
    kind: str = ""
    models: tuple[Posterior, ...] = ()
    carried_models: Mapping[str, Posterior] = field(default_factory=dict)
    partial: bool = False

    @property
    def cluster_size(self) -> ClusterSize:
        """Bounds on the number of clients per cluster."""
        return FREE if self.costs is None else self.costs.cluster_size


@dataclass(frozen=True, eq=False)
class Ranking:
    """Associations that may follow one hypothesis, most probable first.

    Attributes:
        candidates: lazily made, in order of falling weight; read once.
        log_total: log of the summed weight of all associations, nats; NaN where unknown.
        facts: numbers that the policy wants to see logged, such as a fitted temperature.
    """

    candidates: Iterable[Candidate]
    log_total: float = float("nan")
    facts: Mapping[str, float] = field(default_factory=dict)

    def __iter__(self) -> Iterator[Candidate]:
        return iter(self.candidates)

    @classmethod
    def only(cls, candidate: Candidate) -> Ranking:
        """The policy knows of one association alone."""
        return cls((candidate,), candidate.log_weight)


class Policy(Protocol):
    """Associates clients with clusters. A frozen dataclass of hyperparameters with one method."""

    @property
    def num_clusters(self) -> int:
        """Number of clusters that the policy starts with."""
        ...

    @property
    def objective(self) -> Objective:
        """How the clients train."""
        ...

    def associate(self, hypothesis: Hypothesis, context: RoundContext) -> Steps[Ranking]:
        """Yield requests, receive replies, and return the associations that may follow."""
        ...


def candidate(  # noqa: PLR0913 - keywords with defaults
    parent: Hypothesis,
    labels: Mapping[str, int],
    objective: Objective,
    *,
    starts: Mapping[str, str] | None = None,
    log_weight: float = 0.0,
    answers: Mapping[Train, Trained] | None = None,
    num_samples: Mapping[str, int] | None = None,
) -> Candidate:
    """The usual candidate: each client trains for, and is served by, one cluster.

    Args:
        parent: hypothesis that the association follows.
        labels: cluster of each client that takes part.
        objective: local objective.
        starts: key of the model that each client trains from; by default its cluster's.
        log_weight: log weight given the parent, nats.
        answers: trainings that were already answered.
        num_samples: training samples of the clients, for objectives with terms.

    Raises:
        ValueError: a client or a cluster that is not there.
    """
    clients = sorted(labels)
    keys = [posterior.key for posterior in parent.clusters]
    unknown = [repr(client) for client in clients if client not in parent.association.position]
    if unknown:
        raise ValueError(f"labels name clients that are not there: {', '.join(unknown[:5])}")
    for client, label in labels.items():
        if not 0 <= label < len(keys):
            raise ValueError(
                f"labels must lie between 0 and {len(keys) - 1}, got {label} for {client!r}"
            )
    contribution_weights = np.zeros((len(clients), len(keys)))
    contribution_weights[np.arange(len(clients)), [labels[client] for client in clients]] = 1.0
    begun = starts or {client: keys[labels[client]] for client in clients}
    begun = {client: begun[client] for client in clients}
    work = trainings(parent, begun, objective, num_samples)
    return Candidate(
        association=parent.association.updated(labels),
        trainings=work.requests,
        contribution_weights=contribution_weights,
        origins=tuple(Continue(index) for index in range(len(keys))),
        log_weight=log_weight,
        answers=answers or {},
        state=parent.state,
        models=work.models,
        carried_models=parent.carried_models,
    )


def answered(requests: Sequence[Train], replies: Replies) -> dict[Train, Trained]:
    """The trainings among `requests` that were answered."""
    return {request: replies[request] for request in requests if request in replies}
