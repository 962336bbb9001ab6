"""Greedy, multi-hypothesis and exact trackers (BCFL-G, BCFL-MH, algorithm 1; BCFL, section 4)."""

from __future__ import annotations

from dataclasses import dataclass

from bcfl.aggregation.aggregation import Aggregation
from bcfl.hypotheses.hypothesis import HypothesisSet
from bcfl.policies.context import RoundContext
from bcfl.policies.policy import Policy
from bcfl.protocol.requests import Steps
from bcfl.runtime import check_whole, is_real
from bcfl.trackers.successors import follow
from bcfl.trackers.tracker import TrackerInfo


@dataclass(frozen=True)
class MultiHypothesis:
    """Keep the M most probable histories of associations, as BCFL-MH does (equation 18).

    Attributes:
        max_hypotheses: how many hypotheses are kept after a round.
        max_per_parent: associations enumerated for each hypothesis; by default as many as
            are kept.
        min_weight: hypotheses of lower probability are pruned before they are trained.

    Example:
        With `clients` and `method` of the example of `bcfl.Federation`:

        >>> from dataclasses import replace
        >>> from bcfl import trackers
        >>> best_three = replace(method, tracker=trackers.MultiHypothesis(3))
        >>> len(bcfl.Federation(clients, lambda: nn.Linear(2, 2), best_three).run(1).hypotheses)
        3
    """

    max_hypotheses: int
    max_per_parent: int | None = None
    min_weight: float = 0.0

    def __post_init__(self) -> None:
        check_whole("max_hypotheses", self.max_hypotheses)
        if self.max_per_parent is not None:
            check_whole("max_per_parent", self.max_per_parent)
        if not (is_real(self.min_weight) and 0 <= self.min_weight < 1):
            raise ValueError(f"min_weight must lie in [0, 1), got {self.min_weight!r}")

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
        """Rank over all hypotheses, cap, prune, and train the survivors.

        See `bcfl.trackers.Tracker.step`.
        """
        after, info, _ = yield from follow(
            hypotheses, policy, aggregation, context, self.max_hypotheses, self.min_weight
        )
        return after, info


@dataclass(frozen=True)
class Greedy:
    """Keep the most probable association alone.

    With likelihoods as weights of associations this is BCFL-G, equation 16; methods with one
    cluster, and those that associate by other means, have one candidate to keep.

    Example:
        With `clients` and `method` of the example of `bcfl.Federation`:

        >>> from dataclasses import replace
        >>> from bcfl import trackers
        >>> greedy = replace(method, tracker=trackers.Greedy())
        >>> len(bcfl.Federation(clients, lambda: nn.Linear(2, 2), greedy).run(1).hypotheses)
        1
    """

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
        """The multi-hypothesis tracker with one hypothesis. See `bcfl.trackers.Tracker.step`."""
        return (yield from MultiHypothesis(1).step(hypotheses, policy, aggregation, context))


@dataclass(frozen=True)
class Exact:
    """Keep every association of every history (BCFL, algorithm 1).

    Attributes:
        limit: refuse a round that would keep more hypotheses than this.
    """

    limit: int = 100_000

    def __post_init__(self) -> None:
        check_whole("limit", self.limit)

    @property
    def candidates_per_parent(self) -> None:
        """All of them."""
        return None

    def check(self, num_clusters: int, num_clients: int, num_participants: int) -> None:
        """Refuse a federation whose first round would exceed the limit.

        See `bcfl.policies.policy.Validates.check`.

        Args:
            num_clusters: clusters at the start.
            num_clients: clients of the federation.
            num_participants: number of participants of a round.

        Raises:
            ValueError: the number of hypotheses would exceed the limit.
        """
        self._refuse(num_clusters**num_participants, 0)

    def check_rounds(
        self, num_hypotheses: int, num_clusters: int, num_participants: int, rounds: range
    ) -> None:
        """Refuse rounds after which the limit would be exceeded.

        See `bcfl.trackers.tracker.ChecksRounds.check_rounds`.

        Args:
            num_hypotheses: hypotheses before the first of them.
            num_clusters: clusters of the policy.
            num_participants: participants of a round.
            rounds: their numbers, from 0.

        Raises:
            ValueError: the number of hypotheses would exceed the limit.
        """
        count = num_hypotheses
        for round in rounds:
            count *= num_clusters**num_participants
            self._refuse(count, round)

    def step(
        self,
        hypotheses: HypothesisSet,
        policy: Policy,
        aggregation: Aggregation,
        context: RoundContext,
    ) -> Steps[tuple[HypothesisSet, TrackerInfo]]:
        """Expand without pruning. See `bcfl.trackers.Tracker.step`.

        Raises:
            ValueError: the number of hypotheses would exceed the limit.
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
