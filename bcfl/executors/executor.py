"""The interface of executors, which answer batches of distinct requests."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any, Protocol, TypeAlias

from bcfl.hypotheses.posterior import Posterior
from bcfl.protocol.requests import Request

Outcome: TypeAlias = Any
"""An answer, whose type depends on the request and its statistic, or a `Failure`."""
Outcomes: TypeAlias = dict[Request, Outcome]


class Executor(Protocol):
    """Runs requests on the clients: in this process, in others, or over a network."""

    def answer(
        self, requests: Sequence[Request], models: Mapping[str, Posterior], round: int
    ) -> Outcomes:
        """Answer requests, waiting for the clients.

        Args:
            requests: distinct requests.
            models: posteriors by the keys that the requests name.
            round: number of the round.

        Returns:
            An answer or a failure for each request; one left out counts as missing.
        """
        ...
