"""How far the predictions of a run can be trusted: on test samples, out of distribution, and noise.

Prior precision and temperature are chosen (see `Run.tuned`) on the training samples that were set
aside, if the run did that; otherwise a third of each client's test samples chooses, and scores are
those of the rest, whether or not anything was tuned.
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
from bcfl.data.clients import TEST, VALIDATION
from bcfl.executors import Executor, LoopExecutor
from bcfl.hypotheses.association import UNSEEN
from bcfl.rounds.evaluation import served_mixture
from bcfl.runtime.seeds import generator
from experiments.scores import uncertainty

TUNING, TUNING_SHARE = "tuning", 3
By = Literal["all", "cluster", "client"]
Array = NDArray[np.float64]


@dataclass(frozen=True, eq=False)
class UncertaintyScores:
    """How uncertain predictions are, by three measures.

    Attributes:
        entropy: (samples,) of the prediction, nats.
        knowledge: (samples,) the part due to not knowing model and association, nats.
        ood_score: (samples,) of the inputs to the client's clusters, nats.
    """

    entropy: Array
    knowledge: Array
    ood_score: Array

    @classmethod
    def of(cls, prediction: Prediction, rows: slice) -> UncertaintyScores:
        """Of some of the predicted samples."""
        knowledge = prediction.model_uncertainty + prediction.association_uncertainty
        ood_score = prediction.ood_score
        assert ood_score is not None
        return cls(prediction.entropy[rows], knowledge[rows], ood_score[rows])

    @classmethod
    def joined(cls, parts: Sequence[UncertaintyScores]) -> UncertaintyScores:
        """Of all samples together."""
        return cls(
            np.concatenate([part.entropy for part in parts]),
            np.concatenate([part.knowledge for part in parts]),
            np.concatenate([part.ood_score for part in parts]),
        )


@dataclass(frozen=True, eq=False)
class ClientPredictions:
    """Predictions for samples of some clients, each with the mixture that serves the client.

    Attributes:
        probabilities: (samples, classes) for the clients' own test samples.
        targets: (samples,) their true classes.
        own: doubt about these.
        strange: doubt about as many samples of clients of other groups.
        noise: doubt about as many samples of uniform noise.
    """

    probabilities: Array
    targets: NDArray[np.int64]
    own: UncertaintyScores
    strange: UncertaintyScores
    noise: UncertaintyScores

    @classmethod
    def joined(cls, parts: Sequence[ClientPredictions]) -> ClientPredictions:
        """Of all clients together."""
        return cls(
            np.concatenate([part.probabilities for part in parts]),
            np.concatenate([part.targets for part in parts]),
            UncertaintyScores.joined([part.own for part in parts]),
            UncertaintyScores.joined([part.strange for part in parts]),
            UncertaintyScores.joined([part.noise for part in parts]),
        )

    def scores(self) -> dict[str, float]:
        """All scores by name; strange samples and noise are found by strangeness and by others."""
        found = uncertainty.summarise(self.probabilities, self.targets)
        for source, doubt in (("strange", self.strange), ("noise", self.noise)):
            wanted = np.repeat([False, True], [len(self.own.entropy), len(doubt.entropy)])
            by = {
                name: uncertainty.detection(
                    np.concatenate([getattr(self.own, name), getattr(doubt, name)]), wanted
                )
                for name in ("ood_score", "entropy", "knowledge")
            }
            found |= {
                f"{source}_auroc": by["ood_score"].auroc,
                f"{source}_aupr": by["ood_score"].aupr,
                f"{source}_fpr95": by["ood_score"].fpr95,
                f"{source}_auroc_entropy": by["entropy"].auroc,
                f"{source}_auroc_knowledge": by["knowledge"].auroc,
            }
        return found


@dataclass(frozen=True, eq=False)
class UncertaintyEvaluation:
    """The clients of a run with their test samples, ready for any prediction rule.

    Attributes:
        run: the run.
        clients: its clients.
        seed: of the run; picks tuning samples, strange samples and noise.
    """

    run: Run
    clients: Sequence[ClientData]
    seed: int

    @cached_property
    def divided(self) -> tuple[ClientData, ...]:
        """The clients that have test samples, with a view of samples for tuning."""
        if any(len(data.views.get(VALIDATION, ())) for data in self.clients):
            return tuple(_validated(data) for data in self.clients if data.views.get(TEST))
        return tuple(
            _divided(data, self.seed) for data in self.clients if len(data.views.get(TEST, ())) > 1
        )

    def tuned(self, rule: PredictionRule) -> PredictionRule:
        """The rule with prior precision and temperature from the samples for tuning."""
        run = replace(self.run, executor=_holding(self.divided, self.run, self.seed))
        return run.tuned(rule, clients=[data.client for data in self.divided], view=TUNING)

    def outcomes(self, rule: PredictionRule) -> dict[str, ClientPredictions]:
        """What a rule predicts, by client; clients that the same models serve share a pass."""
        found: dict[str, ClientPredictions] = {}
        for served in self._served_alike:
            inputs = torch.cat([self._inputs[data.client] for data in served])
            prediction = self._informed.predict(served[0].client, inputs, rule)
            end = 0
            for data in served:
                start, end = end, end + len(self._inputs[data.client])
                found[data.client] = _outcome(prediction, data.views[TEST].targets, start, end)
        return {data.client: found[data.client] for data in self.divided}

    def parts(self, by: By) -> dict[str, list[str]]:
        """Clients to be scored together, by name of the part."""
        names = [data.client for data in self.divided]
        if by == "all":
            return {"all": names}
        if by == "client":
            return {name: [name] for name in names}
        found: dict[str, list[str]] = {}
        for name in names:
            cluster = self._clusters[name]
            part = "not seen" if cluster == UNSEEN else f"cluster {cluster}"
            found.setdefault(part, []).append(name)
        return dict(sorted(found.items()))

    @cached_property
    def _informed(self) -> Run:
        """The run with its clients, whose sums tell what is out of distribution."""
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
    def _kin(self) -> Mapping[str, int]:
        """Whom a client's samples are like: its true group where all are known, or its cluster."""
        groups = {data.client: data.group for data in self.divided if data.group is not None}
        return groups if len(groups) == len(self.divided) else self._clusters

    @cached_property
    def _served_alike(self) -> list[list[ClientData]]:
        """Clients that are served by the same models with the same probabilities, together."""
        found: dict[frozenset[tuple[str, float]], list[ClientData]] = {}
        for data in self.divided:
            mixture = served_mixture(self.run.hypotheses, data.client)
            signature = frozenset((posterior.key, share) for posterior, share in mixture.items())
            found.setdefault(signature, []).append(data)
        return list(found.values())

    @cached_property
    def _inputs(self) -> dict[str, torch.Tensor]:
        """By client: its own samples, as many of other groups where there are any, and noise."""
        found = {}
        for data in self.divided:
            own = data.views[TEST].inputs
            low, high = (float(edge) for edge in own.aminmax())
            random = generator(self.seed, data.client, "noise")
            noise = torch.from_numpy(random.uniform(low, high, size=tuple(own.shape))).to(own)
            found[data.client] = torch.cat([own, self._strange(data, len(own)), noise])
        return found

    def _strange(self, data: ClientData, count: int) -> torch.Tensor:
        """Test inputs of clients of other true groups, of other clusters where none is known."""
        kin = self._kin
        others = [
            other.views[TEST].inputs
            for other in self.divided
            if kin[other.client] != kin[data.client]
        ]
        if not others:
            return data.views[TEST].inputs[:0]
        pool = torch.cat(others)
        random = generator(self.seed, data.client, "strange")
        return pool[torch.from_numpy(random.permutation(len(pool))[:count])]


