"""Gains of clients: test scores of the models that serve them, next to those of other models."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from typing import TYPE_CHECKING

from bcfl.analysis import metrics
from bcfl.data import TEST
from bcfl.hypotheses import Posterior
from bcfl.protocol import Exchange, Predictions, PredictionSums, Score, Steps
from bcfl.rounds import served_mixture

if TYPE_CHECKING:
    from bcfl import HypothesisSet

SERVED = "what serves it"


@dataclass(frozen=True)
class ModelScore:
    """Test scores of a model on a client.

    Attributes:
        model: name of the model.
        accuracy: share of correct predictions.
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
    name: str = SERVED,
    *,
    clusters: bool = True,
) -> Steps[dict[str, list[ModelScore]]]:
    """Ask clients for the scores of what serves them, then of each cluster's model alone.

    The clusters are those of the leading hypothesis, `cluster 0` first.

    Args:
        hypotheses: with their models.
        clients: who is asked.
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
        rows.append((client, name, _score(client, mixture)))
        rows += [
            (client, f"cluster {index}", _score(client, {posterior: 1.0}))
            for index, posterior in enumerate(best)
        ]
    replies = yield Exchange.of((score for *_, score in rows), models.values())
    scores: dict[str, list[ModelScore]] = {}
    for client, label, score in rows:
        if score in replies:
            scores.setdefault(client, []).append(_model_score(label, replies[score]))
    return scores


def _score(client: str, mixture: Mapping[Posterior, float]) -> Score:
    keys = tuple(posterior.key for posterior in mixture)
    return Score(
        client=client, models=keys, statistic=Predictions(tuple(mixture.values())), view=TEST
    )


def _model_score(name: str, sums: PredictionSums) -> ModelScore:
    alone = {"": sums}
    return ModelScore(name, metrics.micro_accuracy(alone), metrics.nll(alone), sums.num_samples)
