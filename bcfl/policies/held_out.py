"""Weighing hypotheses by samples that their models were not trained on."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import replace

import numpy as np

from bcfl.clients import VALIDATION
from bcfl.hypothesis import Hypothesis
from bcfl.policies.association_prior import AssociationPrior
from bcfl.policies.policy import Candidate, Ranking
from bcfl.requests import Exchange, Score, Steps


def judged_on_held_out(
    ranking: Ranking, parent: Hypothesis, prior: AssociationPrior
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
    """
    candidates = iter(ranking)
    best = next(candidates)
    labels = {t.client: best.association.label(t.client) for t in best.trainings}
    asked = [Score(c, (parent.clusters[i].key,), view=VALIDATION) for c, i in labels.items()]
    replies = (yield Exchange.of(asked, parent.clusters)) if asked else {}
    held_out = -sum(replies[s][s.models[0]].total for s in asked if s in replies)
    log_prior = prior.log_probabilities(parent.association, sorted(labels))
    chosen = [labels[client] for client in sorted(labels)]
    shift = held_out + float(log_prior[np.arange(len(chosen)), chosen].sum()) - best.log_weight

    def shifted() -> Iterator[Candidate]:
        yield replace(best, log_weight=best.log_weight + shift)
        for one in candidates:
            yield replace(one, log_weight=one.log_weight + shift)

    return Ranking(shifted(), ranking.log_total + shift)
