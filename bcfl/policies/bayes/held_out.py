"""Hypothesis weights from held-out samples: the log-likelihood of validation data."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import replace

import numpy as np
from numpy.typing import NDArray

from bcfl.data.clients import VALIDATION
from bcfl.hypotheses.hypothesis import Hypothesis
from bcfl.policies.bayes.association_prior import AssociationPrior
from bcfl.policies.context import RoundContext
from bcfl.policies.policy import Candidate, Ranking
from bcfl.protocol.requests import Exchange, Score, Steps


def judged_on_held_out(
    ranking: Ranking, parent: Hypothesis, prior: AssociationPrior, context: RoundContext
) -> Steps[Ranking]:
    """Shift a ranking so that its best association has its held-out log-likelihood as log weight.

    Unlike the training likelihood, the summed likelihood of validation samples does not increase
    with the number of clusters as such. The log prior of the association is added: a uniform prior
    costs log K per client. Clients without validation samples or without an answer contribute their
    prior alone.

    Args:
        ranking: associations by training samples, with their costs; differences between their log
            weights are preserved.
        parent: hypothesis that they follow.
        prior: prior over associations.
        context: holds the numbers of validation samples.

    Returns:
        The shifted ranking; its costs hold the held-out costs as `judged`.

    Raises:
        ValueError: the ranking has no costs.
    """
    candidates = iter(ranking)
    best = next(candidates)
    if best.costs is None:
        raise ValueError("ranking must have costs to be judged on held-out samples")
    clients = best.costs.clients
    losses = yield from held_out_losses(parent, clients, context)
    judged = losses - prior.log_probabilities(parent.association, clients)
    labels = [best.association.label(client) for client in clients]
    held_out = -float(judged[np.arange(len(clients)), labels].sum())
    shift = held_out - best.log_weight
    costs = replace(best.costs, judged=judged)

    def shifted() -> Iterator[Candidate]:
        yield replace(best, log_weight=best.log_weight + shift, costs=costs)
        for candidate in candidates:
            yield replace(candidate, log_weight=candidate.log_weight + shift, costs=costs)

    return Ranking(shifted(), ranking.log_total + shift)


def held_out_losses(
    parent: Hypothesis, clients: Sequence[str], context: RoundContext
) -> Steps[NDArray[np.float64]]:
    """Summed validation losses, float64 (clients, clusters), nats; 0 for a client without any.

    Args:
        parent: hypothesis with the clusters.
        clients: names of the rows.
        context: holds the numbers of validation samples.
    """
    keys = tuple(posterior.key for posterior in parent.clusters)
    distinct = tuple(dict.fromkeys(keys))
    scores = {
        c: Score(client=c, models=distinct, view=VALIDATION) for c in context.validating(clients)
    }
    replies = (yield Exchange.of(scores.values(), parent.clusters)) if scores else {}
    losses = np.zeros((len(clients), len(keys)))
    for row, client in enumerate(clients):
        reply = replies.get(scores[client]) if client in scores else None
        if reply is not None:
            losses[row] = [reply[key].total for key in keys]
    return losses
