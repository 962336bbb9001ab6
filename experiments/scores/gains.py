"""Gains of clients: test scores of the models that serve them, next to those of other models."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING

import torch

from bcfl import ClientData
from bcfl.analysis import metrics
from bcfl.data import TEST
from bcfl.executors import LoopExecutor
from bcfl.hypotheses import Posterior
from bcfl.protocol import Predictions, PredictionSums, Score
from bcfl.rounds import served_mixture

if TYPE_CHECKING:
    from bcfl import FederationState, Model

SERVED = "what serves it"


@dataclass(frozen=True)
class ModelScore:
    """Test scores of a model on a client.

    Attributes:
        model: name of the model.
        accuracy: share of correct predictions.
        nll: mean negative log-likelihood, nats per sample.
    """

    model: str
    accuracy: float
    nll: float


@dataclass(frozen=True, eq=False)
class Judge:
    """Scores models on the test samples of some clients.

    Attributes:
        model: the architecture.
        clients: the clients.
        seed: seed of the run.
    """

    model: Model
    clients: Sequence[ClientData]
    seed: int

    def scores(
        self, state: FederationState, name: str = SERVED, *, clusters: bool = True
    ) -> dict[str, list[ModelScore]]:
        """By client, the scores of its served mixture, then those of each cluster's model alone.

        Clients without test samples have none. The clusters are those of the leading hypothesis,
        `cluster 0` first.

        Args:
            state: the models.
            name: of the first score.
            clusters: whether to score the clusters.
        """
        best = state.hypotheses.best.clusters if clusters else ()
        models: dict[str, Posterior] = {posterior.key: posterior for posterior in best}
        rows: list[tuple[str, str, Score]] = []
        for client in self._tested():
            mixture = served_mixture(state.hypotheses, client)
            models |= {posterior.key: posterior for posterior in mixture}
            rows.append((client, name, _ask(client, mixture)))
            rows += [
                (client, f"cluster {index}", _ask(client, {posterior: 1.0}))
                for index, posterior in enumerate(best)
            ]
        answers = self._answers({score for *_, score in rows}, models, state.round)
        scores_of: dict[str, list[ModelScore]] = {}
        for client, label, score in rows:
            if score in answers:
                scores_of.setdefault(client, []).append(_scored(label, answers[score]))
        return scores_of

    def _tested(self) -> list[str]:
        return [data.client for data in self.clients if len(data.views.get(TEST, ()))]

    def _answers(
        self, requests: Iterable[Score], models: Mapping[str, Posterior], round: int
    ) -> dict[Score, PredictionSums]:
        if not models:
            return {}
        mean = next(iter(models.values())).mean(self.model)
        device = torch.device("cpu")
        executor = LoopExecutor.on(self.clients, self.model, self.seed, device, mean.dtype)
        outcomes = executor.answer(list(requests), models, round)
        return {
            score: outcome
            for score, outcome in outcomes.items()
            if isinstance(score, Score) and isinstance(outcome, PredictionSums)
        }


def _ask(client: str, mixture: Mapping[Posterior, float]) -> Score:
    keys = tuple(posterior.key for posterior in mixture)
    return Score(
        client=client, models=keys, statistic=Predictions(tuple(mixture.values())), view=TEST
    )


def _scored(name: str, sums: PredictionSums) -> ModelScore:
    pooled = {"": sums}
    return ModelScore(name, metrics.micro_accuracy(pooled), metrics.nll(pooled))
