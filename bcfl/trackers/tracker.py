"""The tracker protocol."""

from __future__ import annotations

from collections.abc import Generator, Iterator, Mapping, Sequence
from dataclasses import dataclass, field, fields, is_dataclass, replace
from reprlib import repr as shortened
from typing import Protocol, TypeVar, runtime_checkable

from bcfl.aggregation.aggregation import Aggregation, FusionReport
from bcfl.data.clients import POOL
from bcfl.hypotheses.association import Association
from bcfl.hypotheses.hypothesis import Hypothesis, HypothesisSet
from bcfl.policies.context import RoundContext
from bcfl.policies.policy import Candidate, Policy, Ranking
from bcfl.protocol.requests import Exchange, ProtocolError, Steps, checked_exchange, together
from bcfl.runtime import nearest
from bcfl.runtime.user_code import place_of

Result = TypeVar("Result")


@dataclass(frozen=True)
class TrackerInfo:
    """Diagnostics of one round: logged, not part of the state.

    Attributes:
        num_candidates: number of hypotheses that were trained.
        fusion: diagnostics of the fusion of models.
        facts: numbers that the policy logs, for the most probable successor.
    """

    num_candidates: int
    fusion: FusionReport
    facts: Mapping[str, float] = field(default_factory=dict)


class Tracker(Protocol):
    """Manages association hypotheses over a round."""

    @property
    def candidates_per_parent(self) -> int | None:
        """Associations enumerated for each hypothesis; None is all."""
        ...

    def step(
        self,
        hypotheses: HypothesisSet,
        policy: Policy,
        aggregation: Aggregation,
        context: RoundContext,
    ) -> Steps[tuple[HypothesisSet, TrackerInfo]]:
        """One round: yield exchanges of requests, receive replies, and return new hypotheses.

        Args:
            hypotheses: weighted hypotheses before the round.
            policy: ranks the associations that may follow each of them.
            aggregation: how local models become cluster models, and what the memory carries on.
            context: read-only context of the round.

        Yields:
            Exchanges; the generator is sent the replies to each.

        Returns:
            The hypotheses after the round, and diagnostics.
        """
        ...


@runtime_checkable
class ChecksRounds(Protocol):
    """A tracker that checks, before a run starts, whether it can do all of its rounds."""

    def check_rounds(
        self, num_hypotheses: int, num_clusters: int, num_participants: int, rounds: range
    ) -> None:
        """Check the rounds that are to be done.

        Args:
            num_hypotheses: hypotheses before the first of them.
            num_clusters: clusters of the policy.
            num_participants: participants of a round.
            rounds: their numbers, from 0.

        Raises:
            ValueError: the tracker cannot do them.
        """
        ...


def rankings_of(
    hypotheses: Sequence[Hypothesis], policy: Policy, context: RoundContext
) -> Steps[list[Ranking]]:
    """What a policy ranks for each hypothesis; requests of all are asked together.

    Args:
        hypotheses: those that are followed.
        policy: ranks the associations that may follow each.
        context: read-only context of the round.

    Raises:
        ProtocolError: the policy asks for what there is not, such as a client of no federation,
            or returns no ranking.
    """
    where = f"{type(policy).__name__}.associate"
    started = [_run(policy, where, policy.associate(h, context), h.association) for h in hypotheses]
    rankings = yield from together(started)
    for ranking in rankings:
        if not isinstance(ranking, Ranking):
            got = shortened(ranking)
            raise ProtocolError(f"{where} must return a bcfl.policies.Ranking, got {got}")
    if _is_of_package(policy):
        return rankings
    return [replace(one, candidates=_named(iter(one), where)) for one in rankings]


def _named(candidates: Iterator[Candidate], where: str) -> Iterator[Candidate]:
    """Candidates that are made one by one; errors on the way name the policy."""
    try:
        yield from candidates
    except Exception as error:
        error.add_note(f"raised in {where}, in a candidate of its ranking")
        raise


def stepped(
    tracker: Tracker,
    hypotheses: HypothesisSet,
    policy: Policy,
    aggregation: Aggregation,
    context: RoundContext,
) -> Steps[tuple[HypothesisSet, TrackerInfo]]:
    """A tracker's step, whose outcome is what `Tracker.step` says; see there.

    Raises:
        ProtocolError: it is something else.
    """
    where = f"{type(tracker).__name__}.step"
    steps = tracker.step(hypotheses, policy, aggregation, context)
    outcome = yield from _run(tracker, where, steps, hypotheses.best.association)
    match outcome:
        case (HypothesisSet() as following, TrackerInfo()):
            if following.round != context.round + 1:
                raise ProtocolError(
                    f"{where} must return hypotheses of the round after context.round, "
                    f"{context.round + 1}, got those of round {following.round}"
                )
            return outcome
    got = shortened(outcome)
    raise ProtocolError(f"{where} must return a HypothesisSet and a TrackerInfo, got {got}")


def _run(
    owner: object, where: str, steps: Steps[Result], association: Association
) -> Steps[Result]:
    """Run the generator of a policy or tracker; its errors name it if it is not of this package."""
    if not isinstance(steps, Generator):
        raise ProtocolError(
            f"{where} must be a generator, with a `yield` for what it asks of clients (`yield from "
            f"()` if nothing); it returned {shortened(steps)}"
        )
    try:
        return (yield from _checked(steps, where, association))
    except Exception as error:
        if not _is_of_package(owner):
            place = place_of(error)
            error.add_note(f"raised in {where}{f', {place}' * bool(place)}{_fields_of(error)}")
        raise


def _fields_of(error: Exception) -> str:
    """What a value of this package holds, where an error is about an attribute that it lacks."""
    value = error.obj if isinstance(error, AttributeError) else None
    if not is_dataclass(value) or isinstance(value, type) or not _is_of_package(value):
        return ""
    return f"; {type(value).__name__} has {', '.join(field.name for field in fields(value))}"


def _is_of_package(owner: object) -> bool:
    return type(owner).__module__.startswith("bcfl.")


def _checked(steps: Steps[Result], where: str, association: Association) -> Steps[Result]:
    """The same exchanges, whose requests are to clients of the federation, or to pools of them."""
    try:
        exchange = next(steps)
        while True:
            _check_clients(checked_exchange(exchange), where, association)
            exchange = steps.send((yield exchange))
    except StopIteration as end:
        result: Result = end.value
        return result


def _check_clients(exchange: Exchange, where: str, association: Association) -> None:
    known = association.position
    for request in exchange.requests:
        client = request.client
        if isinstance(client, str) and (client in known or client.startswith(POOL)):
            continue
        raise ProtocolError(
            f"{where} must ask clients of the federation, got {shortened(client)} in a "
            f"{type(request).__name__}.{nearest(client, association.clients)}"
        )
