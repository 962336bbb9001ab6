"""Running a generator of exchanges outside a federation: for tests and for authors of policies."""

from __future__ import annotations

from collections.abc import Callable, Generator, Mapping
from typing import Any, Literal, TypeAlias, TypeVar, overload

from bcfl.protocol.requests import Exchange, Replies, Request, Steps
from bcfl.runtime import as_given

Result = TypeVar("Result")
Answers: TypeAlias = Callable[[Any], Any] | Mapping[Any, Any]
"""Answer to each request, by a function or a mapping; None, or no entry: the client is silent."""


def run_exchanges(steps: Steps[Result], reply: Callable[[Exchange], Replies]) -> Result:
    """Run a generator of exchanges to its end.

    Args:
        steps: generator, such as that of `bcfl.policies.Policy.associate` or
            `bcfl.trackers.Tracker.step`.
        reply: answers to the requests of one exchange, by request.

    Returns:
        What the generator returns.
    """
    try:
        exchange = next(steps)
        while True:
            exchange = steps.send(reply(exchange))
    except StopIteration as end:
        result: Result = end.value
        return result


@overload
def drive(
    steps: Steps[Result], answers: Answers | None = None, *, return_exchanges: Literal[False] = ...
) -> Result: ...


@overload
def drive(
    steps: Steps[Result], answers: Answers | None = None, *, return_exchanges: Literal[True]
) -> tuple[Result, list[Exchange]]: ...


def drive(
    steps: Steps[Result], answers: Answers | None = None, *, return_exchanges: bool = False
) -> Result | tuple[Result, list[Exchange]]:
    """Run the generator of a policy or tracker to its end with given answers.

    Args:
        steps: generator, such as that of `bcfl.policies.Policy.associate` or
            `bcfl.trackers.Tracker.step`.
        answers: function from a request to its answer, or mapping of answers by request. A request
            answered by None, or without an entry, counts as unanswered. None if the generator is
            expected to make no request.
        return_exchanges: also return the exchanges that the generator has yielded, in order.

    Returns:
        What the generator returns; with `return_exchanges`, a pair of that and the exchanges.

    Raises:
        TypeError: `steps` is no generator, such as a method that was not called.
        ValueError: the generator makes a request and there are no answers.

    Example:
        >>> import bcfl
        >>> from bcfl.protocol.requests import Exchange
        >>> def policy():
        ...     replies = yield Exchange(("size of a", "size of b"), {})
        ...     return sum(replies.values())
        >>> bcfl.drive(policy(), {"size of a": 3})
        3
    """
    if not isinstance(steps, Generator):
        raise TypeError(
            "steps must be a generator, as policy.associate(hypothesis, context) returns it, got "
            f"{as_given(steps)}"
        )
    exchanges: list[Exchange] = []

    def reply(exchange: Exchange) -> Replies:
        exchanges.append(exchange)
        if answers is None:
            raise ValueError(f"answers must be given: the generator requests {exchange.requests}")
        answer = answers.get if isinstance(answers, Mapping) else answers
        pairs = ((request, answer(request)) for request in dict.fromkeys(exchange.requests))
        replies: dict[Request, Any] = {request: a for request, a in pairs if a is not None}
        return replies

    result = run_exchanges(steps, reply)
    return (result, exchanges) if return_exchanges else result
