"""Gains of clients: test scores of the models that serve them, next to those of other models."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from math import nan
from typing import TYPE_CHECKING, Any

from bcfl.analysis import metrics
from bcfl.data import TEST
from bcfl.hypotheses import Posterior
from bcfl.protocol import Exchange, Pooling, Score, Steps
from bcfl.rounds import STATISTICS, evaluate_finetuned, served_mixture

if TYPE_CHECKING:
    from bcfl import HypothesisSet, Method, Model

SERVED = "what serves it"
FINE_TUNED = "fine-tuned by it"


@dataclass(frozen=True)
class ModelScore:
    """Test scores of a model on a client.

    Attributes:
        model: name of the model.
        accuracy: share of correct predictions, NaN of numbers.
        nll: mean negative log-likelihood, nats per sample.
        num_samples: number of test samples.
    """

    model: str
    accuracy: float
    nll: float
    num_samples: int


def model_scores(
    hypotheses: HypothesisSet,
    clients: Iterable[str],
    model: Model,
    name: str = SERVED,
    *,
    clusters: bool = True,
    pooling: Pooling = "probabilities",
) -> Steps[dict[str, list[ModelScore]]]:
    """Ask clients for the scores of what serves them, then of each cluster's model alone.

    The clusters are those of the leading hypothesis, `cluster 0` first.

    Args:
        hypotheses: with their models.
        clients: who is asked.
        model: the architecture.
        name: what the first score is called.
        clusters: whether to score the clusters.
        pooling: `logits` where the models that serve a client are an ensemble.

    Returns:
        Scores by client; clients without test samples have none.
    """
    best = hypotheses.best.clusters if clusters else ()
    models = {posterior.key: posterior for posterior in best}
    rows: list[tuple[str, str, Score]] = []
    for client in clients:
        mixture = served_mixture(hypotheses, client)
        models |= {posterior.key: posterior for posterior in mixture}
        rows.append((client, name, _score(client, mixture, model, pooling)))
        rows += [
            (client, f"cluster {index}", _score(client, {posterior: 1.0}, model))
            for index, posterior in enumerate(best)
        ]
    replies = yield Exchange.of((score for *_, score in rows), models.values())
    scores: dict[str, list[ModelScore]] = {}
    for client, label, score in rows:
        if score in replies:
            scores.setdefault(client, []).append(_model_score(label, replies[score], model))
    return scores


def finetuned_scores(
    hypotheses: HypothesisSet, clients: Iterable[str], model: Model, method: Method
) -> Steps[dict[str, list[ModelScore]]]:
    """Ask clients to fine-tune what serves them, then for the scores of the result.

    Args:
        hypotheses: with their models.
        clients: who is asked.
        model: the architecture.
        method: whose objective clients fine-tune by; without one, nobody is asked.

    Returns:
        One score by client; clients without test samples have none.
    """
    if method.finetuned is None:
        return {}
    sums = yield from evaluate_finetuned(
        hypotheses, tuple(clients), method.finetuned, model, pooling=method.pooling
    )
    return {client: [_model_score(FINE_TUNED, found, model)] for client, found in sums.items()}


def _score(
    client: str,
    mixture: Mapping[Posterior, float],
    model: Model,
    pooling: Pooling = "probabilities",
) -> Score:
    keys = tuple(posterior.key for posterior in mixture)
    statistic = STATISTICS[model.likelihood](tuple(mixture.values()), pooling)
    return Score(client=client, models=keys, statistic=statistic, view=TEST)


def _model_score(name: str, sums: Any, model: Model) -> ModelScore:  # noqa: ANN401 - of any kind
    summarised = metrics.SUMMARIES[model.likelihood]({"": sums})
    return ModelScore(name, summarised.get("accuracy", nan), summarised["nll"], sums.num_samples)
