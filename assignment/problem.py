"""Association problems: costs, and optional bounds on cluster sizes."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TypeAlias

import numpy as np
import numpy.typing as npt

from assignment.arrays import FloatArray, IntArray, frozen, refuse_mask
from assignment.costs import InfeasibleError, validate_costs

ClusterSizes: TypeAlias = npt.ArrayLike | None
"""A bound on cluster sizes: one integer for all, one per cluster, or None for no bound."""


@dataclass(frozen=True, eq=False)
class Bounds:
    """Bounds on cluster sizes, tightened to what they imply for one another.

    Attributes:
        lower: fewest clients, int64 of shape (clusters,).
        upper: most clients, int64 of shape (clusters,).
        stated_lower: fewest clients as given, int64 of shape (clusters,).
        stated_upper: most clients as given or, if fewer, permitted, int64 of shape (clusters,).
    """

    lower: IntArray
    upper: IntArray
    stated_lower: IntArray
    stated_upper: IntArray

    @property
    def forced(self) -> bool:
        """Whether the size of some non-empty cluster is fixed by the bounds."""
        return bool(((self.lower == self.upper) & (self.upper > 0)).any())


def unbounded(clients: int, clusters: int) -> Bounds:
    """Bounds that exclude nothing.

    Args:
        clients: number of clients.
        clusters: number of clusters.
    """
    fewest = np.zeros(clusters, dtype=np.int64)
    most = np.full(clusters, clients, dtype=np.int64)
    return Bounds(fewest, most, fewest, most)


@dataclass(frozen=True, eq=False)
class Problem:
    """Costs of clients against clusters with optional bounds on the cluster sizes.

    Attributes:
        cost: valid costs in nats, float64 of shape (clients, clusters), read-only.
        bounds: bounds on cluster sizes, or None where clients are independent.
    """

    cost: FloatArray
    bounds: Bounds | None

    @property
    def clients(self) -> int:
        """Number of clients."""
        return len(self.cost)

    @property
    def clusters(self) -> int:
        """Number of clusters."""
        return int(self.cost.shape[1])

    @property
    def one_to_one(self) -> bool:
        """Whether no cluster can take more than one client."""
        most = np.isfinite(self.cost).sum(axis=0) if self.bounds is None else self.bounds.upper
        return bool((most <= 1).all())


def make_problem(
    cost: npt.ArrayLike, lower: ClusterSizes = None, upper: ClusterSizes = None
) -> Problem:
    """Validate and copy costs and bounds on cluster sizes.

    Bounds that exclude nothing are dropped, so that the cheaper algorithms apply.

    Args:
        cost: costs in nats, shape (clients, clusters); +inf forbids a pair.
        lower: fewest clients per cluster, an integer or shape (clusters,); None means 0.
        upper: most clients per cluster, an integer or shape (clusters,); None means no limit.

    Returns:
        The problem with its bounds tightened.

    Raises:
        ValueError: bad costs, or bounds that are no integers, negative, of the wrong shape or
            with lower above upper.
        InfeasibleError: a row is all +inf, or the bounds cannot add up to the number of clients.
    """
    matrix = frozen(np.array(validate_costs(cost), order="C"))
    if lower is None and upper is None:
        return Problem(matrix, None)
    least, most = stated_sizes(lower, upper, matrix.shape)
    joinable = np.isfinite(matrix).sum(axis=0)
    if not least.any() and (most >= joinable).all():
        return Problem(matrix, None)
    return Problem(matrix, _tighten(least, np.minimum(most, joinable), len(matrix)))


def stated_sizes(
    lower: ClusterSizes, upper: ClusterSizes, shape: tuple[int, ...]
) -> tuple[IntArray, IntArray]:
    """Bounds on cluster sizes as given, each int64 of shape (clusters,).

    Args:
        lower: fewest clients per cluster, an integer or shape (clusters,); None means 0.
        upper: most clients per cluster, an integer or shape (clusters,); None means no limit.
        shape: numbers of clients and of clusters.

    Raises:
        ValueError: bounds that are no integers, negative, of the wrong shape or with lower above
            upper.
    """
    least = _sizes("lower", lower, 0, shape)
    most = _sizes("upper", upper, shape[0], shape)
    if (least > most).any():
        cluster = int(np.argmax(least > most))
        raise ValueError(f"lower {least[cluster]} exceeds upper {most[cluster]}, cluster {cluster}")
    return least, most


def _sizes(name: str, given: ClusterSizes, default: int, shape: tuple[int, ...]) -> IntArray:
    clients, clusters = shape
    if given is None:
        return np.full(clusters, default, dtype=np.int64)
    sizes = np.asarray(refuse_mask(name, given))
    if sizes.dtype.kind not in "iu":
        raise ValueError(f"{name} must hold integers (clients per cluster), got {given!r}")
    if sizes.ndim == 0:
        sizes = np.full(clusters, sizes)
    if sizes.shape != (clusters,):
        raise ValueError(f"{name} must be one integer or have shape ({clusters},), got {given!r}")
    if (sizes < 0).any():
        raise ValueError(f"{name} must not be negative, got {given!r}")
    capped: IntArray = np.minimum(sizes, clients + 1).astype(np.int64)
    return capped


def _tighten(lower: IntArray, upper: IntArray, clients: int) -> Bounds:
    crowded = np.flatnonzero(lower > upper).tolist()
    if crowded:
        raise InfeasibleError(f"cluster(s) {crowded} have fewer permitted clients than lower")
    if lower.sum() > clients or upper.sum() < clients:
        raise InfeasibleError(
            f"cluster sizes allow {lower.sum()} to {upper.sum()} clients in all, "
            f"there are {clients}"
        )
    return Bounds(
        frozen(np.maximum(lower, clients - (upper.sum() - upper))),
        frozen(np.minimum(upper, clients - (lower.sum() - lower))),
        frozen(lower),
        frozen(upper),
    )
