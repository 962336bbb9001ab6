"""Calibration and detection scores of a run on test, out-of-distribution and noise samples.

Prior precision and temperature are tuned (see `Run.tuned`) on held-out training samples where the
run has them; otherwise on a third of each client's test samples, and the remaining two thirds are
scored, whether or not anything was tuned.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from functools import cached_property
from typing import Literal

import numpy as np
import torch
from numpy.typing import NDArray

from bcfl import ClientData, Prediction, PredictionRule, Run
from bcfl.analysis import uncertainty
from bcfl.data import TEST, VALIDATION
from bcfl.executors import Executor, LoopExecutor
from bcfl.hypotheses import UNSEEN, Membership
from bcfl.runtime import generator

TUNING, TUNING_SHARE = "tuning", 3
By = Literal["all", "cluster", "client"]
Array = NDArray[np.float64]


@dataclass(frozen=True, eq=False)
class UncertaintyScores:
    """Three measures of the uncertainty of predictions.

    Attributes:
        entropy: (samples,) entropy of the predictive distribution, nats.
        epistemic: (samples,) mutual information of label with model and association, nats.
        ood_score: (samples,) out-of-distribution score of the inputs under the client's clusters,
            nats.
    """

    entropy: Array
    epistemic: Array
    ood_score: Array

    @classmethod
    def of(cls, prediction: Prediction, rows: slice) -> UncertaintyScores:
        """Scores of some of the predicted samples.

        Args:
            prediction: prediction with OOD scores.
            rows: the samples.
        """
        epistemic = prediction.model_uncertainty + prediction.association_uncertainty
        ood_score = prediction.ood_score
        assert ood_score is not None
        return cls(prediction.entropy[rows], epistemic[rows], ood_score[rows])

    @classmethod
    def joined(cls, parts: Sequence[UncertaintyScores]) -> UncertaintyScores:
        """Concatenate over samples."""
        return cls(
            np.concatenate([part.entropy for part in parts]),
            np.concatenate([part.epistemic for part in parts]),
            np.concatenate([part.ood_score for part in parts]),
        )


@dataclass(frozen=True, eq=False, kw_only=True)
class ClientPredictions:
    """Predictions for samples of one or more clients, each by its posterior membership.

    Attributes:
        probabilities: (samples, classes) predictive probabilities of the clients' test samples.
        targets: (samples,) int64 true classes.
        own: uncertainty of these predictions.
        ood: uncertainty on as many test samples of clients of other groups.
        noise: uncertainty on as many samples of uniform noise.
    """

    probabilities: Array
    targets: NDArray[np.int64]
    own: UncertaintyScores
    ood: UncertaintyScores
    noise: UncertaintyScores

    @classmethod
    def joined(cls, parts: Sequence[ClientPredictions]) -> ClientPredictions:
        """Concatenate over clients."""
        return cls(
            probabilities=np.concatenate([part.probabilities for part in parts]),
            targets=np.concatenate([part.targets for part in parts]),
            own=UncertaintyScores.joined([part.own for part in parts]),
            ood=UncertaintyScores.joined([part.ood for part in parts]),
            noise=UncertaintyScores.joined([part.noise for part in parts]),
        )

    def scores(self) -> dict[str, float]:
        """Calibration, selection and detection scores by name.

        Samples of other groups and noise are detected by OOD score, entropy and mutual information.
        """
        scores = uncertainty.summarise(self.probabilities, self.targets)
        for source, outside in (("ood", self.ood), ("noise", self.noise)):
            positive = np.repeat([False, True], [len(self.own.entropy), len(outside.entropy)])
            by = {
                name: uncertainty.detection(
                    np.concatenate([getattr(self.own, name), getattr(outside, name)]), positive
                )
                for name in ("ood_score", "entropy", "epistemic")
            }
            scores |= {
                f"{source}_auroc": by["ood_score"].auroc,
                f"{source}_aupr": by["ood_score"].aupr,
                f"{source}_fpr95": by["ood_score"].fpr95,
                f"{source}_auroc_entropy": by["entropy"].auroc,
                f"{source}_auroc_knowledge": by["epistemic"].auroc,
            }
        return scores


@dataclass(frozen=True, eq=False)
class UncertaintyEvaluation:
    """Evaluation of prediction rules on the test samples of the clients of a run.

    Attributes:
        run: the run.
        clients: data of its clients.
        seed: seed of the run; draws tuning samples, out-of-distribution samples and noise.
    """

    run: Run
    clients: Sequence[ClientData]
    seed: int

    @cached_property
    def tested(self) -> tuple[ClientData, ...]:
        """The clients with test samples, each with a view of tuning samples."""
        if any(len(data.views.get(VALIDATION, ())) for data in self.clients):
            return tuple(_validated(data) for data in self.clients if data.views.get(TEST))
        return tuple(
            _divided(data, self.seed) for data in self.clients if len(data.views.get(TEST, ())) > 1
        )

    def tuned(self, rule: PredictionRule) -> PredictionRule:
        """The rule with prior precision and temperature tuned on the tuning samples."""
        run = replace(self.run, executor=_holding(self.tested, self.run, self.seed))
        return run.tuned(rule, clients=[data.client for data in self.tested], view=TUNING)

    def predictions(self, rule: PredictionRule) -> dict[str, ClientPredictions]:
        """Predictions by client; clients of the same mixture share a forward pass."""
        predictions: dict[str, ClientPredictions] = {}
        for served in self._served_together:
            inputs = torch.cat([self._inputs[data.client] for data in served])
            prediction = self._run_with_data.predict(served[0].client, inputs, rule)
            end = 0
            for data in served:
                start, end = end, end + len(self._inputs[data.client])
                targets = data.views[TEST].targets
                predictions[data.client] = _client_predictions(prediction, targets, start, end)
        return {data.client: predictions[data.client] for data in self.tested}

    def parts(self, by: By) -> dict[str, list[str]]:
        """Clients that are scored together, by name of the part."""
        names = [data.client for data in self.tested]
        if by == "all":
            return {"all": names}
        if by == "client":
            return {name: [name] for name in names}
        parts: dict[str, list[str]] = {}
        for name in names:
            cluster = self._clusters[name]
            part = "not seen" if cluster == UNSEEN else f"cluster {cluster}"
            parts.setdefault(part, []).append(name)
        return dict(sorted(parts.items()))

    @cached_property
    def _run_with_data(self) -> Run:
        """The run with an executor that holds its clients, from which OOD scores are computed."""
        if self.run.executor is not None:
            return self.run
        return replace(self.run, executor=_holding(self.clients, self.run, self.seed))

    @cached_property
    def _clusters(self) -> dict[str, int]:
        """Most probable cluster of each client, -1 if it was never seen."""
        rows = self.run.association_probabilities()
        labels = np.where(rows.any(axis=1), rows.argmax(axis=1), UNSEEN)
        return dict(zip(self.run.clients, labels.tolist(), strict=True))

    @cached_property
    def _source(self) -> Mapping[str, int]:
        """Source of each client's samples: its true group if all are known, else its cluster."""
        groups = {data.client: data.group for data in self.tested if data.group is not None}
        return groups if len(groups) == len(self.tested) else self._clusters

    @cached_property
    def _served_together(self) -> list[list[ClientData]]:
        """Clients grouped by the mixture that predicts for them."""
        served: dict[frozenset[tuple[str, float]], list[ClientData]] = {}
        for data in self.tested:
            mixture = Membership.of_client(self.run.hypotheses, data.client).mixture
            signature = frozenset((posterior.key, share) for posterior, share in mixture.items())
            served.setdefault(signature, []).append(data)
        return list(served.values())

    @cached_property
    def _inputs(self) -> dict[str, torch.Tensor]:
        """Inputs by client: its test samples, as many of other groups if any, and as much noise."""
        inputs = {}
        for data in self.tested:
            own = data.views[TEST].inputs
            low, high = (float(edge) for edge in own.aminmax())
            random = generator(self.seed, data.client, "noise")
            noise = torch.from_numpy(random.uniform(low, high, size=tuple(own.shape))).to(own)
            inputs[data.client] = torch.cat([own, self._ood_inputs(data, len(own)), noise])
        return inputs

    def _ood_inputs(self, data: ClientData, count: int) -> torch.Tensor:
        """Test inputs of clients of other true groups, or clusters where groups are unknown."""
        source = self._source
        others = [
            other.views[TEST].inputs
            for other in self.tested
            if source[other.client] != source[data.client]
        ]
        if not others:
            return data.views[TEST].inputs[:0]
        pool = torch.cat(others)
        random = generator(self.seed, data.client, "strange")
        return pool[torch.from_numpy(random.permutation(len(pool))[:count])]


