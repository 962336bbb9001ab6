"""Requests from the server to clients, and their decomposition into parts.

Requests name models by key and objectives and statistics by name and hyperparameters, so that they
can be sent over a network. Policies and trackers are generators: they yield an `Exchange`
and are sent the `Replies`. The framework deduplicates requests, so that each is answered once.
"""

from __future__ import annotations

from collections.abc import Collection, Generator, Hashable, Iterable, Mapping, Sequence
from dataclasses import dataclass
from reprlib import repr as shortened
from typing import Any, ClassVar, TypeAlias, TypeVar

import numpy as np
from numpy.typing import NDArray

from bcfl.data.names import TRAIN
from bcfl.hypotheses.posterior import Posterior
from bcfl.protocol.objective import Objective
from bcfl.protocol.statistics.loss import Loss, LossSum
from bcfl.protocol.statistics.statistic import Statistic

LOSS = Loss()
TRAINING = (TRAIN,)


class Undivided:
    """A request with one part: itself."""

    def parts(self) -> tuple[Any, ...]:
        """Its parts, each of which is answered once per round."""
        return (self,)

    @property
    def topic(self) -> Any:  # noqa: ANN401 - the request
        """Parts of the same topic can be joined in one request."""
        return self

    def joined(self, parts: Sequence[Any]) -> Any:  # noqa: ANN401 - a request
        """One request for parts of this topic."""
        return parts[0]

    def split(self, answer: Any) -> Sequence[Any]:  # noqa: ANN401 - any answer
        """The answers to its parts, from the answer to the request."""
        return (answer,)

    def whole(self, answers: Sequence[Any]) -> Any:  # noqa: ANN401 - any answer
        """The answer to the request, from the answers to its parts."""
        return answers[0]

    def holds_for(self, keys: Collection[str]) -> bool:
        """Whether the answer holds in later rounds, in which the models of some keys live on."""
        del keys
        return False


@dataclass(frozen=True)
class Describe(Undivided):
    """Ask a client for its number of samples and their shape; answered by `ClientInfo`.

    Attributes:
        client: name of the client.
    """

    client: str
    phase: ClassVar[str] = "score"


@dataclass(frozen=True, kw_only=True)
class Score:
    """Ask a client for a statistic of models on its samples, which defines the answer.

    `Loss()` is answered by a `LossSum` for each model, by key: `replies[request][key].total`. What
    the others are answered by is said in their docstrings, and in the tutorial on policies.

    Attributes:
        client: name of the client.
        models: keys of the models; a list becomes a tuple.
        statistic: what to report of them.
        view: which of the client's samples.
        samples: use an unbiased subset of at most so many samples, rescaled; None uses all.
        held: keys of those models that the client has itself; they need not be sent.
        reported: whether the answer is sent to the server; a client keeps what it alone needs.
    """

    client: str
    models: tuple[str, ...]
    statistic: Statistic = LOSS
    view: str = "train"
    samples: int | None = None
    held: tuple[str, ...] = ()
    reported: bool = True
    phase: ClassVar[str] = "score"

    def __post_init__(self) -> None:
        models: object = self.models
        if isinstance(models, list):
            object.__setattr__(self, "models", tuple(models))

    def parts(self) -> tuple[Request, ...]:
        """The (client, model) pairs of an elementwise statistic, else the request itself."""
        if not self.statistic.elementwise:
            return (self,)
        return tuple(self._of((key,)) for key in self.models)

    def whole(self, answers: Sequence[Any]) -> Any:  # noqa: ANN401 - any answer
        """The answer to the request, from the answers to its parts."""
        if not self.statistic.elementwise:
            return answers[0]
        return dict(zip(self.models, answers, strict=True))

    def split(self, answer: Any) -> Sequence[Any]:  # noqa: ANN401 - any answer
        """The answers to its parts, from the answer to the request."""
        return [answer[key] for key in self.models] if self.statistic.elementwise else (answer,)

    @property
    def topic(self) -> Request:
        """Pairs of one client that differ in the model alone have the same topic."""
        return self._of(()) if self.statistic.elementwise else self

    def joined(self, parts: Sequence[Any]) -> Request:
        """One request for parts of this topic."""
        keys = dict.fromkeys(key for part in parts for key in part.models)
        return self._of(tuple(keys)) if self.statistic.elementwise else parts[0]

    def _of(self, models: tuple[str, ...]) -> Score:
        """The same about other models; many are made, and `dataclasses.replace` is slow."""
        return Score(
            client=self.client,
            models=models,
            statistic=self.statistic,
            view=self.view,
            samples=self.samples,
            held=self.held,
            reported=self.reported,
        )

    def holds_for(self, keys: Collection[str]) -> bool:
        """Whether the answer holds in later rounds, in which the models of some keys live on."""
        return self.statistic.lasting and all(key in keys for key in self.models)


