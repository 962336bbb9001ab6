"""Generalisation of the served models to samples that no client holds.

Zuziak, Pellungrini and Rinzivillo, "One-Shot Clustering for Federated Learning" (OCFL), section
IV-D: personalisation is the mean F1 on the clients' own test samples, generalisation that on a
hold-out set of all classes, and their distance is the learning gap (equation 5). Here both are of
the models that serve the clients after a round; the authors' program tests local models there.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import TYPE_CHECKING

import torch

from bcfl import ClientData, Federation, HypothesisSet, View
from bcfl.data import TEST, TRAIN
from bcfl.executors import Executor, ExecutorConfig, build_executor
from bcfl.hypotheses import Posterior
from bcfl.protocol import Pooling, Predictions, PredictionSums, Score
from bcfl.rounds import served_mixture

if TYPE_CHECKING:
    from experiments.datasets import Dataset
    from experiments.partitions import Partition

NAME = "(hold-out)"


@dataclass(frozen=True, eq=False)
class HoldOut:
    """The hold-out set of a partition.

    Attributes:
        executor: scores models on the samples.
        pooling: whether the probabilities of several models are averaged or their logits.
    """

    executor: Executor
    pooling: Pooling = "probabilities"

    @classmethod
    def of(cls, dataset: Dataset, partition: Partition, federation: Federation) -> HoldOut | None:
        """The samples that a partition holds out; None if it holds out none.

        Models of labels or numbers are not tested on them.

        Args:
            dataset: the source of the partition.
            partition: with the rows that are held out.
            federation: of the networks, with its pooling of predictions.
        """
        rows = partition.hold_out
        if not len(rows) or federation.model.likelihood != "categorical":
            return None
        inputs = torch.as_tensor(dataset.inputs[rows])
        view = View(inputs, torch.as_tensor(dataset.targets[rows]).long())
        place = ClientData(NAME, {TRAIN: view, TEST: view})
        alone = ExecutorConfig("loop", arithmetic=federation.executor.arithmetic)
        device, dtype = federation.device, federation.dtype
        executor = build_executor(alone, [place], federation.model, 0, device, dtype)
        return cls(executor, federation.method.pooling)

    def predicted(self, hypotheses: HypothesisSet) -> dict[str, PredictionSums]:
        """Predictions of each client's mixture of models on the samples.

        Clients that the same mixture serves share a prediction; NaN predictions
        are left out.

        Args:
            hypotheses: with their models.
        """
        requests = {
            client: _score(served_mixture(hypotheses, client), self.pooling)
            for client in hypotheses.best.association.clients
        }
        models = {p.key: p for hypothesis in hypotheses for p in hypothesis.clusters}
        answers = self.executor.answer(list(dict.fromkeys(requests.values())), models, 0)
        predictions = {client: answers[score] for client, score in requests.items()}
        return {c: sums for c, sums in predictions.items() if isinstance(sums, PredictionSums)}


def _score(mixture: Mapping[Posterior, float], pooling: Pooling) -> Score:
    pairs = sorted((posterior.key, weight) for posterior, weight in mixture.items())
    keys, weights = zip(*pairs, strict=True)
    return Score(client=NAME, models=keys, statistic=Predictions(weights, pooling), view=TEST)
