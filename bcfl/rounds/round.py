"""One server round: a function of method, executor and state, the same for all methods."""

from __future__ import annotations

from collections import Counter
from collections.abc import Collection, Mapping, Sequence
from dataclasses import dataclass, replace
from time import perf_counter
from typing import Any

from bcfl.architecture.model import Model
from bcfl.data.names import TEST, TRAIN, VALIDATION
from bcfl.data.streams import Schedule
from bcfl.executors import Executor
from bcfl.hypotheses.history import Snapshot
from bcfl.hypotheses.hypothesis import HypothesisSet
from bcfl.policies import RoundContext
from bcfl.policies.wrappers.policy_wrapper import bounds_of
from bcfl.protocol.answers import ClientInfo
from bcfl.protocol.requests import Describe, Exchange, Steps
from bcfl.rounds.beliefs import fits_cavities, with_beliefs, without_unused_cavities
from bcfl.rounds.evaluation import evaluate, evaluate_finetuned, learning_objective
from bcfl.rounds.exchange import RoundExchange
from bcfl.rounds.ledger import Ledger
from bcfl.rounds.method import Method
from bcfl.rounds.state import FederationState, RoundRecord
from bcfl.runtime.seeds import generator
from bcfl.trackers.tracker import stepped

LAST_ROUNDS = 3
"""Rounds at the end of a run whose mean is reported, as far as they are of the last time step;
clients of `finetuned` methods fine-tune for the test of each of them."""


@dataclass(frozen=True, kw_only=True)
class RoundConfig:
    """Settings that all rounds share.

    Attributes:
        seed: of all randomness.
        client_fraction: share of the clients that participate in a round, in (0, 1].
        evaluate: whether clients test the models that serve them after each round.
        schedule: time steps of the clients' data, and rounds of the whole run. Scores of an
            unchanged model are not requested again within a time step. None where the length of
            the run is unknown; every request is sent again then.
        last_round: number of the round, from 0, after which this part of the run ends; beliefs are
            recorded after it. None where it is unknown.
        belief_every: rounds between recorded beliefs; None records them after the last round alone,
            and 0 after no round, so that clients are not asked for the losses that they need.
        objectives: whether the objectives of clustering and of learning are measured, and the
            quantities on which their convergence depends; see `bcfl.trackers.convergence`.
    """

    seed: int
    client_fraction: float = 1.0
    evaluate: bool = True
    schedule: Schedule | None = None
    last_round: int | None = None
    belief_every: int | None = None
    objectives: bool = False

    @property
    def num_rounds(self) -> int | None:
        """Rounds of the whole run, if known."""
        return None if self.schedule is None else self.schedule.num_rounds

    def step(self, round: int) -> int:
        """Time step of a round."""
        return 0 if self.schedule is None else self.schedule.step(round)

    def rounds_in_step(self, round: int) -> int | None:
        """Rounds of the time step of a round, if known."""
        return None if self.schedule is None else self.schedule.rounds(self.schedule.step(round))

    def reported(self, round: int) -> bool:
        """Whether the scores of a round are reported: it is among the last ones, or later.

        The last ones are `bcfl.rounds.round.LAST_ROUNDS` of the last time step, or all that it has;
        the last round of each earlier time step is reported too.
        """
        if self.schedule is None:
            return False
        last = self.schedule.step(round) == self.schedule.num_steps - 1
        among = last and round >= self.schedule.num_rounds - LAST_ROUNDS
        return among or self.schedule.begins(round + 1)

    @property
    def asks_beliefs(self) -> bool:
        """Whether clients are asked for beliefs after any round."""
        return self.belief_every != 0

    def records_belief(self, round: int) -> bool:
        """Whether the plan of the run records beliefs after a round, in its history too."""
        if not self.asks_beliefs:
            return False
        ends = self.num_rounds is not None and round + 1 >= self.num_rounds
        return ends or (self.belief_every is not None and (round + 1) % self.belief_every == 0)

    def begins(self, round: int) -> bool:
        """Whether the clients' data may have changed since the round before."""
        return self.schedule is None or self.schedule.begins(round)


def participants(clients: Sequence[str], share: float, seed: int, round: int) -> tuple[str, ...]:
    """The participants of a round: a random share of the clients, at least one, sorted by name.

    Args:
        clients: names of all clients.
        share: share that takes part, in (0, 1].
        seed: of the federation.
        round: number of the server round.
    """
    count = max(1, round_half_up(share * len(clients)))
    if count >= len(clients):
        return tuple(sorted(clients))
    chosen = generator(seed, round, "participation").permutation(len(clients))[:count]
    ordered = sorted(clients)
    return tuple(sorted(ordered[index] for index in chosen))


def round_half_up(value: float) -> int:
    """The nearest whole number, halves upwards."""
    return int(value + 0.5)