def _holding(clients: Sequence[ClientData], run: Run, seed: int) -> Executor:
    """An executor for clients with these samples."""
    mean = run.hypotheses.best.clusters[0].mean(run.model)
    return LoopExecutor.on(clients, run.model, seed, mean.device, mean.dtype)


def scores(
    predictions: Mapping[str, ClientPredictions], parts: Mapping[str, Sequence[str]]
) -> dict[str, dict[str, float]]:
    """Scores of each part of the clients.

    Args:
        predictions: predictions by client.
        parts: names of clients by part; see `UncertaintyEvaluation.parts`.
    """
    return {
        name: ClientPredictions.joined([predictions[client] for client in clients]).scores()
        for name, clients in parts.items()
    }


def _client_predictions(
    prediction: Prediction, targets: torch.Tensor, start: int, end: int
) -> ClientPredictions:
    """Predictions of the client whose samples are the rows `start` to `end`."""
    own, noise = start + len(targets), end - len(targets)
    return ClientPredictions(
        probabilities=prediction.mean[start:own],
        targets=targets.numpy(),
        own=UncertaintyScores.of(prediction, slice(start, own)),
        ood=UncertaintyScores.of(prediction, slice(own, noise)),
        noise=UncertaintyScores.of(prediction, slice(noise, end)),
    )


def _validated(data: ClientData) -> ClientData:
    """The client with its validation samples as tuning samples."""
    held_out = data.views.get(VALIDATION, data.views[TEST].take(torch.arange(0)))
    return ClientData(data.client, {**data.views, TUNING: held_out}, data.group)


def _divided(data: ClientData, seed: int) -> ClientData:
    test = data.views[TEST]
    order = torch.from_numpy(generator(seed, data.client, TUNING).permutation(len(test)))
    first = max(1, len(test) // TUNING_SHARE)
    views = {
        **data.views,
        TUNING: test.take(order[:first].sort().values),
        TEST: test.take(order[first:].sort().values),
    }
    return ClientData(data.client, views, data.group)
