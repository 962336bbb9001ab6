"""What a tracker is, and the steps that all trackers are made of: expand, then train."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from itertools import islice
from math import inf
from typing import Protocol

import numpy as np

import assignment
from bcfl.aggregation.aggregation import Aggregation, FusionReport
from bcfl.hypotheses.hypothesis import Hypothesis, HypothesisSet
from bcfl.hypotheses.posterior import Block
from bcfl.policies.context import RoundContext
from bcfl.policies.policy import Candidate, Policy, answered
from bcfl.protocol.answers import Trained as LocalModel
from bcfl.protocol.requests import Exchange, Steps, Train, together


@dataclass(frozen=True)
class TrackerInfo:
    """What a tracker did in a round; logged, never carried on.

    Attributes:
        num_candidates: hypotheses that were trained.
        fusion: what fusing the models met.
        facts: numbers that the policy wants to see logged, for the most probable successor.
    """

    num_candidates: int
    fusion: FusionReport
    facts: Mapping[str, float] = field(default_factory=dict)


class Tracker(Protocol):
    """Manages association hypotheses over a round."""

    @property
    def candidates_per_parent(self) -> int | None:
        """How many associations it looks at for each hypothesis; None is all."""
        ...

    def step(
        self,
        hypotheses: HypothesisSet,
        policy: Policy,
        aggregation: Aggregation,
        context: RoundContext,
    ) -> Steps[tuple[HypothesisSet, TrackerInfo]]:
        """Yield requests, receive replies, and return the hypotheses after the round."""
        ...


@dataclass(frozen=True, eq=False)
class Successor:
    """A candidate and the hypothesis that it follows.

    Attributes:
        candidate: the association and its work.
        parent: position of the hypothesis that it follows.
        log_weight: log weight with that of the past, nats.
        facts: what the policy wants to see logged.
    """

    candidate: Candidate
    parent: int
    log_weight: float
    facts: Mapping[str, float] = field(default_factory=dict)


def expand(
    hypotheses: Sequence[Hypothesis],
    policy: Policy,
    aggregation: Aggregation,
    context: RoundContext,
    keep: int | None,
    within: float = inf,
) -> Steps[tuple[list[Successor], float]]:
    """The most probable successors of all hypotheses, and the log weight of all there are.

    log w(past and association) = what the memory carries of log w(past), plus
    log w(association | past) (BCFL, equation 11). Parents are read lazily, best first.

    Args:
        hypotheses: those that compete, with their log weights.
        policy: ranks the associations that may follow each.
        aggregation: says what of the past weights is carried.
        context: the round; its `candidates_per_parent` limits each hypothesis.
        keep: how many successors over all parents; None keeps all.
        within: leave out what is less probable than the best by more than so many nats.

    Returns:
        Successors, most probable first, and the log total, NaN where a policy cannot say.
    """
    rankings = yield from together([policy.associate(h, context) for h in hypotheses])
    carried = np.array([aggregation.carried_log_weight(h.log_weight) for h in hypotheses])
    carried -= np.logaddexp.reduce(carried)

    def candidates(parent: int) -> Iterator[tuple[float, Candidate]]:
        for candidate in islice(rankings[parent], context.candidates_per_parent):
            yield -float(carried[parent] + candidate.log_weight), candidate

    merged = assignment.merge_rankings(
        [candidates(parent) for parent in range(len(hypotheses))], max_excess=within
    )
    successors = [
        Successor(candidate, parent, -cost, rankings[parent].facts)
        for cost, parent, candidate in islice(merged, keep)
    ]
    totals = np.array([c + r.log_total for c, r in zip(carried, rankings, strict=True)])
    log_total = float("nan") if np.isnan(totals).any() else float(np.logaddexp.reduce(totals))
    return successors, log_total


@dataclass(frozen=True, eq=False)
class Trained:
    """Successors after their trainings.

    Attributes:
        children: the hypotheses that came of the successors, in their order.
        answers: answered trainings.
        known: blocks made in this round, by key.
        info: what happened.
    """

    children: list[Hypothesis]
    answers: Mapping[Train, LocalModel]
    known: dict[str, tuple[Block, FusionReport]]
    info: TrackerInfo


def train(
    parents: Sequence[Hypothesis],
    successors: Sequence[Successor],
    aggregation: Aggregation,
    context: RoundContext,
) -> Steps[Trained]:
    """Train for all successors at once and aggregate; equal work is done once."""
    known: dict[str, tuple[Block, FusionReport]] = {}
    answers = {t: a for s in successors for t, a in s.candidate.answers.items()}
    trainings = [t for s in successors for t in s.candidate.trainings]
    asked = [t for t in trainings if t not in answers]
    models = [
        posterior
        for s in successors
        for posterior in (*parents[s.parent].clusters, *s.candidate.models)
    ]
    replies = (yield Exchange.of(asked, models)) if asked else {}
    answers |= answered(asked, replies)
    children, report = [], FusionReport()
    for successor in successors:
        chosen, parent = successor.candidate, parents[successor.parent]
        clusters, seen = aggregation.combine(
            context.model, parent, chosen, answers, known, context.round
        )
        report += seen
        children.append(
            Hypothesis(
                clusters,
                chosen.association,
                successor.log_weight,
                (successor.parent,),
                lineage=(*parent.lineage, successor.parent),
                state=chosen.state,
                carried_models=chosen.carried_models,
            )
        )
    facts = successors[0].facts if successors else {}
    return Trained(children, answers, known, TrackerInfo(len(children), report, facts))


def follow(
    hypotheses: HypothesisSet,
    policy: Policy,
    aggregation: Aggregation,
    context: RoundContext,
    keep: int | None,
) -> Steps[tuple[HypothesisSet, TrackerInfo, Sequence[Successor]]]:
    """Expand, train the most probable successors, and weigh what came of them.

    Args:
        hypotheses: those of before the round.
        policy: ranks the associations that may follow each.
        aggregation: how local models become cluster models.
        context: the round.
        keep: how many successors over all parents; None keeps all.

    Returns:
        The hypotheses after the round, what happened, and the successors that they came of.
    """
    parents = hypotheses.hypotheses
    successors, log_total = yield from expand(parents, policy, aggregation, context, keep)
    trained = yield from train(parents, successors, aggregation, context)
    captured = log_captured_mass(successors, log_total)
    after = HypothesisSet.weighted(trained.children, context.round + 1, captured)
    return after, trained.info, successors


def log_captured_mass(kept: Sequence[Successor | Hypothesis], log_total: float) -> float:
    """Log of the share of all weight that is kept, nats, at most 0; NaN where that is unknown."""
    held = float(np.logaddexp.reduce([one.log_weight for one in kept]))
    return min(held - log_total, 0.0)
