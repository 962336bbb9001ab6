"""Weighing hypotheses by samples that their models were not trained on."""

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

    With clients associated by their training samples, the summed likelihood of their validation
    samples under their cluster's model does not grow with the number of clusters by itself. The
    log prior of the association is added: with a uniform prior it costs each client log K.
    Clients without validation samples, or that do not answer, contribute their prior alone.

    Args:
        ranking: associations by training samples, with their costs; the differences between them
            are kept.
        parent: hypothesis that they follow.
        prior: of the associations.
        context: says who has validation samples.
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
        for one in candidates:
            yield replace(one, log_weight=one.log_weight + shift, costs=costs)

    return Ranking(shifted(), ranking.log_total + shift)


def held_out_losses(
    parent: Hypothesis, clients: Sequence[str], context: RoundContext
) -> Steps[NDArray[np.float64]]:
    """(clients, clusters) summed validation losses, nats; 0 for a client that has none.

    Args:
        parent: hypothesis with the clusters.
        clients: names of the rows.
        context: says who has validation samples.
    """
    keys = tuple(posterior.key for posterior in parent.clusters)
    distinct = tuple(dict.fromkeys(keys))
    asked = {c: Score(c, distinct, view=VALIDATION) for c in context.validating(clients)}
    replies = (yield Exchange.of(asked.values(), parent.clusters)) if asked else {}
    losses = np.zeros((len(clients), len(keys)))
    for row, client in enumerate(clients):
        reply = replies.get(asked[client]) if client in asked else None
        if reply is not None:
            losses[row] = [reply[key].total for key in keys]
    return losses
