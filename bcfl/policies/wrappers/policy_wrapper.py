"""Base of policies that wrap another policy, and what is inside wrappers."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
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


def asked_by(policy: Policy) -> dict[str, str]:
    """Statistics of training samples, other than losses, that clients are asked for, by name.

    Policies that ask for some have them as `asks`, each with the option that avoids it, or with
    empty text where none does.

    Args:
        policy: a policy, or wrappers around it.
    """
    found: dict[str, str] = {}
    for part in chain_of(policy):
        asks: Mapping[str, str] = getattr(part, "asks", {})
        inside = [getattr(part, "first", None), *getattr(part, "policies", ())]
        for other in (asks, *(asked_by(each) for each in inside if each is not None)):
            found |= other
    return found


def bounds_of(policy: Policy) -> ClusterSize:
    """Bounds on cluster sizes of the policy that is followed in the end.

    Args:
        policy: a policy, or wrappers around it.
    """
    *_, last = chain_of(policy)
    bounds: ClusterSize = getattr(last, "cluster_size", FREE)
    return bounds
