"""What a policy that follows another one takes from it."""

from __future__ import annotations

from bcfl.policies.policy import Policy, Validates
from bcfl.protocol.objective import Objective


class PolicyWrapper:
    """A policy around another one, with as many clusters, the same objective and the same demands.

    Attributes:
        policy: the policy that is followed.
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

    def check(self, num_clusters: int, num_clients: int, num_asked: int) -> None:
        """Refuse what the policy refuses; see `Validates`."""
        if isinstance(self.policy, Validates):
            self.policy.check(num_clusters, num_clients, num_asked)
