"""The two steps of every tracker: expand hypotheses into successors, then train these."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field, replace
from fractions import Fraction
from itertools import islice
from math import inf

import numpy as np
from numpy.typing import NDArray

import assignment
from bcfl.aggregation.aggregation import Aggregation, FusionReport
from bcfl.aggregation.cavities import cavities_of
from bcfl.aggregation.crossfit import Fold, cavities_of_folds, folds_of
from bcfl.hypotheses.hypothesis import Cavities, Hypothesis, HypothesisSet
from bcfl.hypotheses.posterior import Block
from bcfl.policies.context import RoundContext
from bcfl.policies.origins import continued
from bcfl.policies.policy import Candidate, Policy, answered
from bcfl.policies.ranking import membership_probabilities
from bcfl.protocol.answers import Trained as LocalModel
from bcfl.protocol.requests import Exchange, Steps, Train
from bcfl.trackers.convergence import convergence_of
from bcfl.trackers.tracker import TrackerInfo, rankings_of
from bcfl.trackers.update_measures import local_updates_of, temperature_of


@dataclass(frozen=True, eq=False)
class Successor:
    """A candidate and the hypothesis that it follows.

    Attributes:
        candidate: the association with its local trainings.
        parent: index of the hypothesis that it follows.
        log_weight: log weight of the association and its past, nats, up to a constant common to
            all successors of a round.
        facts: numbers that the policy logs.
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
    """M-best successors over all hypotheses, and the log weight of all successors (BCFL, Eq. 11).

    log w(θ_1:t) = log w(h) as the memory carries it + log w(θ_t | h), with h the history of the
    parent. Rankings are enumerated lazily, see `assignment.merge_rankings`. All log weights are
    relative to the parent of the largest reference, which leaves out what losses have in common.

    Args:
        hypotheses: those that compete, with their log weights.
        policy: ranks the associations that may follow each.
        aggregation: its memory determines which share of past log weights is carried on.
        context: the round; its `candidates_per_parent` limits each hypothesis.
        keep: number of successors over all parents; None keeps all.
        within: leave out successors whose log weight is further below the best, nats.

    Returns:
        Successors, most probable first, and the log total in nats; NaN if a policy has none.

    Raises:
        TypeError: the policy's generator yields or returns something else than `Policy` says.
        ValueError: the policy ranks no association.
    """
    rankings = yield from rankings_of(hypotheses, policy, context)
    carried = np.array([aggregation.carried_log_weight(h.log_weight) for h in hypotheses])
    carried = assignment.normalise(carried)
    origins = [Fraction(c) + r.reference for c, r in zip(carried, rankings, strict=True)]
    heights = [float(origin - max(origins)) for origin in origins]

    def candidates(parent: int) -> Iterator[tuple[float, Candidate]]:
        for candidate in islice(rankings[parent], context.candidates_per_parent):
            yield -(heights[parent] + candidate.log_weight), candidate

    merged = assignment.merge_rankings(
        [candidates(parent) for parent in range(len(hypotheses))], max_excess=within
    )
    successors = [
        Successor(candidate, parent, -cost, rankings[parent].facts)
        for cost, parent, candidate in islice(merged, keep)
    ]
    if not successors:
        raise ValueError("a policy must rank at least one association, got none")
    totals = np.array([h + r.log_total for h, r in zip(heights, rankings, strict=True)])
    log_total = float("nan") if np.isnan(totals).any() else float(np.logaddexp.reduce(totals))
    return successors, log_total


@dataclass(frozen=True, eq=False)
class Trained:
    """Successors after local training and aggregation.

    Attributes:
        children: the new hypotheses, in the order of the successors.
        answers: local models by answered training.
        blocks: parameter blocks aggregated in this round, with diagnostics, by key.
        info: diagnostics of the round.
    """

    children: list[Hypothesis]
    answers: Mapping[Train, LocalModel]
    blocks: dict[str, tuple[Block, FusionReport]]
    info: TrackerInfo


def train(
    parents: Sequence[Hypothesis],
    successors: Sequence[Successor],
    aggregation: Aggregation,
    context: RoundContext,
) -> Steps[Trained]:
    """Train for all successors at once and aggregate; identical work is done once.

    Args:
        parents: hypotheses before the round.
        successors: those that survive.
        aggregation: how local models become cluster models.
        context: read-only context of the round.

    Returns:
        The new hypotheses with what was trained for them.
    """
    blocks: dict[str, tuple[Block, FusionReport]] = {}
    answers = {t: a for s in successors for t, a in s.candidate.answers.items()}
    folds = [
        folds_of(parents[s.parent], s.candidate, context.seed, context.num_samples)
        for s in successors
    ]
    work = [(parents[s.parent], s.candidate) for s in successors]
    work += [(fold.parent, fold.candidate) for some in folds for fold in some]
    missing = [t for _, one in work for t in one.trainings if t not in answers]
    models = [posterior for parent, one in work for posterior in (*parent.clusters, *one.models)]
    replies = (yield Exchange.of(missing, models)) if missing else {}
    answers |= answered(missing, replies)
    children, report = [], FusionReport()
    for successor, own in zip(successors, folds, strict=True):
        parent = parents[successor.parent]
        child, fusion = child_of(parent, successor, aggregation, context, answers, blocks)
        children.append(cross_fitted(child, own, aggregation, context, answers, blocks))
        report += fusion
    facts: dict[str, float] = {}
    for best in successors[:1]:
        updates = local_updates_of(parents[best.parent], best.candidate, answers)
        facts = {**temperature_of(updates, context), **best.facts}
        if context.objectives:
            clusters = children[0].clusters
            facts |= convergence_of(updates, best.candidate, clusters, context.model)
    return Trained(
        children=children,
        answers=answers,
        blocks=blocks,
        info=TrackerInfo(len(children), report, facts),
    )


