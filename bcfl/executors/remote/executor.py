"""An executor whose clients are elsewhere: one message per client and exchange."""

from __future__ import annotations

import json
import time
from collections import Counter
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any, get_args

from bcfl.executors.executor import Outcome, Outcomes
from bcfl.executors.remote.grid import Grid, Node, Payload, Purpose
from bcfl.executors.remote.messages import FORMAT, Task, pack_task, read
from bcfl.executors.remote.plain import Array, of_plain
from bcfl.hypotheses.posterior import Posterior
from bcfl.protocol.answers import Failure, FailureKind
from bcfl.protocol.requests import Request

DEADLINE = 600.0
SHORTEST, LONGEST = 0.01, 1.0
"""Seconds between two looks for replies."""
SHARE = 0.03
"""Of the time that has passed, after which the next look follows."""
WAITING = 1.0
"""Seconds between two looks for nodes that are still to come."""
PATIENCE = 60.0
SHOWN = 300
"""Most characters of a client's words in a failure."""


@dataclass(frozen=True, kw_only=True)
class Traffic:
    """What was sent so far, evaluations, greetings and repeated messages included.

    Ledgers count what a method needs to send; this is what was sent: arrays and JSON, before the
    transport adds its own. Blocks of scope `client` and answers that are not reported travel to the
    server too, since nothing of a run may depend on what nodes keep.

    Attributes:
        messages: messages to nodes.
        bytes_down: of these messages.
        bytes_up: of the replies that were read.
    """

    messages: int = 0
    bytes_down: int = 0
    bytes_up: int = 0


@dataclass(frozen=True, eq=False, kw_only=True)
class RemoteExecutor:
    """Sends requests to clients on nodes of a grid, and collects what comes before a deadline.

    Nodes that are new are greeted, and say which clients they answer for. A client is asked once in
    an exchange, with all that the hypotheses want of it. It keeps the arrays of its last message,
    and what it trained there for itself alone: these are not sent again. A client that lost them
    says so and is sent all of them. Replies are told apart by the message that they answer; others,
    and a second one, are ignored.

    Attributes:
        grid: the transport.
        setup: of the run, by which a node finds model and samples; see
            `bcfl.executors.remote.node.OpenSite`.
        digest: of the architecture, see `bcfl.executors.remote.node.model_digest`; nodes with
            another are not asked.
        deadline: of an exchange, seconds.
        patience: for a new node, seconds; one that says nothing is greeted again in the next round.
        clock: seconds that pass.
        sleep: waits for some seconds between two looks for replies.
    """

    grid: Grid
    setup: str
    digest: str
    deadline: float = DEADLINE
    patience: float = PATIENCE
    clock: Callable[[], float] = time.monotonic
    sleep: Callable[[float], None] = time.sleep
    _nodes: dict[int, _Greeted] = field(default_factory=dict, init=False, repr=False)
    _greeted_in: dict[Node, int] = field(default_factory=dict, init=False, repr=False)
    _kept: dict[str, tuple[int, frozenset[str]]] = field(
        default_factory=dict, init=False, repr=False
    )
    _counts: Counter[str] = field(default_factory=Counter, init=False, repr=False)

    @property
    def traffic(self) -> Traffic:
        """What was sent so far."""
        return Traffic(**self._counts)

    def connected(self, round: int, count: int, wait: float) -> tuple[str, ...]:
        """Names of the clients that are connected, once there are enough.

        Meanwhile nodes that said nothing within `patience` are greeted again.

        Args:
            round: number of the round that is to begin.
            count: clients to wait for.
            wait: seconds after which fewer are enough; none at all never are.
        """
        end = self.clock() + wait
        while True:
            names = tuple(sorted(self._homes(round)))
            late = self.clock() >= end
            if len(names) >= count or (names and late):
                return names
            self._greeted_in.clear()
            end = self.clock() + wait if late else end
            self.sleep(WAITING)

    def answer(
        self, requests: Sequence[Request], models: Mapping[str, Posterior], round: int
    ) -> Outcomes:
        """Answer requests.

        See `bcfl.executors.Executor`. Clients that are not connected count as missing.
        """
        if not requests:
            return {}
        homes = self._homes(round)
        by_client: dict[str, list[Request]] = {}
        for request in requests:
            by_client.setdefault(request.client, []).append(request)
        tasks = {
            client: Task(client=client, round=round, requests=tuple(asked), models=models)
            for client, asked in by_client.items()
        }
        reached = {client: task for client, task in tasks.items() if client in homes}
        answers = self._ask(reached, homes)
        return {
            request: outcome
            for client, task in tasks.items()
            for request, outcome in _by_request(task, answers.get(client, _absent(client)))
        }

    def _ask(
        self, tasks: Mapping[str, Task], homes: Mapping[str, int]
    ) -> dict[str, Payload | Failure]:
        """The reply of each client, after those that have lost arrays were sent all of them."""
        end = self.clock() + self.deadline
        replies = self._send(tasks, homes, end)
        lost = [client for client, reply in replies.items() if _lacks_models(reply)]
        for client in lost:
            self._kept.pop(client, None)
        if lost:
            replies |= self._send({client: tasks[client] for client in lost}, homes, end)
        return replies

    def _send(
        self, tasks: Mapping[str, Task], homes: Mapping[str, int], end: float
    ) -> dict[str, Payload | Failure]:
        packed, table = {}, dict[tuple[str, str], tuple[str, Array]]()
        for client, task in tasks.items():
            node, kept = self._kept.get(client, (homes[client], frozenset[str]()))
            known = kept if node == homes[client] else frozenset[str]()
            packed[client] = pack_task(self.setup, task, known, table)
        purposes = {task.purpose for task in tasks.values()}
        replies = self._exchange(
            {client: (homes[client], payload) for client, (payload, _) in packed.items()},
            "train" if "train" in purposes else "score",
            end,
        )
        for client, reply in replies.items():
            if isinstance(reply, Payload):
                self._kept[client] = homes[client], packed[client][1] | _own(reply)
            else:
                self._kept.pop(client, None)
        return replies

    def _homes(self, round: int) -> dict[str, int]:
        """The node of each client: of several the one that came last."""
        nodes = {node.id: node for node in self.grid.nodes()}
        for id, known in list(self._nodes.items()):
            if nodes.get(id) != known.node:
                del self._nodes[id]
        new = [
            id
            for id, node in nodes.items()
            if id not in self._nodes and self._greeted_in.get(node) != round
        ]
        self._greeted_in.update({nodes[id]: round for id in new})
        strangers = {str(id): (id, self._greeting) for id in new}
        end = self.clock() + min(self.deadline, self.patience)
        replies = self._exchange(strangers, "greet", end) if strangers else {}
        for name, reply in replies.items():
            clients = _clients(reply, self.digest, nodes[int(name)])
            if clients:
                self._nodes[int(name)] = _Greeted(nodes[int(name)], clients)
        newest = sorted(self._nodes.values(), key=lambda one: (one.node.since, one.node.id))
        return {client: one.node.id for one in newest for client in one.clients}

    @property
    def _greeting(self) -> Payload:
        return Payload(json.dumps({"format": FORMAT, "setup": self.setup}), {})

    def _exchange(
        self, payloads: Mapping[str, tuple[int, Payload]], purpose: Purpose, end: float
    ) -> dict[str, Payload | Failure]:
        """Send messages and wait for their replies, or the deadline.

        Args:
            payloads: by whom they are for: the node, and the content.
            purpose: of the messages.
            end: reading of the clock at which the exchange ends.
        """
        began = self.clock()
        seconds = max(end - began, 0.0)
        self._counts["messages"] += len(payloads)
        self._counts["bytes_down"] += sum(payload.num_bytes for _, payload in payloads.values())
        sent = self.grid.push(list(payloads.values()), purpose, seconds)
        waiting = {
            message: name
            for message, name in zip(sent, payloads, strict=True)
            if message is not None
        }
        replies: dict[str, Payload | Failure] = {
            name: Failure("refused", "its node did not take the message")
            for name in set(payloads) - set(waiting.values())
        }
        while waiting:
            for reply in self.grid.pull(list(waiting)):
                name = waiting.pop(reply.message, None)
                if name is not None:
                    self._counts["bytes_up"] += reply.payload.num_bytes if reply.payload else 0
                    replies[name] = reply.payload or Failure("missing", reply.trouble)
            now = self.clock()
            if not waiting or now >= end:
                break
            self.sleep(min(max(SHARE * (now - began), SHORTEST), LONGEST))
        late = Failure("missing", f"no answer within {self.deadline:g} seconds")
        return replies | dict.fromkeys(waiting.values(), late)


