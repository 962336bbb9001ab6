"""The grid of a `ServerApp` as the executor's transport. Imports Flower."""

from __future__ import annotations

from collections.abc import Callable, Collection, Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING

from flwr.app import Message

from bcfl.executors import Node, Payload, Reply
from bcfl.flower.node import MESSAGE_TYPES
from bcfl.flower.records import all_to_records, of_records

if TYPE_CHECKING:
    import flwr.serverapp

    from bcfl.executors.remote.grid import Purpose

SHORTEST = 1.0
"""Seconds for which every message lives at least."""


@dataclass(frozen=True, eq=False)
class FlowerGrid:
    """A grid of Flower; see `bcfl.executors.Grid`.

    Attributes:
        grid: what Flower gives the main function of a `ServerApp`.
        check: raises an error where the engine behind the grid has ended.
    """

    grid: flwr.serverapp.Grid
    check: Callable[[], None] = lambda: None

    def nodes(self) -> Sequence[Node]:
        """The nodes that are connected; see `Grid.nodes`."""
        self.check()
        known = self.grid.get_nodes()
        return [Node(one.node_id, one.last_activated_at, one.name) for one in known]

    def push(
        self, payloads: Sequence[tuple[int, Payload]], purpose: Purpose, seconds: float
    ) -> Sequence[str | None]:
        """Send messages; see `Grid.push`."""
        kind, lives = MESSAGE_TYPES[purpose], max(seconds, SHORTEST)
        records = all_to_records([payload for _, payload in payloads])
        nodes = [node for node, _ in payloads]
        messages = [
            Message(content, node, kind, ttl=lives)
            for content, node in zip(records, nodes, strict=True)
        ]
        accepted = set(self.grid.push_messages(messages)) - {"", None}
        names = [message.metadata.message_id for message in messages]
        return [name if name in accepted else None for name in names]

    def pull(self, messages: Collection[str]) -> Sequence[Reply]:
        """Replies that have come; see `Grid.pull`.

        Those that the server makes itself have another sender, so replies are told apart by the
        message that they answer.
        """
        self.check()
        return [_reply(message) for message in self.grid.pull_messages(set(messages))]


def _reply(message: Message) -> Reply:
    asked = message.metadata.reply_to_message_id
    if message.has_content():
        return Reply(asked, of_records(message.content))
    return Reply(asked, trouble=f"its node failed with code {message.error.code} of Flower")
