"""Evaluation on the clients' test samples, by requests that the clients answer."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import replace

from bcfl.architecture.model import Model
from bcfl.data.clients import TEST
from bcfl.hypotheses.hypothesis import HypothesisSet
from bcfl.hypotheses.membership import Membership
from bcfl.hypotheses.posterior import Posterior
from bcfl.protocol.objective import Objective
from bcfl.protocol.requests import Exchange, Score, Steps, Train
from bcfl.protocol.statistics.predictions import Pooling, Predictions, PredictionSums
from bcfl.runtime.seeds import lineage_key


def served_mixture(hypotheses: HypothesisSet, client: str) -> dict[Posterior, float]:
    """The models that serve a client and their probabilities, over all hypotheses.

    p(model) = sum over hypotheses of the hypothesis' weight times the client's serving probability
    (BCFL, equation 10 seen from one client), in the association by which clients train, not what is
    believed of it. Probabilities up to 1e-9 are left out.

    Args:
        hypotheses: weighted hypotheses of one round.
        client: name of the client.
    """
    return Membership.by_association(hypotheses, client).mixture


def evaluate(
    hypotheses: HypothesisSet,
    clients: Sequence[str],
    pooling: Pooling = "probabilities",
    view: str = TEST,
) -> Steps[Mapping[str, PredictionSums]]:
    """Ask every client how the mixture that serves it predicts its samples.

    Args:
        hypotheses: with their models.
        clients: names of the clients to evaluate.
        pooling: whether the models' probabilities are averaged or their logits.
        view: which of the clients' samples.
    """
    mixtures = {client: served_mixture(hypotheses, client) for client in clients}
    requests = {
        client: Score(
            client=client,
            models=tuple(posterior.key for posterior in mixture),
            statistic=Predictions(tuple(mixture.values()), pooling),
            view=view,
        )
        for client, mixture in mixtures.items()
    }
    replies = yield Exchange.of(requests.values(), (m for h in hypotheses for m in h.clusters))
    return {client: replies[score] for client, score in requests.items() if score in replies}


def evaluate_finetuned(
    hypotheses: HypothesisSet,
    clients: Sequence[str],
    objective: Objective,
    model: Model,
    view: str = TEST,
) -> Steps[Mapping[str, PredictionSums]]:
    """Let every client train on from the model that serves it most, then test the result.

    The clusters are not changed.

    Args:
        hypotheses: with their models.
        clients: names of the clients to evaluate.
        objective: of the training.
        model: the architecture.
        view: which of the clients' samples.
    """
    best = {}
    for client in clients:
        mixture = served_mixture(hypotheses, client)
        best[client] = max(mixture, key=lambda posterior: mixture[posterior])
    plain = replace(objective, regularizers=(), curvature="samples")
    requests = [Train(client, best[client].key, plain) for client in clients]
    replies = yield Exchange.of(requests, best.values())
    own = {
        t.client: best[t.client].with_parameters(
            model, lineage_key("finetuned", t.client, t.start), replies[t].mean, replies[t].buffers
        )
        for t in requests
        if t in replies
    }
    tests = {
        client: Score(
            client=client, models=(posterior.key,), statistic=Predictions((1.0,)), view=view
        )
        for client, posterior in own.items()
    }
    answers = yield Exchange.of(tests.values(), own.values())
    return {client: answers[score] for client, score in tests.items() if score in answers}
