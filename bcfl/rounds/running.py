"""The rounds of a run, one after another."""

from __future__ import annotations

import warnings
from collections.abc import Callable, Mapping, Sequence
from dataclasses import replace

import numpy as np

from bcfl.architecture.model import Model
from bcfl.executors import Executor, check_covered
from bcfl.rounds.ledger import failed_in_test, with_remedy
from bcfl.rounds.method import Method
from bcfl.rounds.round import RoundConfig, server_round
from bcfl.rounds.state import FederationState, RoundRecord

OWN_FAULTS = ("(crashed)", "(invalid)")
"""Ends of failures that are due to a client's own work."""

SHOWN = 5
"""Clients that a warning names at most."""

OnRound = Callable[[FederationState, RoundRecord], object]
"""Called after each round; a run stops where it returns True."""


class UntrainedWarning(UserWarning):
    """No client sent a usable model in any round, or none was asked: nothing was learnt."""


class FailingClientWarning(UserWarning):
    """A client's work, or its test, failed in every round that it took part in."""


def run_rounds(
    method: Method,
    model: Model,
    executor: Executor,
    state: FederationState,
    config: RoundConfig,
    on_round: OnRound | None = None,
) -> tuple[FederationState, list[RoundRecord]]:
    """Run rounds until the last one is done, or `on_round` returns True.

    A round after which a run stops is its last, in which beliefs are recorded: it is computed
    again where they were not.

    Args:
        method: what is run.
        model: the architecture.
        executor: answers for the clients.
        state: before the first of these rounds.
        config: of all rounds; it names the last one.
        on_round: called after each round.

    Returns:
        The state after the last round, and a record of each.

    Raises:
        ValueError: no client could answer anything, in any round; or `privacy` does not cover what
            the method asks for.
    """
    assert config.last_round is not None
    records: list[RoundRecord] = []
    first, stops = state, False
    while state.round <= config.last_round and not stops:
        before = state
        state, record = server_round(method, model, executor, state, config)
        check_covered(record.ledger.failures)
        stops = on_round is not None and _is_true(on_round(state, record))
        if stops and config.asks_beliefs and not config.records_belief(before.round):
            last = replace(config, last_round=before.round)
            state, record = server_round(method, model, executor, before, last)
        records.append(record)
    _check_answered(records)
    if not _warned_untrained(first, state, records):
        _warn_of_failing(records)
    return state, records


def _is_true(value: object) -> bool:
    """Whether a callback returned True, and not, say, the path of what it has written."""
    return isinstance(value, bool | np.bool_) and bool(value)


def _check_answered(records: Sequence[RoundRecord]) -> None:
    """Check that clients answered something, if their work crashed."""
    crashes = [text for r in records for text in r.ledger.failures if text.endswith("(crashed)")]
    if crashes and not any(r.evaluations or r.ledger.bytes_up for r in records):
        raise ValueError(f"no client could answer in any round; the first of them: {crashes[0]}")


def _warned_untrained(
    before: FederationState, after: FederationState, records: Sequence[RoundRecord]
) -> bool:
    """Warn where clients took part, and there is no model that was not there before."""
    failures = [text for record in records for text in record.ledger.failures]
    asked = any(record.ledger.trainings_requested for record in records)
    unasked = not asked and any(record.participants for record in records)
    failed = bool(failures) and _models(after) <= _models(before)
    if failed:
        rounds = "the only round" if len(records) == 1 else f"any of {len(records)} rounds"
        message = f"no client sent a usable model in {rounds}, so that nothing was learnt"
        _warn(f"{message}; {with_remedy(failures[0])}", UntrainedWarning)
    elif unasked:
        message = "no client was asked to train in any round, so that nothing was learnt"
        _warn(f"{message}; the policy associates none of them", UntrainedWarning)
    return failed or unasked


def _warn_of_failing(records: Sequence[RoundRecord]) -> None:
    """Warn of clients whose own work, or test, failed in each round that they took part in."""
    failing: dict[str, str] = {}
    untested: dict[str, str] = {}
    for client in sorted({client for record in records for client in record.participants}):
        taken = [record.failures_of(client) for record in records if client in record.participants]
        own = [[text for text in texts if text.endswith(OWN_FAULTS)] for texts in taken]
        work = [[text for text in texts if not failed_in_test(text)] for texts in own]
        if all(work):
            failing[client] = work[0][0]
        elif all(tests := [[text for text in texts if failed_in_test(text)] for texts in own]):
            untested[client] = tests[0][0]
        elif all(own):
            failing[client] = own[0][0]
    rounds = "in the only round" if len(records) == 1 else "in each round that they took part in"
    if failing:
        _warn(f"clients that failed {rounds}: {_named(failing)}", FailingClientWarning)
    if untested:
        message = f"clients whose test failed {rounds}: {_named(untested)}"
        scores = (
            "; their training does not depend on it, but scores of predictions are without them, "
            "and NaN where no client could be tested"
        )
        _warn(message + scores, FailingClientWarning)


def _named(failures: Mapping[str, str]) -> str:
    """The first of some clients, and the failure of the first one."""
    named, more = list(failures)[:SHOWN], len(failures) - SHOWN
    who = ", ".join(map(repr, named)) + (f" and {more} more" if more > 0 else "")
    return f"{who}; {with_remedy(failures[named[0]])}"


def _warn(message: str, category: type[UserWarning]) -> None:
    warnings.warn(message, category, stacklevel=6)  # the caller of Federation.run


def _models(state: FederationState) -> set[str]:
    return {posterior.key for h in state.hypotheses.competing for posterior in h.clusters}
