"""A transport inside the test process, with faults at will."""

from dataclasses import dataclass, field, replace

from bcfl.executors import Node, Reply, Site, model_digest, respond
from bcfl.executors.remote.executor import RemoteExecutor


@dataclass
class Clock:
    """Seconds that pass only in `sleep`."""

    now: float = 0.0

    def __call__(self):
        return self.now

    def sleep(self, seconds):
        self.now += seconds


@dataclass
class FakeGrid:
    """Nodes that answer at once, unless `altered` or `delays` say otherwise.

    Attributes:
        sites: by node; their clients' work is done when a reply is pulled.
        altered: from a node, the purpose and the honest reply to the replies that come instead.
        delays: by node, seconds until a reply comes.
    """

    sites: dict
    clock: Clock = field(default_factory=Clock)
    altered: object = None
    delays: dict = field(default_factory=dict)
    listed: dict = field(default_factory=dict)
    kept: dict = field(default_factory=dict)
    pushed: list = field(default_factory=list)
    _waiting: dict = field(default_factory=dict)

    def nodes(self):
        return [self.listed.get(id, Node(id)) for id in self.sites]

    def push(self, payloads, purpose, seconds):
        messages = []
        for node, payload in payloads:
            self.pushed.append((node, purpose, payload))
            message = f"message {len(self.pushed)}"
            if node in self.sites:
                due = self.clock.now + self.delays.get(node, 0.0)
                self._waiting[message] = (due, node, purpose, payload)
                messages.append(message)
            else:
                messages.append(None)
        return messages

    def pull(self, messages):
        replies = []
        for message in list(messages):
            due, node, purpose, payload = self._waiting[message]
            if due > self.clock.now:
                continue
            answer = respond(payload, self.sites[node], self.kept.setdefault(node, {}))
            honest = Reply(message, answer)
            replies += self.altered(node, purpose, honest) if self.altered else [honest]
        return replies

    def of(self, purpose):
        """Node and message of one purpose, in the order in which they were pushed."""
        return [(node, payload) for node, p, payload in self.pushed if p == purpose]


def opener(executor, clients, model):
    """Opens the same site for any run."""
    site = Site(executor, tuple(clients), model)
    return lambda setup: site


def grid_of(federation, rounds, nodes=None):
    """A grid with a node for each client of a federation, or with its clients on few nodes."""
    executor = federation.executor_of(rounds)
    names = federation.answering
    count = nodes or len(names)
    return FakeGrid(
        {node: opener(executor, names[node::count], federation.model) for node in range(count)}
    )


def reaching(grid, federation, **options):
    """The executor that reaches a federation's clients over a grid."""
    executor = RemoteExecutor(
        grid=grid,
        setup="run",
        digest=model_digest(federation.model),
        clock=grid.clock,
        sleep=grid.clock.sleep,
    )
    return replace(executor, **options)