def child_of(
    parent: Hypothesis,
    successor: Successor,
    aggregation: Aggregation,
    context: RoundContext,
    answers: Mapping[Train, LocalModel],
    blocks: dict[str, tuple[Block, FusionReport]],
) -> tuple[Hypothesis, FusionReport]:
    """The hypothesis that a successor becomes once its local models are there.

    Cross-fitted cavities are left to `cross_fitted`.

    Args:
        parent: hypothesis that it follows.
        successor: its candidate, the index of the parent, and its log weight.
        aggregation: how local models become cluster models.
        context: read-only context of the round.
        answers: local models by answered training.
        blocks: blocks of this round by key; extended, so that equal blocks are one object.
    """
    chosen = successor.candidate
    clusters, report = aggregation.combine(
        context.model, parent, chosen, answers, blocks, context.round
    )
    cavities: Cavities = {}
    if not chosen.folds and (chosen.needs_cavities or context.records_belief):
        cavities = cavities_of(aggregation, context.model, parent, chosen, clusters, answers)
    child = Hypothesis(
        clusters=clusters,
        association=chosen.association,
        log_weight=successor.log_weight,
        parents=(successor.parent,),
        kind=chosen.kind,
        lineage=(*parent.lineage, successor.parent),
        continues=continued(chosen.origins, len(parent.clusters)),
        state=chosen.state,
        carried_models=chosen.carried_models,
        cavities=cavities,
        scored_by_cavities=chosen.needs_cavities,
        belief=belief_of(chosen, parent),
    )
    return child, report


def cross_fitted(
    child: Hypothesis,
    folds: Sequence[Fold],
    aggregation: Aggregation,
    context: RoundContext,
    answers: Mapping[Train, LocalModel],
    blocks: dict[str, tuple[Block, FusionReport]],
) -> Hypothesis:
    """The hypothesis with the cavities of its folds; as it is where there are none.

    Args:
        child: hypothesis after the round.
        folds: of the candidate that it was.
        aggregation: how local models become cluster models.
        context: read-only context of the round.
        answers: local models by answered training.
        blocks: blocks of this round by key; extended, so that equal blocks are one object.
    """
    if not folds:
        return child
    cavities = cavities_of_folds(folds, aggregation, context.model, answers, blocks, context.round)
    return replace(child, cavities=cavities)


def belief_of(candidate: Candidate, parent: Hypothesis) -> NDArray[np.float64] | None:
    """Exact membership marginals of the round's costs, at their belief temperature.

    The temperature divides the evidence, and leaves the prior as it is.
    Belief propagation where bounds make exact sums too many. Absent clients keep the belief
    that the parent's policy stated, or their association where it stated none.

    Args:
        candidate: association with its costs.
        parent: hypothesis that it follows.

    Returns:
        float64 of shape (clients, clusters); None where the costs are no evidence of membership.
    """
    costs, association = candidate.costs, candidate.association
    if costs is None or costs.belief_temperature is None:
        return None
    belief = association.serving.copy()
    if costs.values.shape[1] != belief.shape[1]:
        return None
    known = None if parent.belief_recorded else parent.belief
    if known is not None and known.shape == belief.shape:
        belief = known.copy()
    costs.check(association)
    rows = [association.position[client] for client in costs.clients]
    log_prior = 0.0 if costs.log_prior is None else costs.log_prior
    evidence = (costs.values + log_prior) / costs.belief_temperature
    tempered = replace(costs, values=evidence - log_prior)
    belief[rows] = membership_probabilities(tempered, parent.association)
    return belief


def follow(
    hypotheses: HypothesisSet,
    policy: Policy,
    aggregation: Aggregation,
    context: RoundContext,
    keep: int | None,
    min_weight: float = 0.0,
) -> Steps[tuple[HypothesisSet, TrackerInfo, Sequence[Successor]]]:
    """Expand, train the most probable successors, and normalise their weights.

    Args:
        hypotheses: those before the round.
        policy: ranks the associations that may follow each.
        aggregation: how local models become cluster models.
        context: read-only context of the round.
        keep: number of successors over all parents; None keeps all.
        min_weight: probability, among those, below which a successor is dropped.

    Returns:
        The hypotheses after the round, diagnostics, and the successors that were trained.
    """
    parents = hypotheses.hypotheses
    successors, log_total = yield from expand(parents, policy, aggregation, context, keep)
    if min_weight > 0:
        kept, _ = assignment.prune([s.log_weight for s in successors], min_weight)
        successors = [successors[index] for index in kept]
    trained = yield from train(parents, successors, aggregation, context)
    captured = log_captured_mass(successors, log_total)
    after = HypothesisSet.weighted(trained.children, context.round + 1, captured)
    return after, trained.info, successors


def log_captured_mass(kept: Sequence[Successor | Hypothesis], log_total: float) -> float:
    """Log of the share of all weight that is kept, nats, at most 0; NaN where unknown.

    Args:
        kept: survivors with unnormalised log weights in nats.
        log_total: log of the summed weight of all successors, nats; NaN where unknown.
    """
    log_kept = float(np.logaddexp.reduce([survivor.log_weight for survivor in kept]))
    return min(log_kept - log_total, 0.0)
