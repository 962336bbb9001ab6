"""Asymmetric BCFL: clusters borrow strength from clients of other clusters by power priors.

A client of another cluster contributes with a fractional power of its likelihood (power prior;
Ibrahim and Chen, 2000), inferred from the evidence of the cluster's own clients. This is directed
support as in FAACL ("Asymmetric clustering in federated continual learning", chapter 3), without
tests on held-out samples.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, replace

import numpy as np
from numpy.typing import NDArray

from bcfl.architecture.model import Model
from bcfl.hypotheses.association import UNSEEN
from bcfl.hypotheses.hypothesis import Hypothesis
from bcfl.policies.bayes.joint import Expansions
from bcfl.policies.context import RoundContext
from bcfl.policies.policy import Candidate, Policy, Ranking
from bcfl.policies.trainings import trainings
from bcfl.policies.wrappers.policy_wrapper import PolicyWrapper
from bcfl.protocol.objective import Objective
from bcfl.protocol.requests import Exchange, Score, Steps, Train
from bcfl.protocol.statistics.evidence import Evidence, EvidenceSum
from bcfl.runtime import check_whole
from posteriors import quadratic_log_evidence

Expansion = tuple[NDArray[np.float64], NDArray[np.float64]]
"""Gradient and curvature (parameters,) of a summed log-likelihood at the prior's mean."""


def borrowing_gains(
    own: Expansion,
    other: Expansion,
    prior_precision: NDArray[np.float64],
    powers: Sequence[float],
) -> NDArray[np.float64]:
    """Gain of the own data's log evidence from other data, for each power, nats.

    log p(own | other^power, prior) - log p(own | prior), where p(own | other^power, prior) is the
    evidence of both over that of the other data alone. With log-likelihoods that are quadratic
    around the prior's mean it is exact.

    Args:
        own: gradient and curvature of the data whose evidence counts.
        other: gradient and curvature of the data that may be borrowed.
        prior_precision: (parameters,) precision of the prior.
        powers: at least 0; power 0 gains nothing.

    Returns:
        float64 of shape (powers,), nats.
    """
    gradient, curvature = own
    alone = quadratic_log_evidence(0.0, gradient, curvature, prior_precision)
    gains = []
    for power in powers:
        extra = power * other[0], power * other[1]
        both = quadratic_log_evidence(
            0.0, gradient + extra[0], curvature + extra[1], prior_precision
        )
        borrowed = quadratic_log_evidence(0.0, *extra, prior_precision)
        gains.append(float(both - borrowed - alone))
    return np.array(gains)


def expected_power(gains: NDArray[np.float64], powers: Sequence[float]) -> float:
    """Posterior mean of the power under a uniform prior on the given powers.

    Args:
        gains: (powers,) log evidence for each power, nats.
        powers: the powers.
    """
    shares = np.exp(gains - np.logaddexp.reduce(gains))
    return float(shares @ np.asarray(powers))


POWERS = (0.0, 0.01, 0.03, 0.1, 0.3, 1.0)
"""Grid of powers; small ones matter, since 1 % of many samples may outweigh a cluster's own."""


