"""The requests of all hypotheses in a round: deduplicated, answered, checked and counted."""

from __future__ import annotations

from collections.abc import Collection, Mapping, Sequence
from time import perf_counter
from typing import Any, TypeVar

from bcfl.architecture.model import Model
from bcfl.executors import Executor, Outcome
from bcfl.hypotheses.posterior import Posterior
from bcfl.protocol.answers import Failure
from bcfl.protocol.driving import run_exchanges
from bcfl.protocol.requests import (
    Describe,
    Exchange,
    Replies,
    Request,
    Score,
    Steps,
    Train,
    checked_exchange,
)
from bcfl.protocol.statistics.loss import LossSum
from bcfl.rounds.ledger import Cached, Ledger, told, with_remedy
from bcfl.rounds.validation import checked

Result = TypeVar("Result")


class RoundExchange:
    """The exchanges of one round; discarded when the round ends.

    Answers in `remembered` are not requested again, and blocks in `cached` not sent again.

    Attributes:
        ledger: what the exchanges cost.
    """

    def __init__(
        self,
        executor: Executor,
        model: Model,
        round: int,
        *,
        remembered: Mapping[Request, Any] | None = None,
        cached: frozenset[Cached] = frozenset(),
    ) -> None:
        self.ledger = Ledger.of(model, cached)
        self._executor = executor
        self._model = model
        self._round = round
        self._models: dict[str, Posterior] = {}
        self._answers: dict[Request, Any] = dict(remembered or {})
        self._failures: dict[Request, Failure] = {}

    def drive(self, steps: Steps[Result]) -> Result:
        """Run a generator of exchanges to its end."""
        return run_exchanges(steps, self._answer)

    def check_not_all_failed(self, num_clients: int, *, tests: bool = False) -> None:
        """Check that the user's code has not failed in the same way for all clients.

        Nothing can come of rounds in which it does, or no scores where it fails in tests. Clients
        that gave no answer do not count, and a single one of several does not speak for all. Tests
        end a run only if those of all clients fail, since it has learnt something.

        Args:
            num_clients: clients of the federation.
            tests: whether these are the exchanges of tests.

        Raises:
            ValueError: no model was trained, or tested, and the work for each client that was asked
                raised an exception of one type at one place outside this library.
        """
        failed = {r: f for r, f in self._failures.items() if f.kind != "missing"}
        asked = {r.client for r in (*self._answers, *failed) if not isinstance(r, Describe)}
        crashes = {r.client: (r, f) for r, f in failed.items() if f.error is not None}
        alike = {(type(f.error), f.text.partition(":")[0], f.place) for _, f in crashes.values()}
        fewest = num_clients if tests else min(2, num_clients)
        done = any(isinstance(request, Score if tests else Train) for request in self._answers)
        if done or len(alike) != 1 or asked != set(crashes) or len(asked) < fewest:
            return
        request, first = crashes[min(crashes)]
        who = f"all {len(asked)} clients" if len(asked) > 1 else "the only client"
        work = "the test after the first round" if tests else "the first round"
        vain = "predictions have no scores" if tests else "nothing can be learnt"
        without = "; Federation(..., evaluate=False) runs without tests" * tests
        raise ValueError(
            f"{who} that took part in {work} failed{' alike' * (len(asked) > 1)}, so that {vain}; "
            f"{with_remedy(f'{min(crashes)}: {told(request, first)}')}{without}"
        ) from first.error

    def lasting(self, keys: Collection[str]) -> dict[Request, LossSum]:
        """Scores that remain valid in later rounds, since their models survive.

        Args:
            keys: of the surviving models.
        """
        return {r: answer for r, answer in self._answers.items() if r.holds_for(keys)}

    def _answer(self, exchange: Exchange) -> Replies:
        self._models.update(checked_exchange(exchange).models)
        for request in exchange.requests:
            self.ledger.ask(request)
        missing = self._missing(exchange.requests)
        if missing:
            self._fetch(missing)
        distinct = dict.fromkeys(exchange.requests)
        replies = ((request, self._reply(request)) for request in distinct)
        return {request: reply for request, reply in replies if reply is not None}

    def _missing(self, requests: Sequence[Request]) -> list[Request]:
        """Distinct parts without an answer yet, those of one topic joined in one request."""
        topics: dict[Request, dict[Request, None]] = {}
        for request in requests:
            for part in request.parts():
                if part not in self._answers and part not in self._failures:
                    topics.setdefault(part.topic, {})[part] = None
        joined = (topic.joined(list(parts)) for topic, parts in topics.items())
        return sorted(joined, key=lambda request: (request.client, request.phase))

    def _fetch(self, requests: list[Request]) -> None:
        started = perf_counter()
        self.ledger.exchanges += 1
        for request in requests:
            self._send(request)
        outcomes = self._executor.answer(requests, self._models, self._round)
        for request in requests:
            outcome = outcomes.get(request, Failure("missing", "no answer"))
            self._take(request, checked(request, outcome, self._model))
        trains = any(request.phase == "train" for request in requests)
        phase = "train" if trains else "score"
        spent = perf_counter() - started
        self.ledger.seconds[phase] = self.ledger.seconds.get(phase, 0.0) + spent

    def _send(self, request: Request) -> None:
        try:
            self.ledger.send(request, self._models)
        except KeyError as error:
            raise ValueError(
                f"an exchange of the round must carry the models that its requests name, "
                f"{error} is missing: {request}"
            ) from error

    def _take(self, request: Request, outcome: Outcome) -> None:
        """Store an answer part by part, or the failure."""
        parts = request.parts()
        if isinstance(outcome, Failure):
            self.ledger.fail(request, outcome)
            self._failures.update(dict.fromkeys(parts, outcome))
        else:
            self.ledger.receive(request, self._model, outcome)
            self._answers.update(zip(parts, request.split(outcome), strict=True))

    def _reply(self, request: Request) -> Any | None:  # noqa: ANN401 - any answer
        parts = request.parts()
        if not all(part in self._answers for part in parts):
            return None
        return request.whole([self._answers[part] for part in parts])
