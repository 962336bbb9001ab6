"""Trackers that keep hypotheses apart: greedy, multi-hypothesis, exact (BCFL, section 4)."""

from __future__ import annotations

from dataclasses import dataclass

from bcfl.aggregation.aggregation import Aggregation
from bcfl.hypotheses.hypothesis import HypothesisSet
from bcfl.policies.context import RoundContext
from bcfl.policies.policy import Policy
from bcfl.protocol.requests import Steps
from bcfl.trackers.tracker import TrackerInfo, follow


@dataclass(frozen=True)
class MultiHypothesis:
    """Keep the M most probable histories of associations: BCFL-MH (equation 18).

    Attributes:
        max_hypotheses: how many hypotheses are kept after a round.
        max_per_parent: how many associations are looked at for each hypothesis; by default as many
            as are kept.
    """

    max_hypotheses: int
    max_per_parent: int | None = None

    def __post_init__(self) -> None:
        if self.max_hypotheses < 1:
            raise ValueError(f"max_hypotheses must be at least 1, got {self.max_hypotheses}")
        if self.max_per_parent is not None and self.max_per_parent < 1:
            raise ValueError(f"max_per_parent must be at least 1, got {self.max_per_parent}")

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
        """Rank over all hypotheses, cap, then train the survivors alone."""
        after, info, _ = yield from follow(
            hypotheses, policy, aggregation, context, self.max_hypotheses
        )
        return after, info


@dataclass(frozen=True)
class Greedy:
    """Keep the most probable association alone: BCFL-G (equation 16)."""

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
        """One step of the multi-hypothesis tracker with one hypothesis."""
        return (yield from MultiHypothesis(1).step(hypotheses, policy, aggregation, context))


@dataclass(frozen=True)
class Exact:
    """Keep every association of every history: the conceptual solution (algorithm 1).

    Attributes:
        limit: refuse a round that would keep more hypotheses than this.
    """

    limit: int = 100_000

    def __post_init__(self) -> None:
        if self.limit < 1:
            raise ValueError(f"limit must be at least 1, got {self.limit}")

    @property
    def candidates_per_parent(self) -> None:
        """All of them."""
        return None

    def check(self, num_clusters: int, num_clients: int, num_asked: int) -> None:
        """Refuse a federation whose first round would pass the limit.

        Args:
            num_clusters: clusters at the start.
            num_clients: clients of the federation.
            num_asked: clients that are asked in a round.

        Raises:
            ValueError: the number of hypotheses would pass the limit.
        """
        self._refuse(num_clusters**num_asked, 0)

    def step(
        self,
        hypotheses: HypothesisSet,
        policy: Policy,
        aggregation: Aggregation,
        context: RoundContext,
    ) -> Steps[tuple[HypothesisSet, TrackerInfo]]:
        """Expand without pruning.

        Raises:
            ValueError: the number of hypotheses would pass the limit.
        """
        count = len(hypotheses) * policy.num_clusters ** len(context.participants)
        self._refuse(count, context.round)
        after, info, _ = yield from follow(hypotheses, policy, aggregation, context, None)
        return after, info

    def _refuse(self, count: int, round: int) -> None:
        if count > self.limit:
            raise ValueError(
                f"the exact tracker would keep {count:.7g} hypotheses after round {round}, limit "
                f"is {self.limit}; use a multi-hypothesis tracker"
            )
