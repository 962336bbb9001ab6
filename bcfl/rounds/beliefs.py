"""What is believed of associations after a round: exact marginals of scores that clients report.

A policy that ranks associations by costs may state a belief of its own (see `Costs`). For every
other, clients score the new cluster models in one exchange, each under the cavity of the cluster
that it trained, and their posterior memberships are recorded. The exchange follows the round, so
that neither training nor later rounds depend on it.
"""

from __future__ import annotations

from collections.abc import Collection, Mapping, Sequence
from dataclasses import replace

import numpy as np
from numpy.typing import NDArray

from bcfl.architecture.model import Model
from bcfl.hypotheses.association import UNSEEN
from bcfl.hypotheses.hypothesis import Hypothesis, HypothesisSet
from bcfl.hypotheses.posterior import Posterior
from bcfl.policies.capacity import ClusterSize
from bcfl.policies.policy import Costs
from bcfl.policies.ranking import membership_probabilities
from bcfl.protocol.requests import Exchange, Score, Steps, loss_matrix
from bcfl.protocol.statistics.loss import LossSum
from posteriors import log_association_weight
from posteriors.evidence.closed_form import Temperature

MAX_CAVITY_PARAMETERS = 2**28
"""Parameters of all cavities, above which clusters themselves are scored."""


def fits_cavities(model: Model, num_clients: int, num_hypotheses: int) -> bool:
    """Whether all cavities are small enough to be held at once.

    Args:
        model: the architecture.
        num_clients: one cavity for each, in each hypothesis.
        num_hypotheses: hypotheses that compete.
    """
    return model.layout.num_parameters * num_clients * num_hypotheses <= MAX_CAVITY_PARAMETERS


def with_beliefs(
    hypotheses: HypothesisSet,
    clients: Collection[str],
    temperature: Temperature,
    cluster_size: ClusterSize,
) -> Steps[HypothesisSet]:
    """Record the belief of each hypothesis that has none of its own.

    The membership of a client is the posterior under a uniform prior, given its summed loss over
    the temperature in each cluster; in the cluster which it trained in this round it is scored by
    the cavity where that is known, and in-sample otherwise. Clients that do not answer keep their
    association.

    Args:
        hypotheses: after the round.
        clients: names of those that are asked, if they are associated.
        temperature: divides the losses; `"mean"` divides them by the number of samples.
        cluster_size: bounds on the number of clients per cluster.

    Returns:
        The hypotheses with their beliefs.
    """
    lacking = [h for h in hypotheses if has_unknown_membership(h)]
    models = [_models(hypothesis, clients) for hypothesis in lacking]
    requests = _requests(models)
    needed = (posterior for rows in models for row in rows.values() for posterior in row)
    replies = (yield Exchange.of(requests.values(), needed)) if requests else {}
    scores = {client: replies[r] for client, r in requests.items() if r in replies}
    beliefs = {
        id(hypothesis): _belief(hypothesis, rows, scores, temperature, cluster_size)
        for hypothesis, rows in zip(lacking, models, strict=True)
    }
    believed = [
        replace(h, belief=beliefs[id(h)], belief_recorded=True) if id(h) in beliefs else h
        for h in hypotheses.hypotheses
    ]
    return replace(hypotheses, hypotheses=tuple(believed))


def without_unused_cavities(hypotheses: HypothesisSet) -> HypothesisSet:
    """The hypotheses without cavities by which their policy does not score."""

    def kept(hypothesis: Hypothesis) -> Hypothesis:
        spare = hypothesis.cavities and not hypothesis.scored_by_cavities
        return replace(hypothesis, cavities={}) if spare else hypothesis

    return replace(
        hypotheses,
        hypotheses=tuple(map(kept, hypotheses.hypotheses)),
        proposals=tuple(map(kept, hypotheses.proposals)),
    )


def has_unknown_membership(hypothesis: Hypothesis) -> bool:
    """Whether a hypothesis puts clients in clusters that they share, and states no belief.

    With one cluster, or one for each client, there is nothing to ask.
    """
    association = hypothesis.association
    return (
        hypothesis.belief is None
        and 1 < association.num_clusters < len(association.clients)
        and bool((association.labels != UNSEEN).any())
    )


def _models(hypothesis: Hypothesis, clients: Collection[str]) -> dict[str, list[Posterior]]:
    """By client, the models that score it in each cluster."""
    association, known = hypothesis.association, hypothesis.cavities
    return {
        client: [known.get((client, k), p) for k, p in enumerate(hypothesis.clusters)]
        for client in sorted(clients)
        if association.label(client) != UNSEEN
    }


def _requests(models: Sequence[Mapping[str, Sequence[Posterior]]]) -> dict[str, Score]:
    """One request to each client, about the models of all hypotheses."""
    keys: dict[str, dict[str, None]] = {}
    for rows in models:
        for client, row in rows.items():
            keys.setdefault(client, {}).update(dict.fromkeys(posterior.key for posterior in row))
    return {client: Score(client=client, models=tuple(keys[client])) for client in sorted(keys)}


def _belief(
    hypothesis: Hypothesis,
    models: Mapping[str, Sequence[Posterior]],
    scores: Mapping[str, Mapping[str, LossSum]],
    temperature: Temperature,
    cluster_size: ClusterSize,
) -> NDArray[np.float64] | None:
    """(clients, clusters) probabilities; None if no client has answered."""
    answering = tuple(client for client in models if client in scores)
    if not answering:
        return None
    keys = {client: [posterior.key for posterior in models[client]] for client in answering}
    losses, counts = loss_matrix(answering, keys, scores)
    costs = Costs(
        clients=answering,
        values=-log_association_weight(losses, counts, temperature),
        cluster_size=cluster_size,
    )
    belief = hypothesis.association.serving.copy()
    rows = [hypothesis.association.position[client] for client in answering]
    belief[rows] = membership_probabilities(costs, hypothesis.association)
    return belief
