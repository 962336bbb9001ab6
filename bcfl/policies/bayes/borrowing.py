"""Clusters that borrow from clients of other clusters, as far as their evidence gains from it.

Directed support as FAACL has it ("Asymmetric clustering in federated continual learning", chapter
3), without tests on held-out samples: what a client of another cluster contributes is weighed by
the power prior.
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
        own: of the data whose evidence counts.
        other: of the data that may be borrowed.
        prior_precision: (parameters,) of the prior.
        powers: at least 0; power 0 gains nothing.

    Returns:
        (powers,) gains.
    """
    gradient, curvature = own
    alone = quadratic_log_evidence(0.0, gradient, curvature, prior_precision)
    gains = []
    for power in powers:
        slope, bend = power * other[0], power * other[1]
        both = quadratic_log_evidence(0.0, gradient + slope, curvature + bend, prior_precision)
        lent = quadratic_log_evidence(0.0, slope, bend, prior_precision)
        gains.append(float(both - lent - alone))
    return np.array(gains)


def expected_power(gains: NDArray[np.float64], powers: Sequence[float]) -> float:
    """The posterior mean of the power, when all powers are equally probable beforehand.

    Args:
        gains: (powers,) log evidence for each power, nats.
        powers: the powers.
    """
    shares = np.exp(gains - np.logaddexp.reduce(gains))
    return float(shares @ np.asarray(powers))


POWERS = (0.0, 0.01, 0.03, 0.1, 0.3, 1.0)
"""Far below 1 too: a hundredth of many samples may outweigh a cluster's own."""


@dataclass(frozen=True)
class AsymmetricBCFL(PolicyWrapper):
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
            Score(client, keys, Evidence(), samples=self.samples) for client in context.participants
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
    """What clusters of one hypothesis should borrow; each set of members is weighed once.

    Gains come from quadratic expansions at a cluster's model, which know nothing of what lies far
    from it: where a network is sure of its members' samples it has no curvature, and every
    direction seems free. What the members would lose at the model of the client's own cluster is
    known. For a convex loss, a share of the way there costs them that share of it at most, which is
    taken off the gain. With power p the client's samples are p n of (members' samples + p n), and
    pull the model as far; the share is p at least, since others lend beside it.
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
        """Weights of at least `smallest`, by client and cluster.

        Clusters that do not continue one of the parent's, which nobody was asked about, borrow
        nothing.
        """
        found: dict[tuple[str, int], float] = {}
        keys = [origin.posterior(self._parent).key for origin in candidate.origins]
        for index, key in enumerate(keys):
            pairs = zip(candidate.trainings, candidate.contribution_weights[:, index], strict=True)
            fed = {training.client for training, feed in pairs if feed > 0}
            members = tuple(sorted(fed & set(self._expansions)))
            for client, gains in self._gains(key, members).items():
                label = candidate.association.label(client)
                other = key if label == UNSEEN else keys[label]
                price = self._way(key, client, members) * self._lost(key, other, members)
                weight = expected_power(gains - price, POWERS)
                if weight >= smallest:
                    found[client, index] = weight
        return found

    def _gains(self, key: str, members: tuple[str, ...]) -> Mapping[str, NDArray[np.float64]]:
        """Gain for each power of every client that is no member; no members, nobody lends."""
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

    def _lost(self, key: str, other: str, members: Sequence[str]) -> float:
        """Nats that members lose at another cluster's model; 0 where they lose nothing."""
        if other not in self._precisions:
            return 0.0
        here, there = (
            sum(self._expansions[client][model].log_likelihood for client in members)
            for model in (key, other)
        )
        return max(0.0, here - there) / self._temperature

    def _way(self, key: str, client: str, members: Sequence[str]) -> NDArray[np.float64]:
        """(powers,) share of the way to a client's optimum, at most, that a cluster is pulled."""
        powers = np.array(POWERS)
        own = sum(self._expansions[member][key].num_samples for member in members)
        lent = powers * self._expansions[client][key].num_samples
        share: NDArray[np.float64] = np.maximum(powers, lent / np.maximum(own + lent, 1))
        return share

    def _expansion(self, client: str, key: str) -> Expansion:
        one: EvidenceSum = self._expansions[client][key]
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
        for training, feed in zip(candidate.trainings, candidate.contribution_weights, strict=True)
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
