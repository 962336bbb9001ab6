"""Evaluation on the clients' test samples, by requests that the clients answer."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import replace
from typing import Any

from bcfl.architecture.model import Model
from bcfl.data.names import TEST, TRAIN
from bcfl.hypotheses.association import UNSEEN
from bcfl.hypotheses.hypothesis import Hypothesis, HypothesisSet
from bcfl.hypotheses.membership import Membership
from bcfl.hypotheses.posterior import Posterior
from bcfl.protocol.objective import Objective
from bcfl.protocol.requests import Exchange, Score, Steps, Train
from bcfl.protocol.statistics.label_predictions import LabelPredictions
from bcfl.protocol.statistics.predictions import Pooling, Predictions
from bcfl.protocol.statistics.regression import Regression
from bcfl.runtime.seeds import lineage_key
from posteriors.curvature.likelihood import Likelihood


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


STATISTICS: Mapping[Likelihood, type[Predictions] | type[Regression] | type[LabelPredictions]] = {
    "categorical": Predictions,
    "gaussian": Regression,
    "bernoulli": LabelPredictions,
}
"""How predictions are summed up, by likelihood."""


def evaluate(
    hypotheses: HypothesisSet,
    clients: Sequence[str],
    model: Model,
    pooling: Pooling = "probabilities",
    view: str = TEST,
) -> Steps[Mapping[str, Any]]:
    """Ask every client how the mixture that serves it predicts its samples.

    Args:
        hypotheses: with their models.
        clients: names of the clients to evaluate.
        model: the architecture.
        pooling: whether the models' probabilities are averaged, of numbers their densities, or
            their logits, of numbers their means.
        view: which of the clients' samples.

    Returns:
        Sums by client that answers: `PredictionSums` of classes, `RegressionSums` of numbers,
        `LabelSums` of labels.
    """
    mixtures = {client: served_mixture(hypotheses, client) for client in clients}
    requests = {
        client: Score(
            client=client,
            models=tuple(posterior.key for posterior in mixture),
            statistic=STATISTICS[model.likelihood](tuple(mixture.values()), pooling),
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
    pooling: Pooling = "probabilities",
) -> Steps[Mapping[str, Any]]:
    """Let every client train on from what serves it, then test the result (Ma 2023, section 7.4.4).

    A client trains on from the model that serves it most; from each model of an ensemble, whose
    logits are averaged then as before. The clusters are not changed.

    Args:
        hypotheses: with their models.
        clients: names of the clients to evaluate.
        objective: of the training.
        model: the architecture.
        view: which of the clients' samples.
        pooling: `logits` where the models that serve a client are an ensemble.

    Returns:
        Sums by client, as of `evaluate`.
    """
    starts: dict[str, dict[Posterior, float]] = {}
    for client in clients:
        mixture = served_mixture(hypotheses, client)
        most = max(mixture, key=lambda posterior: mixture[posterior])
        starts[client] = mixture if pooling == "logits" else {most: 1.0}
    plain = replace(objective, regularizers=(), curvature="samples")
    requests = {
        client: [Train(client, posterior.key, plain) for posterior in mixture]
        for client, mixture in starts.items()
    }
    replies = yield Exchange.of(
        (request for work in requests.values() for request in work),
        (posterior for mixture in starts.values() for posterior in mixture),
    )
    own = {
        client: [
            posterior.with_parameters(
                model,
                lineage_key("finetuned", client, t.start),
                replies[t].mean,
                replies[t].buffers,
            )
            for t, posterior in zip(work, starts[client], strict=True)
        ]
        for client, work in requests.items()
        if all(training in replies for training in work)
    }
    tests = {
        client: Score(
            client=client,
            models=tuple(posterior.key for posterior in models),
            statistic=STATISTICS[model.likelihood](tuple(starts[client].values()), pooling),
            view=view,
        )
        for client, models in own.items()
    }
    answers = yield Exchange.of(tests.values(), (m for models in own.values() for m in models))
    return {client: answers[score] for client, score in tests.items() if score in answers}


def learning_objective(
    hypothesis: Hypothesis, clients: Sequence[str]
) -> Steps[Mapping[str, float]]:
    """The mean loss of the clients' training samples under the model of their cluster.

    It is 𝓕 of Ma, "Clustered Federated Learning" (2023), equation 3.4, in nats per sample.

    Args:
        hypothesis: clusters and associations.
        clients: names of the clients that are asked.

    Returns:
        The value as `objective_f`; empty where no client answers.
    """
    labels = {client: hypothesis.association.label(client) for client in clients}
    requests = [
        Score(client=client, models=(hypothesis.clusters[label].key,), view=TRAIN)
        for client, label in labels.items()
        if label != UNSEEN
    ]
    replies = yield Exchange.of(requests, hypothesis.clusters)
    sums = [next(iter(replies[score].values())) for score in requests if score in replies]
    samples = sum(one.num_samples for one in sums)
    return {"objective_f": sum(one.total for one in sums) / samples} if samples else {}
