"""All that a server can ask of a client, what clients answer, and how questions are put together.

Requests name models by key and objectives by numbers, so that they could travel over a network as
they are. Policies and trackers are generators: they yield an `Exchange` and are sent the
`Replies`. Whoever drives them answers each distinct request once.
"""

from __future__ import annotations

from collections.abc import Generator, Iterable, Mapping, Sequence
from dataclasses import dataclass
from typing import Any, Literal, TypeAlias, TypeVar

import numpy as np
from numpy.typing import NDArray
from torch import Tensor

from bcfl.comparison import BestCounts, SupportTest, TestedLoss
from bcfl.objective import Curvature as Curvature
from bcfl.objective import Objective as Objective
from bcfl.posterior import Posterior
from bcfl.prediction import Pooling, PredictionSums

Statistic = Literal["loss", "evidence", "prediction", "best_counts", "support"]


@dataclass(frozen=True)
class Describe:
    """Ask a client who it is; answered by `ClientInfo`."""

    client: str


@dataclass(frozen=True)
class Score:
    """Ask a client how well models fit its samples.

    Attributes:
        client: name of the client.
        models: keys of the models.
        statistic: `loss` is answered by {key: LossSum}, `evidence` by {key: EvidenceSum},
            `prediction` by the `PredictionSums` of the mixture of the models, `best_counts` by the
            `BestCounts` of the models, `support` by the `SupportTest` of two models: the one that
            the client has, and the one that is offered.
        view: which of the client's samples.
        samples: use an unbiased subset of at most so many samples, rescaled; None uses all.
        weights: for `prediction`: mixture weight of each model, summing to 1.
        pooling: for `prediction`: whether the models' probabilities are averaged or their logits.
        epsilon: for `support`: by how much the offered model may be worse, nats per sample.
        loss: for `support`: `raw`, or `capped` where wrongly classified samples cost log(classes).
    """

    client: str
    models: tuple[str, ...]
    statistic: Statistic = "loss"
    view: str = "train"
    samples: int | None = None
    weights: tuple[float, ...] = ()
    pooling: Pooling = "probabilities"
    epsilon: float = 0.0
    loss: TestedLoss = "raw"

    @property
    def elementwise(self) -> bool:
        """Whether each model is answered on its own, so that pairs can be shared."""
        return self.statistic in ("loss", "evidence")


@dataclass(frozen=True)
class Train:
    """Ask a client to train from a model; answered by `Trained`.

    Attributes:
        client: name of the client.
        start: key of the model to start from.
        objective: how to train.
        references: for each term of the objective, the keys of the models that it needs.
    """

    client: str
    start: str
    objective: Objective
    references: tuple[tuple[str, ...], ...] = ()

    @property
    def models(self) -> tuple[str, ...]:
        """Keys of all models that the client must be sent."""
        others = (key for keys in self.references for key in keys)
        return tuple(dict.fromkeys((self.start, *others)))


Request: TypeAlias = Describe | Score | Train


@dataclass(frozen=True)
class ClientInfo:
    """Answer to `Describe`: samples per view, and shape of one input sample."""

    num_samples: Mapping[str, int]
    input_shape: tuple[int, ...]


@dataclass(frozen=True)
class LossSum:
    """Loss of one model on one client.

    Attributes:
        total: negative log-likelihood summed over all samples of the view, nats; estimated where
            a subset was scored.
        standard_error: of that estimate, nats; 0 where all samples were scored.
        num_samples: samples in the view.
    """

    total: float
    standard_error: float
    num_samples: int


@dataclass(frozen=True, eq=False)
class EvidenceSum:
    """Quadratic expansion of one client's log-likelihood at a model.

    Attributes:
        log_likelihood: summed over the view's samples, nats.
        gradient: (parameters,) of the log-likelihood.
        curvature: (parameters,) diagonal Gauss-Newton, summed.
        num_samples: samples in the view.
    """

    log_likelihood: float
    gradient: Tensor
    curvature: Tensor
    num_samples: int


@dataclass(frozen=True, eq=False)
class Trained:
    """A client's model after local training.

    Attributes:
        mean: (parameters,) trained parameters.
        buffers: (buffers,) running statistics.
        curvature: (parameters,) precision of the likelihood, or one number for all parameters.
        num_samples: training samples of the client.
    """

    mean: Tensor
    buffers: Tensor
    curvature: Tensor
    num_samples: int


Scores: TypeAlias = Mapping[str, LossSum] | Mapping[str, EvidenceSum]
Answer: TypeAlias = ClientInfo | Scores | PredictionSums | BestCounts | SupportTest | Trained


@dataclass(frozen=True)
class Failure:
    """Why a client gave no usable answer.

    Attributes:
        kind: `missing` (no answer), `refused`, `crashed`, or `invalid` (NaN, inf, wrong shape).
        text: one sentence for people.
    """

    kind: Literal["missing", "refused", "crashed", "invalid"]
    text: str


Replies: TypeAlias = Mapping[Request, Any]
"""Answers by request. A request without an entry was not answered: that is normal."""


@dataclass(frozen=True, eq=False)
class Exchange:
    """Requests asked at one time, and the models that they name.

    Attributes:
        requests: in any order, repeats allowed.
        models: posteriors by key; those known from earlier exchanges of the round may be left out.
    """

    requests: tuple[Request, ...]
    models: Mapping[str, Posterior]

    @classmethod
    def of(cls, requests: Iterable[Request], models: Iterable[Posterior]) -> Exchange:
        """Ask `requests` about `models`."""
        return cls(tuple(requests), {posterior.key: posterior for posterior in models})


Result = TypeVar("Result")
Steps: TypeAlias = Generator[Exchange, Replies, Result]


def together(steps: Sequence[Steps[Result]]) -> Steps[list[Result]]:
    """Run several generators in lockstep, so that what they ask at one time is asked at once."""
    results: dict[int, Result] = {}
    asking: dict[int, Exchange] = {}

    def advance(index: int, replies: Replies | None) -> None:
        try:
            asking[index] = next(steps[index]) if replies is None else steps[index].send(replies)
        except StopIteration as end:
            asking.pop(index, None)
            results[index] = end.value

    for index in range(len(steps)):
        advance(index, None)
    while asking:
        replies = yield Exchange(
            tuple(request for exchange in asking.values() for request in exchange.requests),
            {key: m for exchange in asking.values() for key, m in exchange.models.items()},
        )
        for index in sorted(asking):
            advance(index, replies)
    return [results[index] for index in range(len(steps))]


def loss_matrix(
    clients: Sequence[str], keys: Sequence[str], scores: Mapping[str, Mapping[str, LossSum]]
) -> tuple[NDArray[np.float64], NDArray[np.float64]]:
    """Summed losses (clients, models) and numbers of samples (clients,) from score replies."""
    losses = [[scores[client][key].total for key in keys] for client in clients]
    counts = [scores[client][keys[0]].num_samples for client in clients]
    return np.array(losses).reshape(len(clients), len(keys)), np.array(counts, dtype=np.float64)