@dataclass(frozen=True)
class _Greeted:
    """A node, and the clients that it answers for."""

    node: Node
    clients: tuple[str, ...]


def _absent(client: str) -> Failure:
    return Failure("missing", f"client {client!r} is not connected")


def _clients(reply: Payload | Failure, digest: str, node: Node) -> tuple[str, ...]:
    """The clients of a node; none where its model is another, or its name not registered."""
    try:
        content = read(reply) if isinstance(reply, Payload) else {}
    except (ValueError, RecursionError):
        return ()
    named = content.get("clients")
    if content.get("model") != digest or not isinstance(named, list):
        return ()
    clients = tuple(str(client) for client in named)
    return clients if not node.name or clients == (node.name,) else ()


def _lacks_models(reply: Payload | Failure) -> bool:
    return isinstance(reply, Payload) and _content(reply).get("unknown") is True


def _own(reply: Payload) -> frozenset[str]:
    """Names of the arrays that a client says it keeps beside those it was sent."""
    own = _content(reply).get("own")
    return frozenset(map(str, own)) if isinstance(own, list) else frozenset()


def _content(reply: Payload) -> Mapping[str, Any]:
    try:
        return read(reply)
    except (ValueError, RecursionError):
        return {}


def _by_request(task: Task, reply: Payload | Failure) -> list[tuple[Request, Outcome]]:
    """The outcome of each request of a task."""
    if isinstance(reply, Failure):
        return [(request, reply) for request in task.requests]
    content = _content(reply)
    if "crashed" in content:
        text = f"{str(content['crashed'])[:SHOWN]}, see the log of its node"
        return [(request, Failure("crashed", text)) for request in task.requests]
    answers = content.get("answers")
    if not isinstance(answers, list) or len(answers) != len(task.requests):
        invalid = Failure("invalid", f"client {task.client!r} sent no answers to its requests")
        return [(request, invalid) for request in task.requests]
    return [
        (request, _decoded(plain, reply, task.client))
        for request, plain in zip(task.requests, answers, strict=True)
    ]


def _decoded(plain: Any, reply: Payload, client: str) -> Outcome:  # noqa: ANN401 - any JSON
    try:
        outcome = of_plain(plain, reply.arrays)
    except Exception as error:  # anything may come over a network
        kind = type(error).__name__
        return Failure("invalid", f"client {client!r} sent an answer that cannot be read ({kind})")
    if not isinstance(outcome, Failure):
        return outcome
    kind = outcome.kind if outcome.kind in get_args(FailureKind) else "invalid"
    return Failure(kind, str(outcome.text)[:SHOWN])
