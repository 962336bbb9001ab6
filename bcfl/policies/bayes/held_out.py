"""Hypothesis weights from held-out samples: the log-likelihood of validation data."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace
from fractions import Fraction
from itertools import chain

import numpy as np
from numpy.typing import NDArray

from assignment import exact_sum
from bcfl.data.names import VALIDATION
from bcfl.hypotheses.hypothesis import Hypothesis
from bcfl.policies.bayes.association_prior import AssociationPrior
from bcfl.policies.context import RoundContext
from bcfl.policies.policy import Ranking
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
    least = losses.min(axis=1)
    judged = (losses - least[:, None]) - prior.log_probabilities(parent.association, clients)
    labels = [best.association.label(client) for client in clients]
    held_out = -exact_sum([*judged[np.arange(len(clients)), labels], *least])
    offsets = np.stack([least, np.zeros_like(least)], axis=1)
    costs = replace(best.costs, judged=judged, judged_offsets=offsets)
    every = (replace(one, costs=costs) for one in chain((best,), candidates))
    return replace(ranking, candidates=every, reference=held_out - Fraction(best.log_weight))


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
