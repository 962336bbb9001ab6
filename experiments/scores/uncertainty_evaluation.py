"""Calibration and detection scores of a run on test, out-of-distribution and noise samples.

Prior precision and temperature are tuned (see `Run.tuned`) on held-out training samples where the
run has them; otherwise on a third of each client's test samples, and the remaining two thirds are
scored, whether or not anything was tuned. In a stream, samples and true groups are those of the
time step of the last round.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from functools import cached_property
from typing import Any, Literal

import torch

from bcfl import ClientData, Prediction, PredictionRule, Run
from bcfl.analysis import ValuePrediction
from bcfl.data import TEST, VALIDATION, at_step, num_steps
from bcfl.executors import Executor, LoopExecutor
from bcfl.hypotheses import UNSEEN, Membership
from bcfl.runtime import generator
from experiments.scores.client_predictions import (
    ClientPredictions,
    ClientValues,
    Predicted,
    UncertaintyScores,
)

TUNING, TUNING_SHARE = "tuning", 3
By = Literal["all", "cluster", "client"]


@dataclass(frozen=True, eq=False)
class UncertaintyEvaluation:
    """Evaluation of prediction rules on the test samples of the clients of a run.

    Attributes:
        run: the run.
        clients: data of its clients, of all time steps.
        seed: seed of the run; draws tuning samples, out-of-distribution samples and noise.
    """

    run: Run
    clients: Sequence[ClientData]
    seed: int

    @property
    def time_step(self) -> int:
        """Time step whose samples are scored, that of the last round."""
        return self.run.state.time_step(self.clients)

    @property
    def num_steps(self) -> int:
        """Number of time steps of the data."""
        return num_steps(self.clients)

    @cached_property
    def present(self) -> tuple[ClientData, ...]:
        """The clients with their samples of the time step."""
        if self.num_steps == 1:
            return tuple(self.clients)
        return tuple(at_step(data, self.time_step) for data in self.clients)

    @cached_property
    def tested(self) -> tuple[ClientData, ...]:
        """The clients with test samples, each with a view of tuning samples."""
        if any(len(data.views.get(VALIDATION, ())) for data in self.present):
            return tuple(_validated(data) for data in self.present if data.views.get(TEST))
        return tuple(
            _divided(data, self.seed) for data in self.present if len(data.views.get(TEST, ())) > 1
        )

    def tuned(self, rule: PredictionRule) -> PredictionRule:
        """The rule with prior precision and temperature tuned on the tuning samples."""
        run = replace(self.run, executor=_holding(self.tested, self.run, self.seed))
        return run.tuned(rule, clients=[data.client for data in self.tested], view=TUNING)

    def predictions(self, rule: PredictionRule) -> Mapping[str, Predicted]:
        """Predictions by client; clients of the same mixture share a forward pass.

        Raises:
            ValueError: the rule predicts no such things, or needs a curvature that there is not.
        """
        run, predictions = self._run_with_data, {}
        predict = run.predict_values if run.model.likelihood == "gaussian" else run.predict
        for served in self._served_together:
            inputs = torch.cat([self._inputs[data.client] for data in served])
            prediction = predict(served[0].client, inputs, rule)
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
        return replace(self.run, executor=_holding(self.present, self.run, self.seed))

    @cached_property
    def _clusters(self) -> dict[str, int]:
        """Cluster of each client in the leading hypothesis, -1 if it was never seen."""
        labels = self.run.hypotheses.best.association.labels
        return dict(zip(self.run.clients, labels.tolist(), strict=True))

    @cached_property
    def _source(self) -> Mapping[str, int]:
        """Source of each client's samples: its true group if all are known, else its cluster."""
        names = [data.client for data in self.tested]
        known = {name: self.run.groups.get(name) for name in names}
        groups = {name: group for name, group in known.items() if group is not None}
        return groups if len(groups) == len(names) else self._clusters

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
    predictions: Mapping[str, Predicted], parts: Mapping[str, Sequence[str]]
) -> dict[str, dict[str, float]]:
    """Scores of each part of the clients.

    Args:
        predictions: predictions by client.
        parts: names of clients by part; see `UncertaintyEvaluation.parts`.
    """
    return {
        name: joined([predictions[client] for client in clients]).scores()
        for name, clients in parts.items()
    }


def joined(parts: Sequence[Predicted]) -> Predicted:
    """Concatenate predictions over clients of one federation, at least one."""
    kind: Any = type(parts[0])
    whole: Predicted = kind.joined(parts)
    return whole


def _client_predictions(
    prediction: Prediction | ValuePrediction, targets: torch.Tensor, start: int, end: int
) -> Predicted:
    """Predictions of the client whose samples are the rows `start` to `end`."""
    own, noise = start + len(targets), end - len(targets)
    rows = {"own": slice(start, own), "ood": slice(own, noise), "noise": slice(noise, end)}
    scores = {name: UncertaintyScores.of(prediction, of_name) for name, of_name in rows.items()}
    if isinstance(prediction, ValuePrediction):
        mean = prediction.mean[start:own]
        variance, known = prediction.variance[start:own], targets.double().numpy()
        return ClientValues(
            mean=mean, variance=variance, targets=known.reshape(mean.shape), **scores
        )
    return ClientPredictions(
        probabilities=prediction.mean[start:own], targets=targets.long().numpy(), **scores
    )


def _validated(data: ClientData) -> ClientData:
    """The client with its validation samples as tuning samples."""
    held_out = data.views.get(VALIDATION, data.views[TEST].take(torch.arange(0)))
    return replace(data, views={**data.views, TUNING: held_out})


def _divided(data: ClientData, seed: int) -> ClientData:
    test = data.views[TEST]
    order = torch.from_numpy(generator(seed, data.client, TUNING).permutation(len(test)))
    first = max(1, len(test) // TUNING_SHARE)
    views = {
        **data.views,
        TUNING: test.take(order[:first].sort().values),
        TEST: test.take(order[first:].sort().values),
    }
    return replace(data, views=views)
