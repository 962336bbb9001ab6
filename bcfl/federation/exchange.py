"""Answering what all hypotheses ask in a round: each distinct request once."""

from __future__ import annotations

from collections.abc import Collection, Iterator, Mapping, Sequence
from dataclasses import replace
from time import perf_counter
from typing import Any, TypeVar

from bcfl.executors import Executor
from bcfl.federation.ledger import Ledger
from bcfl.federation.validation import checked
from bcfl.model import Model
from bcfl.posterior import Posterior
from bcfl.requests import Exchange, Failure, LossSum, Replies, Request, Score, Steps, Train

Result = TypeVar("Result")


class RoundExchange:
    """The server's side of one round's conversation; forgotten when the round ends.

    What is `remembered` of earlier rounds is not asked again.

    Attributes:
        ledger: what the conversation cost.
    """

    def __init__(
        self,
        executor: Executor,
        model: Model,
        round: int,
        remembered: Mapping[Request, Any] | None = None,
    ) -> None:
        self.ledger = Ledger()
        self._executor = executor
        self._model = model
        self._round = round
        self._models: dict[str, Posterior] = {}
        self._answers: dict[Request, Any] = dict(remembered or {})
        self._failures: dict[Request, Failure] = {}

    def drive(self, steps: Steps[Result]) -> Result:
        """Run a generator of exchanges to its end."""
        try:
            exchange = next(steps)
            while True:
                exchange = steps.send(self._answer(exchange))
        except StopIteration as end:
            result: Result = end.value
            return result

    def lasting(self, keys: Collection[str]) -> dict[Request, LossSum]:
        """Scores that hold in later rounds too, since their models live on.

        Args:
            keys: of the models that live on.
        """
        return {
            request: answer
            for request, answer in self._answers.items()
            if isinstance(request, Score)
            and request.statistic == "loss"
            and request.models[0] in keys
        }

    def _answer(self, exchange: Exchange) -> Replies:
        self._models.update(exchange.models)
        for request in exchange.requests:
            self.ledger.ask(request)
        missing = self._missing(exchange.requests)
        if missing:
            self._fetch(missing)
        distinct = dict.fromkeys(exchange.requests)
        replies = ((request, self._reply(request)) for request in distinct)
        return {request: reply for request, reply in replies if reply is not None}

    def _missing(self, requests: Sequence[Request]) -> list[Request]:
        """Distinct requests that nobody has answered yet, the models of a score put together."""
        whole: dict[Request, None] = {}
        pairs: dict[Score, dict[str, None]] = {}
        for request in requests:
            for part in _parts(request):
                if part in self._answers or part in self._failures:
                    continue
                if isinstance(part, Score) and part.elementwise:
                    pairs.setdefault(replace(part, models=()), {})[part.models[0]] = None
                else:
                    whole[part] = None
        scores = [replace(empty, models=tuple(keys)) for empty, keys in pairs.items()]
        return sorted([*scores, *whole], key=lambda request: request.client)

    def _fetch(self, requests: list[Request]) -> None:
        started = perf_counter()
        self.ledger.exchanges += 1
        for request in requests:
            self.ledger.send(request, self._models)
        outcomes = self._executor.answer(requests, self._models, self._round)
        for request in requests:
            outcome = outcomes.get(request, Failure("missing", "no answer"))
            outcome = checked(request, outcome, self._model)
            if isinstance(outcome, Failure):
                self.ledger.failures.append(f"{request.client}: {outcome.text} ({outcome.kind})")
                self._failures.update(dict.fromkeys(_parts(request), outcome))
                continue
            self.ledger.receive(request, self._model)
            for part in _parts(request):
                self._answers[part] = (
                    outcome[part.models[0]]  # type: ignore[index]
                    if isinstance(part, Score) and part.elementwise
                    else outcome
                )
        phase = "train" if any(isinstance(r, Train) for r in requests) else "score"
        spent = perf_counter() - started
        self.ledger.seconds[phase] = self.ledger.seconds.get(phase, 0.0) + spent

    def _reply(self, request: Request) -> Any | None:  # noqa: ANN401 - any answer
        parts = list(_parts(request))
        if not all(part in self._answers for part in parts):
            return None
        if isinstance(request, Score) and request.elementwise:
            return {
                key: self._answers[part] for key, part in zip(request.models, parts, strict=True)
            }
        return self._answers[request]


def _parts(request: Request) -> Iterator[Request]:
    """The (client, model) pairs of an elementwise score; any other request as it is."""
    if isinstance(request, Score) and request.elementwise:
        for key in request.models:
            yield replace(request, models=(key,))
    else:
        yield request
