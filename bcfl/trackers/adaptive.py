"""A multi-hypothesis tracker whose hypotheses differ: BCFL-MHT.

The literal tracker of the BCFL paper keeps the M best associations of each hypothesis; these are
near copies that share one basin. This one merges near copies, keeps as many hypotheses as the
weights say there are, and proposes alternatives that ranking alone cannot reach.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace
from math import ceil, inf

import numpy as np

import assignment
from bcfl.aggregation.aggregation import Aggregation
from bcfl.hypotheses.hypothesis import Hypothesis, HypothesisSet
from bcfl.policies.context import RoundContext
from bcfl.policies.policy import Policy
from bcfl.protocol.requests import Steps
from bcfl.trackers.near_copies import NearCopies
from bcfl.trackers.proposals import Proposal, SplitAndFree, every_proposal
from bcfl.trackers.recollection import WithAbsentClients, inherited, recalled
from bcfl.trackers.survival import AncestorQuota, NScan
from bcfl.trackers.tracker import (
    Successor,
    TrackerInfo,
    Trained,
    expand,
    log_captured_mass,
    train,
)

NEAR_COPIES = NearCopies()
PROPOSALS: tuple[Proposal, ...] = (SplitAndFree(),)
NEGLIGIBLE = 50.0
"""What is less probable than the best by so many nats does not change how many count."""


@dataclass(frozen=True)
class AdaptiveMultiHypothesis:
    """Keep up to M hypotheses that differ.

    What is on by default is what paid in `experiments.studies.tracker_ablation`: proposals find
    the groups, merging near copies and adapting M keep the number of trainings down.

    Attributes:
        max_hypotheses: most hypotheses kept after a round.
        adapt: keep only as many as the effective number of hypotheses, rounded up.
        near_copies: how near copies are merged; None keeps them.
        proposals: how alternatives are made.
        quota: what each start is granted in the first rounds, where there are several.
        n_scan: how past ambiguities are resolved; None leaves them to the weights.
        remembers: whether clients that are absent count with what they last said.
        max_candidates: most associations looked at for each hypothesis; None is as many as are
            kept.
    """

    max_hypotheses: int = 8
    adapt: bool = True
    near_copies: NearCopies | None = NEAR_COPIES
    proposals: tuple[Proposal, ...] = PROPOSALS
    quota: AncestorQuota | None = None
    n_scan: NScan | None = None
    remembers: bool = True
    max_candidates: int | None = None

    def __post_init__(self) -> None:
        if self.max_hypotheses < 1:
            raise ValueError(f"max_hypotheses must be at least 1, got {self.max_hypotheses}")
        if self.max_candidates is not None and self.max_candidates < 1:
            raise ValueError(f"candidates_per_parent must be at least 1, got {self.max_candidates}")

    @property
    def candidates_per_parent(self) -> int:
        """How many associations are looked at for each hypothesis."""
        return self.max_hypotheses if self.max_candidates is None else self.max_candidates

    def step(
        self,
        hypotheses: HypothesisSet,
        policy: Policy,
        aggregation: Aggregation,
        context: RoundContext,
    ) -> Steps[tuple[HypothesisSet, TrackerInfo]]:
        """Rank, cap to the effective number, train, merge near copies, propose."""
        if self.remembers:
            policy = WithAbsentClients.within(policy, aggregation)
        competing = hypotheses.competing
        successors, log_total = yield from expand(
            competing, policy, aggregation, context, None, self._within
        )
        kept = self._kept(successors, competing, context.round)
        trained = yield from train(competing, kept, aggregation, context)
        children = trained.children
        if self.n_scan is not None:
            children = self.n_scan.pruned(children)
        best = kept[trained.children.index(children[0])]
        held = float(np.logaddexp.reduce([h.log_weight for h in children]))
        best = replace(best, log_weight=best.log_weight - held)
        if self.near_copies is not None:
            sizes = kept[0].candidate.cluster_size
            children = self.near_copies.merge(children, aggregation, context.model, sizes)
        captured = log_captured_mass(children, log_total)
        after = HypothesisSet.weighted(children, context.round + 1, captured)
        proposed = self._proposed(competing, best, trained, aggregation, context)
        return replace(after, proposals=proposed), trained.info

    @property
    def _within(self) -> float:
        """How far below the best a successor may lie, nats; none is needed that cannot count."""
        return NEGLIGIBLE if self.adapt and self.quota is None else inf

    def _kept(
        self, successors: Sequence[Successor], parents: Sequence[Hypothesis], round: int
    ) -> Sequence[Successor]:
        kept = successors[: self.max_hypotheses]
        if self.adapt:
            log_weights = np.array([s.log_weight for s in kept])
            kept = kept[: max(1, ceil(assignment.effective_number(log_weights) - 1e-9))]
        if self.quota is not None:
            kept = self.quota.extended(kept, successors, parents, round)
        return kept

    def _proposed(
        self,
        competing: Sequence[Hypothesis],
        best: Successor,
        trained: Trained,
        aggregation: Aggregation,
        context: RoundContext,
    ) -> tuple[Hypothesis, ...]:
        """Alternatives to the best hypothesis, made of the trainings that it has had."""
        parent, step = competing[best.parent], context.step
        known = recalled(best.candidate, step)
        made = []
        for one in every_proposal(self.proposals, known, trained.answers, context):
            chosen = inherited(one, parent, step) if self.remembers else one
            clusters, _ = aggregation.combine(
                context.model, parent, chosen, trained.answers, trained.known, context.round
            )
            made.append(
                Hypothesis(
                    clusters,
                    chosen.association,
                    best.log_weight,
                    (best.parent,),
                    chosen.kind,
                    (*parent.lineage, best.parent),
                    chosen.state,
                    carried_models=chosen.carried_models,
                )
            )
        return tuple(made)
