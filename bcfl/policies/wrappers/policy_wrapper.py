"""Base of policies that wrap another policy."""

from __future__ import annotations

from bcfl.policies.policy import Policy, Validates
from bcfl.protocol.objective import Objective


class PolicyWrapper:
    """A policy around another one, with its number of clusters, objective and requirements.

    Attributes:
        policy: the wrapped policy.
    """

    policy: Policy

    @property
    def num_clusters(self) -> int:
        """Number of clusters of the policy."""
        return self.policy.num_clusters

    @property
    def objective(self) -> Objective:
        """How the clients train."""
        return self.policy.objective

    def check(self, num_clusters: int, num_clients: int, num_participants: int) -> None:
        """Check the requirements of the wrapped policy. See `Validates.check`."""
        if isinstance(self.policy, Validates):
            self.policy.check(num_clusters, num_clients, num_participants)
