"""The program of a node: what Flower runs beside the clients' samples."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import TYPE_CHECKING, Any

from bcfl.executors import Site, respond

if TYPE_CHECKING:
    from flwr.app import Context, Message, RecordDict
    from flwr.clientapp import ClientApp

MESSAGE_TYPES = {"greet": "query.greet", "score": "evaluate.score", "train": "train.local"}
OpenNode = Callable[[str, Mapping[str, Any]], Site]
"""The site for the setup of a run and the configuration of a node."""


def node_app(open_node: OpenNode) -> ClientApp:
    """A `ClientApp` that answers for the clients of a site.

    Args:
        open_node: opens the site for the setup of a run and Flower's configuration of the node.
            It is called for each message; a process that serves several may keep what it opened.

    Raises:
        ImportError: Flower is not installed.
    """
    from flwr.app import Message
    from flwr.clientapp import ClientApp

    from bcfl.flower.records import of_records, to_records

    app = ClientApp()

    def answer(message: Message, context: Context) -> Message:
        config, kept = dict(context.node_config), _kept(context.state)
        before = dict(kept)
        reply = respond(of_records(message.content), lambda setup: open_node(setup, config), kept)
        changed = {
            client: kept[client] for client in kept if kept[client] is not before.get(client)
        }
        _keep(context.state, changed, message.content)
        return Message(to_records(reply), reply_to=message)

    app.query("greet")(answer)
    app.evaluate("score")(answer)
    app.train("local")(answer)
    return app


def _kept(state: RecordDict) -> dict[str, Mapping[str, Any]]:
    """The arrays that the node keeps, by client."""
    from bcfl.flower.records import Decoded

    return {client: Decoded(record) for client, record in state.array_records.items()}


def _keep(state: RecordDict, kept: Mapping[str, Mapping[str, Any]], message: RecordDict) -> None:
    """Keep arrays for the next message: equal names are equal arrays, encoded once."""
    from bcfl.flower.records import arrays_of, encoded

    for client, arrays in kept.items():
        known = {**state.array_records.get(client, {}), **arrays_of(message)}
        state[client] = encoded(arrays, known)
