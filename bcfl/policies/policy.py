"""The policy protocol: rank the associations that may follow one hypothesis."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from fractions import Fraction
from reprlib import repr as shortened
from typing import Any, Protocol, runtime_checkable

import numpy as np
from numpy.typing import NDArray

from bcfl.hypotheses.association import Association
from bcfl.hypotheses.hypothesis import Hypothesis
from bcfl.hypotheses.posterior import Posterior
from bcfl.policies.capacity import FREE, ClusterSize
from bcfl.policies.context import RoundContext as RoundContext
from bcfl.policies.costs import Costs as Costs
from bcfl.policies.origins import Continue as Continue
from bcfl.policies.origins import Given as Given
from bcfl.policies.origins import Origin as Origin
from bcfl.policies.trainings import Work as Work
from bcfl.policies.trainings import cluster_shares as cluster_shares
from bcfl.policies.trainings import trainings as trainings
from bcfl.protocol.answers import Trained
from bcfl.protocol.objective import Objective
from bcfl.protocol.requests import Replies, Steps, Train
from bcfl.runtime import as_given, as_whole, nearest


@runtime_checkable
class Validates(Protocol):
    """A policy or tracker that checks its requirements before a run starts."""

    def check(self, num_clusters: int, num_clients: int, num_participants: int) -> None:
        """Check the requirements on a federation.

        Args:
            num_clusters: number of clusters at the start.
            num_clients: number of clients of the federation.
            num_participants: number of participants of a round.

        Raises:
            ValueError: they are not met.
        """
        ...


@dataclass(frozen=True, eq=False, kw_only=True)
class Candidate:
    """One association that may follow a hypothesis, with the local trainings that it requires.

    Attributes:
        association: serving cluster of each client.
        trainings: local trainings.
        contribution_weights: (trainings, clusters) weight of each local model in each cluster's
            model.
        origins: for each cluster, the model that it continues from.
        log_weight: log weight given the parent, above the ranking's reference, nats.
        answers: trainings that have been answered already.
        state: state that the policy carries on in the hypothesis.
        costs: the cost matrix that it was ranked by, if any.
        kind: kind of a proposal; empty for a ranked association.
        models: models that the trainings refer to and that are no clusters of the parent.
        carried_models: models that the policy carries on in the hypothesis, by name.
        partial: clusters move only by their share of all answered samples (CAM, equation 6).
        needs_cavities: whether the policy scores the next round by cavities.
        folds: number of folds of clients that cavities are cross-fitted in (see
            `bcfl.aggregation.crossfit`); 0 leaves out each client's contribution.
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
    needs_cavities: bool = False
    folds: int = 0

    @property
    def cluster_size(self) -> ClusterSize:
        """Bounds on the number of clients per cluster."""
        return FREE if self.costs is None else self.costs.cluster_size


@dataclass(frozen=True, eq=False)
class Ranking:
    """Associations that may follow one hypothesis, most probable first.

    Attributes:
        candidates: in descending order of weight; generated lazily and read once.
        log_total: log of the summed weight of all associations, above the reference, nats; NaN
            where unknown.
        facts: numbers that the policy logs, such as a fitted temperature.
        reference: log weight above which the candidates' are given, nats; exact, so that large
            losses common to all of a client's clusters leave no rounding errors in probabilities.
    """

    candidates: Iterable[Candidate]
    log_total: float = float("nan")
    facts: Mapping[str, float] = field(default_factory=dict)
    reference: Fraction = Fraction(0)

    def __iter__(self) -> Iterator[Candidate]:
        for each in self.candidates:
            if not isinstance(each, Candidate):
                raise TypeError(f"a ranking must hold bcfl.policies.candidate(...), got {each!r}")
            yield each

    @property
    def first(self) -> Candidate:
        """The most probable candidate; ValueError if there is none."""
        for each in self:
            return each
        raise ValueError("a policy must rank at least one association, got none")

    @classmethod
    def only(cls, candidate: Candidate) -> Ranking:
        """A single association, which holds all the weight."""
        return cls((candidate,), candidate.log_weight)


