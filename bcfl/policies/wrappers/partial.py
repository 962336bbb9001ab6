"""Partial aggregation steps: clusters move by their share of all samples (CAM, Eq. 6)."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass, replace

from bcfl.hypotheses.hypothesis import Hypothesis
from bcfl.policies.context import RoundContext
from bcfl.policies.policy import Candidate, Policy, Ranking
from bcfl.policies.wrappers.policy_wrapper import PolicyWrapper
from bcfl.protocol.requests import Steps


@dataclass(frozen=True)
class Partial(PolicyWrapper):
    """Associate by a policy; each cluster moves by its share of all samples.

    Equation 6 of the CAM paper (Ma et al. 2023) adds to a cluster's model the updates of its
    clients weighted by n_j / n with n the samples of all clients, not of the cluster. A cluster
    that holds a tenth of the samples goes a tenth of the way to its clients' mean.

    Attributes:
        policy: ranks the associations.
    """

    policy: Policy

    def associate(self, hypothesis: Hypothesis, context: RoundContext) -> Steps[Ranking]:
        """Associate by the policy, and mark its candidates.

        See `bcfl.policies.Policy.associate`.
        """
        ranking = yield from self.policy.associate(hypothesis, context)
        return replace(ranking, candidates=_marked(iter(ranking)))


def _marked(candidates: Iterator[Candidate]) -> Iterator[Candidate]:
    return (replace(candidate, partial=True) for candidate in candidates)