@dataclass(frozen=True)
class AsymmetricBCFL(PolicyWrapper):
    """Wrap a policy; clients also contribute to other clusters' models, by fractional weights.

    The weight of client j in a cluster i that it does not belong to is the expected power of its
    likelihood in the prior of cluster i, given the evidence of the cluster's own clients.
    Association weights and serving are unchanged. Gradients and diagonal curvatures are taken at
    the cluster's model.

    Attributes:
        policy: associates the clients.
        temperature: divides log-likelihoods; 1 is Bayes. Far above 1 all powers become equally
            probable, and clients with conflicting gradients contribute to each other's clusters.
        smallest: smallest weight for which a client trains.
        samples: samples per client from which gradient and curvature are computed; None is all.
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
        if self.samples is not None:
            check_whole("samples", self.samples, other=" or None")

    @property
    def asks(self) -> dict[str, str]:
        """Statistics that clients are asked for besides losses; no option avoids them."""
        return {Evidence.name: ""}

    def associate(self, hypothesis: Hypothesis, context: RoundContext) -> Steps[Ranking]:
        """Rank by the policy, then add borrowed trainings. See `bcfl.policies.Policy.associate`."""
        ranking = yield from self.policy.associate(hypothesis, context)
        keys = tuple(dict.fromkeys(posterior.key for posterior in hypothesis.clusters))
        scores = [
            Score(client=client, models=keys, statistic=Evidence(), samples=self.samples)
            for client in context.participants
        ]
        replies = yield Exchange.of(scores, hypothesis.clusters)
        expansions = {score.client: replies[score] for score in scores if score in replies}
        borrowing = Borrowing(hypothesis, context.model, expansions, self.temperature)

        def extended() -> Iterator[Candidate]:
            for candidate in ranking:
                weights = borrowing.weights(candidate, self.smallest)
                yield with_borrowed(hypothesis, candidate, weights, self.objective, context)

        return replace(ranking, candidates=extended())


Weights = Mapping[tuple[str, int], float]
"""Weight of a client in a cluster that it does not belong to."""


class Borrowing:
    """Powers with which clients contribute to other clusters of one hypothesis.

    Gains come from quadratic expansions at a cluster's model and are only locally valid: a network
    that is confident on its members' samples has almost no curvature there. The members' loss at
    the model of the client's own cluster bounds what is lost further away: for a convex loss, a
    share of the way there costs at most that share of the loss, which is subtracted from the gain.
    With power p, n samples of the client pull the model by p n / (members' samples + p n), and at
    least by p, since several clients may contribute. Each set of members is evaluated once.
    """

    def __init__(
        self, parent: Hypothesis, model: Model, expansions: Expansions, temperature: float
    ) -> None:
        self._parent = parent
        self._precisions = {
            cluster.key: cluster.prior_precision(model).double().cpu().numpy()
            for cluster in parent.clusters
        }
        self._expansions = expansions
        self._temperature = temperature
        self._known: dict[tuple[str, tuple[str, ...]], Mapping[str, NDArray[np.float64]]] = {}

    def weights(self, candidate: Candidate, smallest: float) -> Weights:
        """Weights of clients in clusters that they do not belong to.

        Clusters that do not continue one of the parent's have no scores and borrow nothing.

        Args:
            candidate: association of all clients.
            smallest: smallest weight that is returned.

        Returns:
            Weights in (0, 1], by client and cluster.
        """
        weights: dict[tuple[str, int], float] = {}
        keys = [origin.posterior(self._parent).key for origin in candidate.origins]
        for index, key in enumerate(keys):
            pairs = zip(candidate.trainings, candidate.contribution_weights[:, index], strict=True)
            contributors = {training.client for training, weight in pairs if weight > 0}
            members = tuple(sorted(contributors & set(self._expansions)))
            for client, gains in self._gains(key, members).items():
                label = candidate.association.label(client)
                other = key if label == UNSEEN else keys[label]
                loss = self._pull_share(key, client, members) * self._loss(key, other, members)
                weight = expected_power(gains - loss, POWERS)
                if weight >= smallest:
                    weights[client, index] = weight
        return weights

    def _gains(self, key: str, members: tuple[str, ...]) -> Mapping[str, NDArray[np.float64]]:
        """Gain for each power of each client that is no member; empty without members."""
        if not members or key not in self._precisions:
            return {}
        if (key, members) not in self._known:
            own = [self._expansion(client, key) for client in members]
            total = np.sum([g for g, _ in own], axis=0), np.sum([h for _, h in own], axis=0)
            self._known[key, members] = {
                client: borrowing_gains(
                    total, self._expansion(client, key), self._precisions[key], POWERS
                )
                for client in sorted(set(self._expansions) - set(members))
            }
        return self._known[key, members]

    def _loss(self, key: str, other: str, members: Sequence[str]) -> float:
        """Rise of the members' summed loss at another cluster's model, nats, at least 0."""
        if other not in self._precisions:
            return 0.0
        own_model, other_model = (
            sum(self._expansions[client][model].log_likelihood for client in members)
            for model in (key, other)
        )
        return max(0.0, own_model - other_model) / self._temperature

    def _pull_share(self, key: str, client: str, members: Sequence[str]) -> NDArray[np.float64]:
        """(powers,) bound on the share of the way to a client's optimum that a model is pulled."""
        powers = np.array(POWERS)
        own = sum(self._expansions[member][key].num_samples for member in members)
        borrowed = powers * self._expansions[client][key].num_samples
        share: NDArray[np.float64] = np.maximum(powers, borrowed / np.maximum(own + borrowed, 1))
        return share

    def _expansion(self, client: str, key: str) -> Expansion:
        evidence: EvidenceSum = self._expansions[client][key]
        gradient: NDArray[np.float64] = evidence.gradient.double().cpu().numpy()
        curvature: NDArray[np.float64] = evidence.curvature.double().cpu().numpy()
        return gradient / self._temperature, curvature / self._temperature


def with_borrowed(
    parent: Hypothesis,
    candidate: Candidate,
    weights: Weights,
    objective: Objective,
    context: RoundContext,
) -> Candidate:
    """The candidate with additional trainings, which contribute by fractional weights.

    Args:
        parent: hypothesis that it follows.
        candidate: an association with its trainings.
        weights: weight of clients in clusters that they do not belong to, by client and cluster.
        objective: local objective.
        context: read-only context of the round.
    """
    rows: dict[Train, NDArray[np.float64]] = {
        training: row.copy()
        for training, row in zip(candidate.trainings, candidate.contribution_weights, strict=True)
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
        contribution_weights=np.array(list(rows.values())).reshape(
            len(rows), len(candidate.origins)
        ),
        models=tuple(models),
        state={
            **candidate.state,
            "borrowed": [[client, index, w] for (client, index), w in sorted(weights.items())],
        },
    )