class Policy(Protocol):
    """Associates clients with clusters. A frozen dataclass of hyperparameters with one method.

    Example:
        All clients in one cluster, as in FedAvg. It needs no answers, so that nothing is yielded:

        >>> import bcfl
        >>> from dataclasses import dataclass
        >>> from bcfl.policies import Ranking, candidate
        >>> @dataclass(frozen=True)
        ... class Together:
        ...     num_clusters: int = 1
        ...     objective: bcfl.Objective = bcfl.Objective()
        ...
        ...     def associate(self, hypothesis, context):
        ...         labels = dict.fromkeys(context.participants, 0)
        ...         return Ranking.only(candidate(hypothesis, labels, self.objective))
        ...         yield  # makes it a generator

        With `clients` of the example of `bcfl.Federation`:

        >>> run = bcfl.Federation(clients, lambda: nn.Linear(2, 2), Together()).run(1)
        >>> run.hypotheses.best.association
        Association(4 clients, cluster sizes 4)
    """

    @property
    def num_clusters(self) -> int:
        """Number of clusters that the policy starts with."""
        ...

    @property
    def objective(self) -> Objective:
        """How the clients train."""
        ...

    def associate(self, hypothesis: Hypothesis, context: RoundContext) -> Steps[Ranking]:
        """Rank the associations that may follow a hypothesis.

        Args:
            hypothesis: the parent, with its cluster models and the state of the policy.
            context: read-only context of the round.

        Yields:
            Exchanges of requests; the generator is sent the replies to each.

        Returns:
            The associations, most probable first.
        """
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
        labels: cluster of each participant.
        objective: local objective.
        starts: key of the model that each client trains from; by default its cluster's.
        log_weight: log weight given the parent, nats.
        answers: trainings that have been answered already.
        num_samples: training samples of the clients, for objectives with regularisers.

    Returns:
        The candidate, for a `bcfl.policies.Ranking`.

    Raises:
        TypeError: the labels are no mapping, or the objective is no `Objective`.
        ValueError: an unknown client, or a cluster that is not a whole number or out of range.

    Example:
        With `federation` of the example of `bcfl.Federation`:

        >>> from bcfl.policies import candidate
        >>> parent = federation.initial_state().hypotheses.best
        >>> chosen = candidate(parent, {"ann": 0, "bob": 1}, bcfl.Objective())
        >>> chosen.association.by_client, len(chosen.trainings)
        ({'ann': 0, 'bob': 1}, 2)
    """
    if not isinstance(objective, Objective):
        raise TypeError(f"objective must be a bcfl.Objective, got {as_given(objective)}")
    keys = [posterior.key for posterior in parent.clusters]
    labels = _checked_labels(labels, parent.association, len(keys))
    clients = sorted(labels)
    contribution_weights = np.zeros((len(clients), len(keys)))
    contribution_weights[np.arange(len(clients)), [labels[client] for client in clients]] = 1.0
    by_client = starts or {client: keys[labels[client]] for client in clients}
    by_client = {client: by_client[client] for client in clients}
    work = trainings(parent, by_client, objective, num_samples)
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


def _checked_labels(
    labels: Mapping[str, int], association: Association, num_clusters: int
) -> dict[str, int]:
    if not isinstance(labels, Mapping):
        raise TypeError(
            "labels must be a mapping from client to cluster, such as "
            f"{ {association.clients[0]: 0} }, got {shortened(labels)}"
        )
    unknown = [client for client in labels if client not in association.position]
    if unknown:
        raise ValueError(
            f"labels name clients that are not there: {', '.join(map(repr, unknown[:5]))}."
            + nearest(unknown[0], association.clients)
        )
    checked = {}
    for client, label in labels.items():
        number = label if type(label) is int else as_whole(label)
        if number is None:
            raise ValueError(
                f"labels must be whole numbers from 0 to {num_clusters - 1}, got {label!r} for "
                f"{client!r}"
            )
        if not 0 <= number < num_clusters:
            raise ValueError(
                f"labels must lie between 0 and {num_clusters - 1}, got {number} for {client!r}"
            )
        checked[client] = number
    return checked


def answered(requests: Sequence[Train], replies: Replies) -> dict[Train, Trained]:
    """The trainings that were answered, with their local models.

    Args:
        requests: trainings.
        replies: answers of the exchange, by request.
    """
    return {request: replies[request] for request in requests if request in replies}
