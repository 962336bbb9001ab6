"""What a policy or a tracker demands of the federation that it is to serve."""

from __future__ import annotations

from typing import Protocol, runtime_checkable


@runtime_checkable
class Demanding(Protocol):
    """A policy or tracker that cannot serve every federation, and says so before work starts."""

    def check(self, num_clusters: int, num_clients: int, num_asked: int) -> None:
        """Check what shows beforehand.

        Args:
            num_clusters: clusters at the start.
            num_clients: clients of the federation.
            num_asked: clients that are asked in a round.

        Raises:
            ValueError: it cannot serve such a federation.
        """
        ...
