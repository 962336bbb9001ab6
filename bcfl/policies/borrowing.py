"""Clusters that borrow from clients of other clusters, as far as their evidence gains from it.

Directed support as FAACL has it ("Asymmetric clustering in federated continual learning", chapter
3), without tests on held-out samples: what a client of another cluster contributes is weighed by
the power prior.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from dataclasses import dataclass, replace

import numpy as np
from numpy.typing import NDArray

from bcfl.hypothesis import Hypothesis
from bcfl.model import Model
from bcfl.policies.following import Following
from bcfl.policies.joint import Expansions
from bcfl.policies.policy import Candidate, Policy, Ranking, RoundContext, trainings
from bcfl.policies.power_prior import Expansion, borrowing_gains, expected_power
from bcfl.requests import EvidenceSum, Exchange, Objective, Score, Steps, Train

POWERS = (0.0, 0.01, 0.03, 0.1, 0.3, 1.0)
"""Far below 1 too: a hundredth of many samples may outweigh a cluster's own."""


@dataclass(frozen=True)
class BorrowingClusters(Following):
    """Follow another policy; clients also feed clusters of others, by a fractional weight.

    In each association of the policy the weight of client j in cluster i that it does not belong
    to is the expected power of its likelihood in the prior of cluster i, given the evidence of the
    cluster's own clients. Weights of the association itself are unchanged, and so is who is served
    by whom. Gradients and curvatures are diagonal, at the cluster's model.

    Attributes:
        policy: associates the clients.
        temperature: divides log-likelihoods; 1 is Bayes. Far above 1 all powers become equally
            probable, and opposed clients are lent to one another.
        smallest: weights below this are not worth a training.
        samples: samples per client behind gradient and curvature; None takes all.
    """

    policy: Policy
    temperature: float = 1.0
    smallest: float = 0.01
    samples: int | None = None

    def __post_init__(self) -> None:
        if not 0 < self.temperature < float("inf"):
            raise ValueError(f"temperature must be positive and finite, got {self.temperature}")
        if not 0 < self.smallest <= 1:
            raise ValueError(f"smallest must lie above 0 and at most at 1, got {self.smallest}")
        if self.samples is not None and self.samples < 1:
            raise ValueError(f"samples must be at least 1 or None, got {self.samples}")

    def associate(self, hypothesis: Hypothesis, context: RoundContext) -> Steps[Ranking]:
        """Let the policy rank, ask for gradients and curvatures, and widen its candidates."""
        ranking = yield from self.policy.associate(hypothesis, context)
        keys = tuple(dict.fromkeys(posterior.key for posterior in hypothesis.clusters))
        asked = [
            Score(client, keys, "evidence", samples=self.samples) for client in context.participants
        ]
        replies = yield Exchange.of(asked, hypothesis.clusters)
        expansions = {score.client: replies[score] for score in asked if score in replies}
        lending = Lending(hypothesis, context.model, expansions, self.temperature)

        def widened() -> Iterator[Candidate]:
            for one in ranking:
                weights = lending.weights(one, self.smallest)
                yield with_borrowed(hypothesis, one, weights, self.objective, context)

        return replace(ranking, candidates=widened())


Weights = Mapping[tuple[str, int], float]
"""Weight of a client in a cluster that it does not belong to."""


class Lending:
    """What clusters of one hypothesis should borrow; each set of members is weighed once."""

    def __init__(
        self, parent: Hypothesis, model: Model, expansions: Expansions, temperature: float
    ) -> None:
        self._keys = [posterior.key for posterior in parent.clusters]
        precisions = [posterior.prior_precision(model) for posterior in parent.clusters]
        self._precisions = [p.double().cpu().numpy() for p in precisions]
        self._expansions = expansions
        self._temperature = temperature
        self._known: dict[tuple[int, tuple[str, ...]], dict[str, float]] = {}

    def weights(self, candidate: Candidate, smallest: float) -> Weights:
        """Weights of at least `smallest`, by client and cluster."""
        found: dict[tuple[str, int], float] = {}
        for index in range(len(self._keys)):
            pairs = zip(candidate.trainings, candidate.feeds[:, index], strict=True)
            members = tuple(sorted({training.client for training, feed in pairs if feed > 0}))
            for client, weight in self._of_cluster(index, members).items():
                if weight >= smallest:
                    found[client, index] = weight
        return found

    def _of_cluster(self, index: int, members: tuple[str, ...]) -> dict[str, float]:
        """Weight of every client that is no member; nobody lends to a cluster without members."""
        if (index, members) not in self._known:
            own = [
                self._expansion(client, index) for client in members if client in self._expansions
            ]
            others = sorted(set(self._expansions) - set(members)) if own else []
            total = sum(g for g, _ in own), sum(h for _, h in own)
            self._known[index, members] = {
                client: self._weight(index, total, client)  # type: ignore[arg-type]
                for client in others
            }
        return self._known[index, members]

    def _weight(self, index: int, own: Expansion, client: str) -> float:
        other = self._expansion(client, index)
        gains = borrowing_gains(own, other, self._precisions[index], POWERS)
        return expected_power(gains, POWERS)

    def _expansion(self, client: str, index: int) -> Expansion:
        one: EvidenceSum = self._expansions[client][self._keys[index]]
        parts: list[NDArray[np.float64]] = [
            part.double().cpu().numpy() / self._temperature
            for part in (one.gradient, one.curvature)
        ]
        return parts[0], parts[1]


def with_borrowed(
    parent: Hypothesis,
    candidate: Candidate,
    weights: Weights,
    objective: Objective,
    context: RoundContext,
) -> Candidate:
    """The candidate with additional trainings, which feed clusters by fractional weights.

    Args:
        parent: hypothesis that it follows.
        candidate: an association with its trainings.
        weights: of clients in clusters that they do not belong to.
        objective: local objective.
        context: the round.
    """
    rows: dict[Train, NDArray[np.float64]] = {
        training: feed.copy()
        for training, feed in zip(candidate.trainings, candidate.feeds, strict=True)
    }
    models = list(candidate.models)
    for index, origin in enumerate(candidate.origins):
        start = origin.posterior(parent).key
        starts = {client: start for client, cluster in sorted(weights) if cluster == index}
        work = trainings(parent, starts, objective, context.num_samples)
        models += work.models
        for request in work.requests:
            row = rows.setdefault(request, np.zeros(len(candidate.origins)))
            row[index] = weights[request.client, index]
    return replace(
        candidate,
        trainings=tuple(rows),
        feeds=np.array(list(rows.values())).reshape(len(rows), len(candidate.origins)),
        models=tuple(models),
        state={
            **candidate.state,
            "borrowed": [[client, index, w] for (client, index), w in sorted(weights.items())],
        },
    )
