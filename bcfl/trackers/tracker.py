"""The tracker protocol."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Protocol

from bcfl.aggregation.aggregation import Aggregation, FusionReport
from bcfl.hypotheses.hypothesis import HypothesisSet
from bcfl.policies.context import RoundContext
from bcfl.policies.policy import Policy
from bcfl.protocol.requests import Steps


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
