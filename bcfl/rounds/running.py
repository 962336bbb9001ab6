"""The rounds of a run, one after another."""

from __future__ import annotations

import warnings
from collections.abc import Callable, Sequence
from dataclasses import replace

import numpy as np

from bcfl.architecture.model import Model
from bcfl.executors import Executor, check_covered
from bcfl.rounds.method import Method
from bcfl.rounds.round import RoundConfig, server_round
from bcfl.rounds.state import FederationState, RoundRecord

OnRound = Callable[[FederationState, RoundRecord], object]
"""Called after each round; a run stops where it returns True."""


class UntrainedWarning(UserWarning):
    """No client sent a usable model in any round: all models are as they were at the beginning."""


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
        if stops and not config.records_belief(before.round):
            last = replace(config, last_round=before.round)
            state, record = server_round(method, model, executor, before, last)
        records.append(record)
    _check_answered(records)
    _warn_if_untrained(first, state, records)
    return state, records


def _is_true(value: object) -> bool:
    """Whether a callback returned True, and not, say, the path of what it has written."""
    return isinstance(value, bool | np.bool_) and bool(value)


def _check_answered(records: Sequence[RoundRecord]) -> None:
    """Check that clients answered something, if their work crashed."""
    crashes = [text for r in records for text in r.ledger.failures if text.endswith("(crashed)")]
    if crashes and not any(r.evaluations or r.ledger.bytes_up for r in records):
        raise ValueError(f"no client could answer in any round; the first of them: {crashes[0]}")


def _warn_if_untrained(
    before: FederationState, after: FederationState, records: Sequence[RoundRecord]
) -> None:
    """Warn where clients failed, and there is no model that was not there before."""
    failures = [text for record in records for text in record.ledger.failures]
    if failures and _models(after) <= _models(before):
        rounds = "the only round" if len(records) == 1 else f"any of {len(records)} rounds"
        warnings.warn(
            f"no client sent a usable model in {rounds}, so that nothing was learnt; {failures[0]}",
            UntrainedWarning,
            stacklevel=5,  # the caller of Federation.run
        )


def _models(state: FederationState) -> set[str]:
    return {posterior.key for h in state.hypotheses.competing for posterior in h.clusters}