def server_round(
    method: Method,
    model: Model,
    executor: Executor,
    state: FederationState,
    config: RoundConfig,
) -> tuple[FederationState, RoundRecord]:
    """Run one round.

    Args:
        method: policy, tracker and aggregation.
        model: the architecture.
        executor: reaches the clients.
        state: of before the round.
        config: seed, participation, evaluation.

    Returns:
        The state after the round, and what happened in it.

    Raises:
        ValueError: it is the first round, no model was trained, or none tested, and the user's code
            raised the same exception in the work for every client; the cause is the first of these.
    """
    started = perf_counter()
    round = state.round
    clients = state.hypotheses.best.association.clients
    renewed = config.schedule is not None and config.begins(round)
    exchange = RoundExchange(executor, model, round, remembered=state.scores, cached=state.cached)
    chosen = participants(clients, config.client_fraction, config.seed, round)
    known = {} if renewed else state.client_info
    client_info = {**known, **exchange.drive(_describe(chosen, known))}
    present = tuple(client for client in chosen if client in client_info)
    context = _context(method, model, config, round, {c: client_info[c] for c in present})
    planned = config.records_belief(round)
    last = config.asks_beliefs and round == config.last_round
    records = _can_record(method, model) and (planned or last)
    fits = records and fits_cavities(model, len(clients), len(state.hypotheses.competing))
    hypotheses, info = exchange.drive(
        stepped(
            method.tracker,
            state.hypotheses,
            method.policy,
            method.aggregation,
            replace(context, records_belief=fits),
        )
    )
    if round == 0:
        exchange.check_not_all_failed(len(clients))
    ledger = exchange.ledger
    ledger.seconds["server"] = perf_counter() - started - sum(ledger.seconds.values())
    testing = perf_counter()
    tested = _tested(client_info, clients) if config.evaluate else ()
    testing_steps = _testing(method, model, hypotheses, tested, config.reported(round))
    testing_exchange = RoundExchange(executor, model, round)
    evaluations, tests = testing_exchange.drive(testing_steps), testing_exchange.ledger
    if round == 0:
        testing_exchange.check_not_all_failed(len(clients), tests=True)
    ledger.failures += tests.failures
    ledger.release(tests.releases)
    if config.objectives:
        steps = learning_objective(hypotheses.best, tuple(client_info))
        measuring = RoundExchange(executor, model, round)
        info = replace(info, facts={**info.facts, **measuring.drive(steps)})
        ledger.release(measuring.ledger.releases)
    ledger.seconds["evaluate"] = perf_counter() - testing
    believed, beliefs = hypotheses, None
    if records:
        believed, beliefs = _record_beliefs(method, model, executor, hypotheses, client_info)
        ledger.release(beliefs.releases)
    snapshot = Snapshot.of(believed if planned else hypotheses)
    record = RoundRecord(
        round=round + 1,
        participants=present,
        snapshot=snapshot,
        likelihood=model.likelihood,
        evaluations=evaluations if model.likelihood == "categorical" else {},
        regression=evaluations if model.likelihood == "gaussian" else {},
        labels=evaluations if model.likelihood == "bernoulli" else {},
        info=info,
        ledger=ledger,
        belief_ledger=beliefs,
        num_training={client: info.num_samples[TRAIN] for client, info in client_info.items()},
    )
    surviving = {p.key for h in hypotheses.competing for p in h.clusters}
    lasting = {} if config.begins(round + 1) else exchange.lasting(surviving)
    after = replace(
        state,
        hypotheses=believed,
        history=(*state.history, snapshot),
        client_info=client_info,
        scores=lasting,
        cached=ledger.cached_after(),
        releases=Counter(state.releases) + Counter(ledger.releases),
    )
    return after, record


def _describe(
    clients: Sequence[str], known: Mapping[str, ClientInfo]
) -> Steps[Mapping[str, ClientInfo]]:
    """Have clients without a description describe themselves."""
    requests = [Describe(client) for client in clients if client not in known]
    replies = (yield Exchange.of(requests, ())) if requests else {}
    return {request.client: replies[request] for request in requests if request in replies}


def _tested(client_info: Mapping[str, ClientInfo], clients: Sequence[str]) -> tuple[str, ...]:
    """Clients with test samples, and those that have not yet described themselves."""
    return tuple(
        client
        for client in clients
        if client not in client_info or client_info[client].num_samples.get(TEST, 0) > 0
    )


def _context(
    method: Method,
    model: Model,
    config: RoundConfig,
    round: int,
    present: Mapping[str, ClientInfo],
) -> RoundContext:
    return RoundContext(
        round=round,
        participants=tuple(present),
        num_samples={client: info.num_samples[TRAIN] for client, info in present.items()},
        seed=config.seed,
        model=model,
        candidates_per_parent=method.tracker.candidates_per_parent,
        num_validation={
            client: info.num_samples.get(VALIDATION, 0) for client, info in present.items()
        },
        num_rounds=config.num_rounds,
        step=config.step(round),
        rounds_in_step=config.rounds_in_step(round),
        objectives=config.objectives,
    )


def _testing(
    method: Method, model: Model, hypotheses: HypothesisSet, clients: Sequence[str], reported: bool
) -> Steps[Mapping[str, Any]]:
    """How the clients are tested: fine-tuned in the last rounds where the method asks for it."""
    if not clients:
        return {}
    if method.finetuned is not None and reported:
        steps = evaluate_finetuned(
            hypotheses, clients, method.finetuned, model, pooling=method.pooling
        )
    else:
        steps = evaluate(hypotheses, clients, model, method.pooling)
    return (yield from steps)


def _can_record(method: Method, model: Model) -> bool:
    """Whether beliefs can be recorded: no part of the models stays with the clients."""
    private = any(block.scope == "client" for block in model.blocks)
    return method.belief_temperature is not None and not private


def _record_beliefs(
    method: Method,
    model: Model,
    executor: Executor,
    hypotheses: HypothesisSet,
    clients: Collection[str],
) -> tuple[HypothesisSet, Ledger]:
    """Record beliefs in an exchange of its own, of which nothing is remembered."""
    assert method.belief_temperature is not None
    exchange = RoundExchange(executor, model, hypotheses.round - 1)
    steps = with_beliefs(hypotheses, clients, method.belief_temperature, bounds_of(method.policy))
    return without_unused_cavities(exchange.drive(steps)), exchange.ledger
