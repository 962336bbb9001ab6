"""Consensus tracker (BCFL-C, section 4.3, equation 17): train the M best, then merge them."""

from __future__ import annotations

from dataclasses import dataclass, replace

from bcfl.aggregation.aggregation import Aggregation
from bcfl.aggregation.merging import merge_hypotheses
from bcfl.hypotheses.hypothesis import HypothesisSet
from bcfl.policies.context import RoundContext
from bcfl.policies.policy import Policy
from bcfl.protocol.requests import Steps
from bcfl.runtime import check_whole
from bcfl.trackers.successors import follow
from bcfl.trackers.tracker import TrackerInfo


@dataclass(frozen=True)
class Consensus:
    """Follow the M best associations for a round, then merge them into one hypothesis.

    The merged association is soft: a client is served by a cluster with the weight of the
    associations that put it there.

    Attributes:
        num_associations: how many associations are followed and merged.

    Example:
        With `clients` and `method` of the example of `bcfl.Federation`:

        >>> from dataclasses import replace
        >>> from bcfl import trackers
        >>> merging = replace(method, tracker=trackers.Consensus(3))
        >>> run = bcfl.Federation(clients, lambda: nn.Linear(2, 2), merging).run(1)
        >>> len(run.hypotheses), run.hypotheses.best.association.probabilities.shape
        (1, (4, 2))
    """

    num_associations: int

    def __post_init__(self) -> None:
        check_whole("num_associations", self.num_associations)

    @property
    def candidates_per_parent(self) -> int:
        """As many as are merged."""
        return self.num_associations

    def step(
        self,
        hypotheses: HypothesisSet,
        policy: Policy,
        aggregation: Aggregation,
        context: RoundContext,
    ) -> Steps[tuple[HypothesisSet, TrackerInfo]]:
        """Rank, train for the M best, and merge. See `bcfl.trackers.Tracker.step`."""
        weighted, info, successors = yield from follow(
            hypotheses, policy, aggregation, context, self.num_associations
        )
        sizes = successors[0].candidate.cluster_size
        merged = merge_hypotheses(aggregation, context.model, weighted.hypotheses, sizes)
        return replace(weighted, hypotheses=(merged,)), info
