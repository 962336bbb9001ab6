"""Gains of clients: test scores of the models that serve them, next to those of other models."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from math import nan
from typing import TYPE_CHECKING, Any

from bcfl.analysis import metrics
from bcfl.data import TEST
from bcfl.hypotheses import Posterior
from bcfl.protocol import Exchange, Score, Steps
from bcfl.rounds import STATISTICS, served_mixture

if TYPE_CHECKING:
    from bcfl import HypothesisSet, Model

SERVED = "what serves it"


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
) -> Steps[dict[str, list[ModelScore]]]:
    """Ask clients for the scores of what serves them, then of each cluster's model alone.

    The clusters are those of the leading hypothesis, `cluster 0` first.

    Args:
        hypotheses: with their models.
        clients: who is asked.
        model: the architecture.
        name: what the first score is called.
        clusters: whether to score the clusters.

    Returns:
        Scores by client; clients without test samples have none.
    """
    best = hypotheses.best.clusters if clusters else ()
    models = {posterior.key: posterior for posterior in best}
    rows: list[tuple[str, str, Score]] = []
    for client in clients:
        mixture = served_mixture(hypotheses, client)
        models |= {posterior.key: posterior for posterior in mixture}
        rows.append((client, name, _score(client, mixture, model)))
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


def _score(client: str, mixture: Mapping[Posterior, float], model: Model) -> Score:
    keys = tuple(posterior.key for posterior in mixture)
    statistic = STATISTICS[model.likelihood](tuple(mixture.values()))
    return Score(client=client, models=keys, statistic=statistic, view=TEST)


def _model_score(name: str, sums: Any, model: Model) -> ModelScore:  # noqa: ANN401 - of any kind
    summarised = metrics.SUMMARIES[model.likelihood]({"": sums})
    return ModelScore(name, summarised.get("accuracy", nan), summarised["nll"], sums.num_samples)
