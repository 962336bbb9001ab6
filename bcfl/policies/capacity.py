"""Bounds on cluster sizes (capacitated clustering)."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

import assignment
from bcfl.hypotheses.association import UNSEEN, Association


@dataclass(frozen=True)
class ClusterSize:
    """Fewest and most clients of each cluster, over all clients, present or absent.

    Attributes:
        lower: fewest clients per cluster.
        upper: most clients per cluster; None is no limit.
    """

    lower: int = 0
    upper: int | None = None

    def __post_init__(self) -> None:
        if self.lower < 0 or (self.upper is not None and self.upper < max(self.lower, 1)):
            raise ValueError(
                f"cluster_size must be (lower, upper) with 0 <= lower <= upper and upper at "
                f"least 1 or None, got {(self.lower, self.upper)}"
            )

    @property
    def free(self) -> bool:
        """Whether every size is allowed."""
        return self.lower == 0 and self.upper is None

    @classmethod
    def of(cls, bounds: ClusterSize | tuple[int, int | None]) -> ClusterSize:
        """The bounds themselves, or bounds from a pair (lower, upper)."""
        return bounds if isinstance(bounds, ClusterSize) else cls(*bounds)

    def check_solver(self, solver: assignment.SolverName) -> None:
        """Check that a solver can rank associations within the bounds.

        Args:
            solver: name of the solver.

        Raises:
            ValueError: it cannot.
        """
        if solver in ("argmin", "heap") and not self.free:
            raise ValueError(f"solver {solver!r} needs free cluster sizes; use 'murty' or 'auto'")
        if solver in ("hungarian", "numba") and self.upper != 1:
            raise ValueError(
                f"solver {solver!r} needs at most 1 client per cluster, got an upper bound of "
                f"{'none' if self.upper is None else self.upper}; use 'murty' or 'auto'"
            )

    def check(self, num_clusters: int, num_clients: int) -> None:
        """Check that the clients can be distributed over the clusters within the bounds.

        Args:
            num_clusters: number of clusters.
            num_clients: number of clients of the federation.

        Raises:
            ValueError: too few clients for `lower`, or too many for `upper`.
        """
        most = num_clients if self.upper is None else self.upper * num_clusters
        if not self.lower * num_clusters <= num_clients <= most:
            raise ValueError(
                f"cluster_size {(self.lower, self.upper)} does not fit {num_clients} clients in "
                f"{num_clusters} clusters (num_clusters, or first_clusters where that is 'auto')"
            )

    def left_for(
        self, clients: Sequence[str], association: Association
    ) -> tuple[NDArray[np.int64] | None, NDArray[np.int64] | None]:
        """Remaining bounds for the participants, given the clients that stay where they are.

        If the participants are too few for all lower bounds, they are spread as evenly as possible
        over the clusters that lack clients. All lower bounds thus hold as soon as all clients have
        been seen.

        Args:
            clients: names of the participants.
            association: of all clients, before the round.

        Returns:
            Lower and upper bounds, int64 of shape (clusters,); both None where sizes are free.
        """
        if self.free:
            return None, None
        staying = association.labels.copy()
        staying[[association.position[client] for client in clients]] = UNSEEN
        sizes = np.bincount(staying[staying != UNSEEN], minlength=association.num_clusters)
        level = self.lower
        while np.maximum(level - sizes, 0).sum() > len(clients):
            level -= 1
        most = len(association.clients) if self.upper is None else self.upper
        if level < self.lower:
            most = level + 1
        return np.maximum(level - sizes, 0), np.maximum(most - sizes, 0)

    def allows(self, association: Association) -> bool:
        """Whether sizes are within bounds, or still can be once all clients have been seen."""
        sizes = association.sizes
        unseen = int((association.labels == UNSEEN).sum())
        missing = int(np.maximum(self.lower - sizes, 0).sum())
        most = len(association.clients) if self.upper is None else self.upper
        return missing <= unseen and bool(sizes.max() <= most)


FREE = ClusterSize()
"""Clusters of any size."""
