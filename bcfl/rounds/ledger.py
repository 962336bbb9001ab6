"""What a round cost: requests and work, bytes on the wire, seconds by phase."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from typing import TypeAlias

from bcfl.architecture.layout import Slot
from bcfl.architecture.model import Model
from bcfl.data.names import TEST
from bcfl.executors import releases
from bcfl.hypotheses.posterior import Block, Posterior
from bcfl.protocol.answers import Failure, Trained
from bcfl.protocol.requests import Describe, Request, Score, Train
from bcfl.protocol.statistics.statistic import FLOAT_BYTES, NUMBER_BYTES

Cached: TypeAlias = tuple[str, str]
"""A client, and the key of a block that it keeps."""

NUMBERS = (
    "; numbers that leave the range of floats often come from inputs that are not scaled, or from "
    "a learning rate that is too large: scale inputs to about 0 to 1, or lower "
    "Objective(learning_rate=...), which is learning_rate of [training] in scenario files"
)
"""What to do about numbers that are unusable."""
INDICES = (
    "; indices must be at least 0 and, where nn.Embedding looks them up, below its `num_embeddings`"
)
"""What to do about indices that are out of range."""
TESTED = "when tested on view "


def told(request: Request, failure: Failure) -> str:
    """What a client failed to do, without its name.

    Args:
        request: what it was asked.
        failure: why it gave no usable answer; where the cause is its own work, the text says in
            which kind of work.
    """
    own = failure.kind in ("crashed", "invalid")
    return f"{failure.text}, {_work(request)}" if own else failure.text


def _work(request: Request) -> str:
    match request:
        case Train(views=views):
            return f"when training on view {' and '.join(map(repr, views))}"
        case Score(view=view) if view == TEST:
            return f"{TESTED}{view!r}"
        case Score(view=view):
            return f"when scoring models on view {view!r}"
        case Describe():
            return "when describing its samples"


def failed_in_test(failure: str) -> bool:
    """Whether a client failed in the test of what it is served, and not in training or scoring.

    Args:
        failure: of a client, as in `bcfl.rounds.Ledger.failures`.
    """
    return f", {TESTED}" in failure


def with_remedy(failure: str) -> str:
    """A failure, with the usual remedy where it is one of numbers or of indices.

    Args:
        failure: of a client, as in `bcfl.rounds.Ledger.failures`.
    """
    indices = "IndexError: index out of range in self" in failure
    return failure + NUMBERS * failure.endswith("(invalid)") + INDICES * indices


@dataclass(kw_only=True)
class Ledger:
    """Counts of one round; evaluation is not counted.

    Attributes:
        exchanges: round trips between server and clients.
        scores_requested: scores of (client, model) pairs requested over all hypotheses.
        scores_run: scores run after deduplication.
        trainings_requested: local trainings requested over all hypotheses.
        trainings_run: local trainings run after deduplication.
        bytes_down: payload sent to clients: each distinct block once per client and round. What a
            client has itself (`bcfl.protocol.Train.held`, `bcfl.protocol.Score.held`) is not sent.
            Clients keep the references of a training that they did, and its frozen blocks, until
            they do trainings without them: these are not sent again. Buffers of which more than
            half are zeros travel with their places instead.
        parameters_run: parameters of the networks that clients evaluated or trained, each distinct
            block once per client and round.
        bytes_up: payload of the clients' answers, except those that they keep.
        failures: one sentence for each request that got no usable answer, those of tests included;
            where a client's own work failed, it says in training, in a test or in scoring.
        seconds: wall-clock time by phase.
        releases: how often each client releases something of its training samples, if it
            randomises what it sends; evaluation and beliefs are counted too.
        private: names of blocks that stay with their clients, and are not sent.
        frozen: names of blocks that no client trains.
        cached: client and key of blocks that were sent in earlier rounds, and are kept since.
    """

    exchanges: int = 0
    scores_requested: int = 0
    scores_run: int = 0
    trainings_requested: int = 0
    trainings_run: int = 0
    bytes_down: int = 0
    parameters_run: int = 0
    bytes_up: int = 0
    failures: list[str] = field(default_factory=list)
    seconds: dict[str, float] = field(default_factory=dict)
    releases: dict[str, int] = field(default_factory=dict)
    private: frozenset[str] = frozenset()
    frozen: frozenset[str] = frozenset()
    cached: frozenset[Cached] = frozenset()
    _named: dict[Train, set[Cached]] = field(default_factory=dict, repr=False)
    _caching: dict[str, set[Cached]] = field(default_factory=dict, repr=False)
    _sent: set[Cached] = field(default_factory=set, repr=False)
    _sizes: dict[str, int] = field(default_factory=dict, repr=False)

    @classmethod
    def of(cls, model: Model, cached: frozenset[Cached] = frozenset()) -> Ledger:
        """An empty ledger of an architecture.

        Args:
            model: the architecture.
            cached: client and key of blocks that were sent in earlier rounds, and are kept since.
        """
        private = frozenset(block.name for block in model.blocks if block.scope == "client")
        frozen = frozenset(block.name for block in model.blocks if block.frozen)
        return cls(private=private, frozen=frozen, cached=cached)

    def ask(self, request: Request) -> None:
        """Count a request of one hypothesis."""
        match request:
            case Train():
                self.trainings_requested += 1
            case Score():
                self.scores_requested += len(request.models)

    def send(self, request: Request, models: Mapping[str, Posterior]) -> None:
        """Count a distinct request that is sent.

        Args:
            request: the request.
            models: posteriors by the keys that it names.
        """
        self.release({request.client: releases(request)})
        match request:
            case Train():
                self.trainings_run += 1
                self._download(request, models)
                self._named[request] = self._to_keep(request, models)
                if request.objective.prior_weight > 0:
                    self._send_precision(request.client, request.start, models)
            case Score():
                self.scores_run += len(request.models)
                self._download(request, models)
                for key in request.models if request.statistic.reads_precision else ():
                    self._send_precision(request.client, key, models)

    def fail(self, request: Request, failure: Failure) -> None:
        """Note that a request got no usable answer.

        Args:
            request: the request.
            failure: why.
        """
        self.failures.append(f"{request.client}: {told(request, failure)} ({failure.kind})")

    def release(self, counts: Mapping[str, int]) -> None:
        """Count what clients release.

        Args:
            counts: number of releases by client.
        """
        for client, count in counts.items():
            if count:
                self.releases[client] = self.releases.get(client, 0) + count

    def receive(self, request: Request, model: Model, answer: object = None) -> None:
        """Count the answer to a request.

        Args:
            request: the request.
            model: the architecture.
            answer: where a training sends only some parameters, which ones.
        """
        match request:
            case Train():
                self._caching.setdefault(request.client, set()).update(self._named.get(request, ()))
                self.bytes_up += self._trained(request, model, answer) + NUMBER_BYTES
            case Score(statistic=statistic, models=keys, reported=True):
                self.bytes_up += statistic.num_bytes(model, len(keys))
            case Score() | Describe():
                pass

    def _trained(self, request: Train, model: Model, answer: object) -> int:
        """Bytes of a trained model; single parameters of private blocks travel with their place."""
        vectors = 2 if request.objective.reports_precision else 1
        upload, numbers = request.objective.upload, 0
        sent = answer.sent if isinstance(answer, Trained) else None
        for name, (parameters, buffers) in model.block_slots.items():
            if not request.objective.trains(name):
                continue
            places = 2 if name in self.private else 1
            if sent is not None:
                chosen = sum(int(sent[slot.start : slot.stop].sum()) for slot in parameters)
                numbers += vectors * places * chosen
            elif name not in self.private:
                numbers += vectors * _size(parameters)
            numbers += 0 if name in self.private else _size(buffers)
        overhead = 0 if upload is None else upload.overhead(model)
        return FLOAT_BYTES * numbers + overhead

    def _download(self, request: Train | Score, models: Mapping[str, Posterior]) -> None:
        """Send the blocks of a request's models, unless the client has them already."""
        client = request.client
        for key in request.models:
            for block in (block for block in models[key].blocks if not block.is_zero):
                has = key in request.held or (client, block.key) in self.cached
                if self._send_once(client, block.key, 0 if has else self._numbers(block)):
                    self.parameters_run += block.gaussian.mean.numel()

    def _send_precision(self, client: str, key: str, models: Mapping[str, Posterior]) -> None:
        self._send_once(client, key + ":prior", models[key].num_parameters)

    def _to_keep(self, request: Train, models: Mapping[str, Posterior]) -> set[Cached]:
        """What a client keeps of a training: its references, and frozen blocks."""
        references = {key for keys in request.references for key in keys}
        return {
            (request.client, block.key)
            for key in request.models
            for block in models[key].blocks
            if key in references or block.name in self.frozen
        }

    def cached_after(self) -> frozenset[Cached]:
        """What clients keep after the round; those that trained nothing keep what they had."""
        others = {pair for pair in self.cached if pair[0] not in self._caching}
        return frozenset(others.union(*self._caching.values()))

    def _numbers(self, block: Block) -> int:
        """Numbers that are sent of a block."""
        if block.name in self.private:
            return 0
        if block.key not in self._sizes:
            buffers = min(block.buffers.numel(), 2 * int(block.buffers.count_nonzero()))
            self._sizes[block.key] = block.gaussian.mean.numel() + buffers
        return self._sizes[block.key]

    def _send_once(self, client: str, key: str, numbers: int) -> bool:
        """Count a payload unless the client has it already; whether it was sent."""
        if (client, key) in self._sent:
            return False
        self._sent.add((client, key))
        self.bytes_down += FLOAT_BYTES * numbers
        return True


def _size(slots: Sequence[Slot]) -> int:
    return sum(slot.stop - slot.start for slot in slots)
