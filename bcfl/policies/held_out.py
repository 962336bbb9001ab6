"""Weighing hypotheses by samples that their models were not trained on."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import replace

import numpy as np
from numpy.typing import NDArray

from bcfl.clients import VALIDATION
from bcfl.hypothesis import Hypothesis
from bcfl.policies.association_prior import AssociationPrior
from bcfl.policies.policy import Candidate, Ranking, RoundContext
from bcfl.policies.ranking import chosen_log_prior
from bcfl.requests import Exchange, Score, Steps


def judged_on_held_out(
    ranking: Ranking, parent: Hypothesis, prior: AssociationPrior, context: RoundContext
) -> Steps[Ranking]:
    """Shift a ranking so that its best association has its held-out log-likelihood as log weight.

    With clients associated by their training samples, the summed likelihood of their validation
    samples under their cluster's model does not grow with the number of clusters by itself. The
    log prior of the association is added: with a uniform prior it costs each client log K.
    Clients without validation samples, or that do not answer, contribute nothing.

    Args:
        ranking: associations by training samples; the differences between them are kept.
        parent: hypothesis that they follow.
        prior: of the associations.
        context: says who has validation samples.
    """
    candidates = iter(ranking)
    best = next(candidates)
    labels = {t.client: best.association.label(t.client) for t in best.trainings}
    asked = [
        Score(client, (parent.clusters[labels[client]].key,), view=VALIDATION)
        for client in context.validating(labels)
    ]
    replies = (yield Exchange.of(asked, parent.clusters)) if asked else {}
    held_out = -sum(replies[s][s.models[0]].total for s in asked if s in replies)
    clients = sorted(labels)
    log_prior = prior.log_probabilities(parent.association, clients)
    shift = held_out + chosen_log_prior(log_prior, best, clients) - best.log_weight

    def shifted() -> Iterator[Candidate]:
        yield replace(best, log_weight=best.log_weight + shift)
        for one in candidates:
            yield replace(one, log_weight=one.log_weight + shift)

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
