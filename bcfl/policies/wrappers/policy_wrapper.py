"""Base of policies that wrap another policy, and what is inside wrappers."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

from bcfl.policies.capacity import FREE, ClusterSize
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


def chain_of(policy: Policy) -> Iterator[Policy]:
    """Wrappers from outside inwards, and the policy that is followed in the end.

    Args:
        policy: a policy, or wrappers around it.
    """
    inside: Any = policy
    while inside is not None:
        yield inside
        inside = getattr(inside, "then", None) or getattr(inside, "policy", None)


def bounds_of(policy: Policy) -> ClusterSize:
    """Bounds on cluster sizes of the policy that is followed in the end.

    Args:
        policy: a policy, or wrappers around it.
    """
    *_, last = chain_of(policy)
    bounds: ClusterSize = getattr(last, "cluster_size", FREE)
    return bounds