def _holding(clients: Sequence[ClientData], run: Run, seed: int) -> Executor:
    """Answers for clients with these samples."""
    mean = run.hypotheses.best.clusters[0].mean(run.model)
    return LoopExecutor.on(clients, run.model, seed, mean.device, mean.dtype)


def scores(
    outcomes: Mapping[str, ClientPredictions], parts: Mapping[str, Sequence[str]]
) -> dict[str, dict[str, float]]:
    """Scores of each part of the clients.

    Args:
        outcomes: by client.
        parts: clients by part, see `UncertaintyEvaluation.parts`.
    """
    return {
        name: ClientPredictions.joined([outcomes[client] for client in clients]).scores()
        for name, clients in parts.items()
    }


def _outcome(
    prediction: Prediction, targets: torch.Tensor, start: int, end: int
) -> ClientPredictions:
    """Of the client whose samples are these rows of a prediction."""
    own, noise = start + len(targets), end - len(targets)
    return ClientPredictions(
        prediction.mean[start:own],
        targets.numpy(),
        UncertaintyScores.of(prediction, slice(start, own)),
        UncertaintyScores.of(prediction, slice(own, noise)),
        UncertaintyScores.of(prediction, slice(noise, end)),
    )


def _validated(data: ClientData) -> ClientData:
    """The client, with its validation samples for tuning."""
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
