"""Adaptive multi-hypothesis tracker (BCFL-MHT, an extension of BCFL-MH).

The M best associations of one hypothesis (BCFL-MH, Eq. 18) differ in few clients and share a local
optimum. This tracker merges near-duplicate hypotheses, adapts their number to the effective sample
size of the weights, and adds split, merge, birth and death proposals that ranking cannot reach.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace
from math import ceil, inf

import numpy as np

import assignment
from bcfl.aggregation.aggregation import Aggregation
from bcfl.aggregation.crossfit import folds_of
from bcfl.hypotheses.hypothesis import Hypothesis, HypothesisSet
from bcfl.policies.context import RoundContext
from bcfl.policies.policy import Policy
from bcfl.protocol.requests import Steps
from bcfl.runtime import check_whole
from bcfl.trackers.absent_clients import WithAbsentClients, with_inherited_costs, with_last_costs
from bcfl.trackers.near_copies import NearCopies
from bcfl.trackers.proposals import Proposal, SplitAndFree, all_proposals
from bcfl.trackers.successors import (
    Successor,
    Trained,
    child_of,
    cross_fitted,
    expand,
    log_captured_mass,
    train,
)
from bcfl.trackers.survival import AncestorQuota, NScan
from bcfl.trackers.tracker import TrackerInfo

NEAR_COPIES = NearCopies()
PROPOSALS: tuple[Proposal, ...] = (SplitAndFree(),)
NEGLIGIBLE = 50.0
"""Log weights this far below the best, in nats, do not affect the effective number."""


@dataclass(frozen=True, kw_only=True)
class AdaptiveMultiHypothesis:
    """Keep up to M hypotheses that differ.

    Defaults follow the ablation in `experiments.studies.tracker_ablation`: proposals find the
    groups; merging near copies and adapting M limit the number of local trainings.

    Attributes:
        max_hypotheses: most hypotheses kept after a round.
        adapt: keep only as many as the effective number of hypotheses, rounded up.
        near_copies: how near copies are merged; None keeps them.
        proposals: alternatives that ranking cannot reach.
        quota: survival of initial hypotheses in the first rounds; None leaves it to the weights.
        n_scan: N-scan pruning; None leaves past ambiguities to the weights.
        remembers: whether absent clients count with their last costs (`WithAbsentClients`).
        max_per_parent: most associations enumerated for each hypothesis; None is as many as are
            kept.
    """

    max_hypotheses: int = 8
    adapt: bool = True
    near_copies: NearCopies | None = NEAR_COPIES
    proposals: tuple[Proposal, ...] = PROPOSALS
    quota: AncestorQuota | None = None
    n_scan: NScan | None = None
    remembers: bool = True
    max_per_parent: int | None = None

    def __post_init__(self) -> None:
        check_whole("max_hypotheses", self.max_hypotheses)
        if self.max_per_parent is not None:
            check_whole("max_per_parent", self.max_per_parent)

    @property
    def candidates_per_parent(self) -> int:
        """How many associations are looked at for each hypothesis."""
        return self.max_hypotheses if self.max_per_parent is None else self.max_per_parent

    def step(
        self,
        hypotheses: HypothesisSet,
        policy: Policy,
        aggregation: Aggregation,
        context: RoundContext,
    ) -> Steps[tuple[HypothesisSet, TrackerInfo]]:
        """Rank, cap, train, merge near copies, and propose. See `bcfl.trackers.Tracker.step`."""
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
        log_kept = float(np.logaddexp.reduce([h.log_weight for h in children]))
        best = replace(best, log_weight=best.log_weight - log_kept)
        if self.near_copies is not None:
            sizes = kept[0].candidate.cluster_size
            children = self.near_copies.merge(children, aggregation, context.model, sizes)
        captured = log_captured_mass(children, log_total)
        after = HypothesisSet.weighted(children, context.round + 1, captured)
        proposed = self._proposed(competing, best, trained, aggregation, context)
        return replace(after, proposals=proposed), trained.info

    @property
    def _within(self) -> float:
        """Largest gap to the best log weight of a successor that can matter, nats."""
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
        """Alternatives to the best hypothesis, aggregated from its local models.

        They state no belief: the costs are of clusters that they change.
        """
        parent, step = competing[best.parent], context.step
        candidate = with_last_costs(best.candidate, step)
        answers, blocks = trained.answers, trained.blocks
        hypotheses = []
        for proposal in all_proposals(self.proposals, candidate, answers, context):
            chosen = with_inherited_costs(proposal, parent, step) if self.remembers else proposal
            successor = replace(best, candidate=replace(chosen, costs=None))
            child, _ = child_of(parent, successor, aggregation, context, answers, blocks)
            folds = folds_of(parent, chosen, context.seed, context.num_samples)
            child = cross_fitted(child, folds, aggregation, context, answers, blocks)
            hypotheses.append(child)
        return tuple(hypotheses)