@dataclass(frozen=True)
class Train(Undivided):
    """Ask a client to train from a model; answered by `Trained`.

    Attributes:
        client: name of the client.
        start: key of the model to start from.
        objective: how to train.
        references: for each term of the objective, the keys of the models that it needs.
        views: of the client's samples, which are trained on together.
        held: keys of those models that the client has itself, such as its own last one; they need
            not be sent.
    """

    client: str
    start: str
    objective: Objective
    references: tuple[tuple[str, ...], ...] = ()
    views: tuple[str, ...] = TRAINING
    held: tuple[str, ...] = ()
    phase: ClassVar[str] = "train"

    @property
    def models(self) -> tuple[str, ...]:
        """Keys of all models that the client needs."""
        others = (key for keys in self.references for key in keys)
        return tuple(dict.fromkeys((self.start, *others)))


Request: TypeAlias = Describe | Score | Train
_KINDS = (Score, Train, Describe)


Replies: TypeAlias = Mapping[Request, Any]
"""Answers by request. A request without an entry was not answered: that is normal."""


@dataclass(frozen=True, eq=False)
class Exchange:
    """Requests that are answered together, and the models that they name.

    Attributes:
        requests: in any order, repeats allowed.
        models: posteriors by key; those known from earlier exchanges of the round may be left out.
    """

    requests: tuple[Request, ...]
    models: Mapping[str, Posterior]

    @classmethod
    def of(cls, requests: Iterable[Request], models: Iterable[Posterior]) -> Exchange:
        """An exchange of requests and the models that they name.

        Args:
            requests: to be answered together.
            models: that they name, in any order.
        """
        return cls(tuple(requests), {posterior.key: posterior for posterior in models})


Result = TypeVar("Result")
Steps: TypeAlias = Generator[Exchange, Replies, Result]


class ProtocolError(TypeError, ValueError):
    """A policy or tracker yields or returns something else than what it must."""


def checked_exchange(made: object) -> Exchange:
    """What a generator has yielded, if it is an exchange of requests about statistics.

    Args:
        made: what was yielded.

    Raises:
        ProtocolError: it is no exchange, it holds no requests, a request names models otherwise
            than by their keys, or a score asks for no statistic.
    """
    if not isinstance(made, Exchange):
        raise ProtocolError(
            f"a policy or tracker must yield a bcfl.protocol.Exchange, got {shortened(made)}"
        )
    known: set[type] = set()
    for request in made.requests:
        if not isinstance(request, _KINDS):
            raise ProtocolError(
                f"an exchange must hold Describe, Score and Train, got {shortened(request)}"
            )
        _check_keys(request)
        if not isinstance(request, Score) or type(request.statistic) in known:
            continue
        if not isinstance(request.statistic, Statistic):
            raise ProtocolError(
                f"the statistic of a Score must be one of bcfl.protocol, such as Loss(), got "
                f"{shortened(request.statistic)}"
            )
        known.add(type(request.statistic))
    return made


def _check_keys(request: Request) -> None:
    """Check that models are named by their keys."""
    match request:
        case Score(models=models) if not _are_keys(models):
            named, given = "models of a Score must be a tuple of keys", models
        case Train(start=start) if not isinstance(start, str):
            named, given = "start of a Train must be the key of a model", start
        case _:
            return
    raise ProtocolError(f"{named}, such as hypothesis.clusters[0].key, got {shortened(given)}")


def _are_keys(models: object) -> bool:
    return isinstance(models, tuple) and all(isinstance(key, str) for key in models)


def together(steps: Sequence[Steps[Result]]) -> Steps[list[Result]]:
    """Run several generators in lockstep, joining their exchanges.

    Args:
        steps: each yields exchanges and returns its result.

    Returns:
        Generator of joined exchanges, which returns the results of all, in order.
    """
    results: dict[int, Result] = {}
    asking: dict[int, Exchange] = {}

    def advance(index: int, replies: Replies | None) -> None:
        try:
            made = next(steps[index]) if replies is None else steps[index].send(replies)
            asking[index] = checked_exchange(made)
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


Row = TypeVar("Row", bound=Hashable)


def loss_matrix(
    rows: Sequence[Row],
    keys: Mapping[Row, Sequence[str]],
    scores: Mapping[Row, Mapping[str, LossSum]],
) -> tuple[NDArray[np.float64], NDArray[np.float64]]:
    """Summed losses (rows, models) and numbers of samples (rows,) from score replies.

    Args:
        rows: names of the clients, or of their samples, in the order of the rows.
        keys: for each row, the keys of the models in the order of the columns.
        scores: reported losses by row and model key.
    """
    width = max((len(keys[row]) for row in rows), default=0)
    losses = [[scores[row][key].total for key in keys[row]] for row in rows]
    counts = [scores[row][keys[row][0]].num_samples for row in rows]
    return np.array(losses).reshape(len(rows), width), np.array(counts, dtype=np.float64)
