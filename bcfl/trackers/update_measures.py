"""Measures of a round's local updates, which are logged and decide nothing.

The clustering temperature of Zuziak, Pellungrini and Rinzivillo, "One-Shot Clustering for Federated
Learning" (OCFL), is known in every round of every method, as in their Figure 3.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from math import isfinite

import torch

from bcfl.hypotheses.hypothesis import Hypothesis
from bcfl.hypotheses.posterior import Posterior
from bcfl.policies.context import RoundContext
from bcfl.policies.policy import Candidate
from bcfl.policies.updates.clustering_temperature import clustering_temperature
from bcfl.policies.updates.update_similarity import cosine_distances, inner_products
from bcfl.protocol.answers import Trained
from bcfl.protocol.requests import Train
from bcfl.runtime.seeds import generator

MOST_UPDATES = 50
"""Updates of which the temperature is taken; above, a random subset, as all pairs would cost."""
TEMPERATURE = "clustering_temperature"


@dataclass(frozen=True, eq=False)
class LocalUpdate:
    """An answered training with the model that it started from.

    Attributes:
        training: the request.
        reply: the local model.
        start: the model that it started from.
    """

    training: Train
    reply: Trained
    start: Posterior


def local_updates_of(
    parent: Hypothesis, candidate: Candidate, answers: Mapping[Train, Trained]
) -> list[LocalUpdate]:
    """The answered trainings of a candidate whose starting model the server holds.

    Args:
        parent: hypothesis that the candidate follows.
        candidate: association with its trainings.
        answers: local models by answered training.
    """
    held = (*parent.clusters, *parent.carried_models.values(), *candidate.models)
    models = {posterior.key: posterior for posterior in held}
    return [
        LocalUpdate(training, answers[training], models[training.start])
        for training in candidate.trainings
        if training in answers and training.start in models
    ]


def temperature_of(updates: list[LocalUpdate], context: RoundContext) -> dict[str, float]:
    """The clustering temperature, in [0, 1] (OCFL, equations 2 to 4 with p = 2).

    Each update is from the model that its client started from. Of many updates it is that of
    a random subset.

    Args:
        updates: of the round.
        context: read-only context of the round.

    Returns:
        The temperature by name; empty where there are fewer than two updates, or one diverged.
    """
    if len(updates) > MOST_UPDATES:
        random = generator(context.seed, context.round, TEMPERATURE)
        chosen = sorted(random.permutation(len(updates))[:MOST_UPDATES].tolist())
        updates = [updates[index] for index in chosen]
    if len(updates) < 2:
        return {}
    starts = {update.start.key: update.start.mean(context.model) for update in updates}
    products = inner_products(
        [starts[update.start.key] for update in updates],
        [update.reply.mean for update in updates],
        torch.float32,
    )
    temperature = clustering_temperature(cosine_distances(products))
    return {TEMPERATURE: temperature} if isfinite(temperature) else {}
