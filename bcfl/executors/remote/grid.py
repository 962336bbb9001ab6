"""The interface of a transport: nodes, and messages that wait for their replies."""

from __future__ import annotations

from collections.abc import Collection, Mapping, Sequence
from dataclasses import dataclass
from typing import Literal, Protocol

from bcfl.executors.remote.plain import Array

Purpose = Literal["greet", "score", "train"]


@dataclass(frozen=True, eq=False)
class Payload:
    """The content of a message.

    Attributes:
        text: JSON.
        arrays: flat arrays by name, of float32, float64, int64 or bool.
    """

    text: str
    arrays: Mapping[str, Array]

    @property
    def num_bytes(self) -> int:
        """Size of text and arrays."""
        return len(self.text.encode(errors="replace")) + sum(a.nbytes for a in self.arrays.values())


@dataclass(frozen=True)
class Node:
    """A process that answers for clients.

    Attributes:
        id: of the transport; a node that restarts may have another one.
        since: when it came; of two nodes that name the same client, the newer one is asked.
        name: that it is registered under, which the client must have then; empty without
            registration.
    """

    id: int
    since: str = ""
    name: str = ""


@dataclass(frozen=True, eq=False)
class Reply:
    """What came back for a message.

    Attributes:
        message: identifier of the message that it replies to.
        payload: the answer; None if the node gave none.
        trouble: why there is none, in words of the transport, never of the client's program.
    """

    message: str
    payload: Payload | None = None
    trouble: str = "no answer"


class Grid(Protocol):
    """Sends messages to nodes; knows nothing of clients, models or rounds."""

    def nodes(self) -> Sequence[Node]:
        """The nodes that are connected now."""
        ...

    def push(
        self, payloads: Sequence[tuple[int, Payload]], purpose: Purpose, seconds: float
    ) -> Sequence[str | None]:
        """Send one message for each pair of a node's identifier and content.

        Args:
            payloads: node and content.
            purpose: what the messages are for.
            seconds: after which a message need not be delivered any more.

        Returns:
            For each pair the identifier of the message, or None where it was not accepted.
        """
        ...

    def pull(self, messages: Collection[str]) -> Sequence[Reply]:
        """Replies that have come since for some messages; returns at once.

        Args:
            messages: identifiers of messages.
        """
        ...
