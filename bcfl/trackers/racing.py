"""Several starts, raced: each is followed by its own association, and weak ones are dropped.

What is uncertain with few samples is mostly which basin of the association is right, so that the
posterior needs hypotheses of different basins. Each start is one; all are weighted by the clients'
log evidence over the rounds of the race, through pseudo-BMA+. Where clients are scored by cavities,
this evidence leaves out each client's last contribution.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace

import numpy as np
from numpy.typing import NDArray

from bcfl.aggregation.aggregation import Aggregation
from bcfl.hypotheses.hypothesis import HypothesisSet
from bcfl.hypotheses.matching import best_matching
from bcfl.policies.context import RoundContext, check_round, round_number
from bcfl.policies.policy import Candidate, Policy
from bcfl.protocol.requests import Steps
from bcfl.trackers.start_evidence import start_weights, with_evidence
from bcfl.trackers.successors import Successor, train
from bcfl.trackers.tracker import TrackerInfo, rankings_of


@dataclass(frozen=True)
class RacingStarts:
    """Follow every start by its first-ranked association; drop starts that lose the race.

    Attributes:
        burn_in: round, or share of the run below 1, in which the race begins: before it all starts
            are kept, and their evidence does not count later.
        min_weight: starts of lower weight are dropped after that.
        same: two starts whose associations agree, after matching their clusters, on at least this
            share of the clients are one; the heavier is kept with the weight of both.
    """

    burn_in: float = 0.3
    min_weight: float = 0.002
    same: float = 0.95

    def __post_init__(self) -> None:
        check_round("burn_in", self.burn_in)
        if not 0 <= self.min_weight < 1:
            raise ValueError(f"min_weight must lie in [0, 1), got {self.min_weight}")
        if not 0 < self.same <= 1:
            raise ValueError(f"same must lie in (0, 1], got {self.same}")

    @property
    def candidates_per_parent(self) -> int:
        """One."""
        return 1

    def step(
        self,
        hypotheses: HypothesisSet,
        policy: Policy,
        aggregation: Aggregation,
        context: RoundContext,
    ) -> Steps[tuple[HypothesisSet, TrackerInfo]]:
        """Associate each start, weight them, drop losers, train the rest.

        See `bcfl.trackers.Tracker.step`.
        """
        parents = hypotheses.hypotheses
        named = [replace(h, lineage=h.lineage or (i,)) for i, h in enumerate(parents)]
        rankings = yield from rankings_of(named, policy, context)
        first = [ranking.first for ranking in rankings]
        needed = any(one.needs_cavities for one in first)
        folds = max(one.folds for one in first)
        chosen = [replace(one, needs_cavities=needed, folds=folds) for one in first]
        race = round_number(self.burn_in, context)
        chosen = with_evidence(chosen, context, race)
        weights = start_weights(chosen, context)
        if context.round >= race:
            weights = self._raced(chosen, weights)
        successors = [
            Successor(chosen[i], i, float(np.log(weights[i])), rankings[i].facts)
            for i in map(int, np.argsort(-weights, kind="stable"))
            if weights[i] > 0
        ]
        trained = yield from train(parents, successors, aggregation, context)
        after = HypothesisSet.weighted(trained.children, context.round + 1, float("nan"))
        return after, trained.info

    def _raced(
        self, chosen: Sequence[Candidate], weights: NDArray[np.float64]
    ) -> NDArray[np.float64]:
        """Weights after the race; 0 for starts that are dropped."""
        left = weights.copy()
        order = np.argsort(-weights, kind="stable")
        survivors: list[int] = []
        for index in map(int, order):
            if survivors and weights[index] < self.min_weight:
                left[index] = 0.0
                continue
            twin = next((s for s in survivors if self._agree(chosen[s], chosen[index])), None)
            if twin is None:
                survivors.append(index)
            else:
                left[twin] += left[index]
                left[index] = 0.0
        return left

    def _agree(self, first: Candidate, second: Candidate) -> bool:
        overlap = first.association.serving.T @ second.association.serving
        matched = best_matching(overlap)
        agreeing = overlap[np.arange(len(matched)), matched].sum()
        return bool(agreeing >= self.same * max(overlap.sum(), 1.0))
