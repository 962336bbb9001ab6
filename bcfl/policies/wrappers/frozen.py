"""Few-shot clustering (WeCFL thesis, chapters 4 to 6): associations freeze after some rounds."""

from __future__ import annotations

from dataclasses import dataclass

from bcfl.hypotheses.association import UNSEEN
from bcfl.hypotheses.hypothesis import Hypothesis
from bcfl.policies.context import RoundContext
from bcfl.policies.policy import Policy, Ranking, candidate
from bcfl.policies.wrappers.policy_wrapper import PolicyWrapper
from bcfl.protocol.requests import Steps
from bcfl.runtime import check_whole


@dataclass(frozen=True)
class Frozen(PolicyWrapper):
    """Associate by a policy in the first rounds; afterwards clients keep their clusters.

    The WeCFL thesis clusters in the first 10 rounds. Rounds with clients that were never seen are
    still associated by the policy.

    Attributes:
        policy: associates in the first rounds.
        rounds: number of these rounds.
    """

    policy: Policy
    rounds: int = 10

    def __post_init__(self) -> None:
        check_whole("rounds", self.rounds)

    def associate(self, hypothesis: Hypothesis, context: RoundContext) -> Steps[Ranking]:
        """Associate by the policy, or keep the association.

        See `bcfl.policies.Policy.associate`.
        """
        labels = {client: hypothesis.association.label(client) for client in context.participants}
        if context.round < self.rounds or UNSEEN in labels.values():
            return (yield from self.policy.associate(hypothesis, context))
        return Ranking.only(
            candidate(hypothesis, labels, self.objective, num_samples=context.num_samples)
        )
