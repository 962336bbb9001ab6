"""Several parent hypotheses, each with its own costs for the same clients."""

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np
import numpy.typing as npt

from assignment.arrays import BoolArray, FloatArray
from assignment.costs import InfeasibleError, row_minima, validate_costs
from assignment.partition import known_log_partition_over_gaps
from assignment.problem import ClusterSizes, Problem, pose


@dataclass(frozen=True, eq=False)
class Family:
    """Parents with their cost matrices and the best weight each could reach.

    Attributes:
        costs: one matrix of costs in nats per parent, shape (clients, clusters of that parent).
        lower: fewest clients per cluster, as given.
        upper: most clients per cluster, as given.
        gaps: how far each parent's best conceivable weight lies below `reference`, in nats,
            float64 of shape (parents,); +inf for a parent without any weight.
        reference: best conceivable log-weight of all parents in nats.
    """

    costs: Sequence[FloatArray]
    lower: ClusterSizes
    upper: ClusterSizes
    gaps: FloatArray
    reference: float

    @property
    def living(self) -> list[int]:
        """Parents that have any weight."""
        return np.flatnonzero(np.isfinite(self.gaps)).tolist()

    def problem(self, parent: int) -> Problem:
        """The association problem of one parent."""
        return pose(self.costs[parent], self.lower, self.upper)

    def log_partition(self, parent: int) -> float:
        """Log of a parent's summed weights, in nats below `reference` (NaN: not known)."""
        try:
            total = known_log_partition_over_gaps(self.problem(parent))
        except InfeasibleError:
            return float("-inf")
        return total - float(self.gaps[parent])


def gather(
    costs: Sequence[npt.ArrayLike] | FloatArray,
    parent_log_weights: npt.ArrayLike,
    lower: ClusterSizes,
    upper: ClusterSizes,
) -> Family:
    """Validate the costs and weights of several parents and keep a private copy of both.

    Args:
        costs: one matrix of costs in nats per parent, or an array (parents, clients, clusters).
        parent_log_weights: log-weights in nats, shape (parents,); -inf leaves a parent out.
        lower: fewest clients per cluster, an integer or shape (clusters,).
        upper: most clients per cluster, an integer or shape (clusters,).

    Raises:
        ValueError: bad costs or weights, or parents with different clients.
        InfeasibleError: no parent has any weight.
    """
    weights = np.asarray(parent_log_weights, dtype=np.float64)
    if weights.shape != (len(costs),) or weights.size == 0:
        raise ValueError(
            f"parent_log_weights must have shape ({len(costs)},), one per cost matrix and at "
            f"least one; got {weights.shape}"
        )
    if np.isnan(weights).any() or np.isposinf(weights).any():
        raise ValueError("parent_log_weights must be below +inf and not NaN")
    matrices, minima = _least_costs(costs)
    reachable = weights - minima
    reference = float(reachable.max())
    if reference == -np.inf:
        raise InfeasibleError("no parent has any weight: log-weight -inf or a row all +inf")
    return Family(matrices, lower, upper, reference - reachable, reference)


def _least_costs(
    costs: Sequence[npt.ArrayLike] | FloatArray,
) -> tuple[Sequence[FloatArray], FloatArray]:
    """Valid cost matrices and the summed row minima of each in nats, +inf where infeasible."""
    if isinstance(costs, np.ndarray) and costs.ndim == 3 and costs.size:
        parents, clients, clusters = costs.shape
        flat = np.array(costs, dtype=np.float64).reshape(parents * clients, clusters)
        minima = row_minima(flat)
        _validate_stack(flat, np.isposinf(minima))
        return list(flat.reshape(costs.shape)), minima.reshape(parents, clients).sum(axis=1)
    matrices = [np.array(cost, dtype=np.float64) for cost in costs]
    least = np.array([_least_cost(parent, matrix) for parent, matrix in enumerate(matrices)])
    if len({len(matrix) for matrix in matrices}) > 1:
        raise ValueError(f"costs must share their clients, got {[len(x) for x in matrices]} rows")
    return matrices, least


def _validate_stack(flat: FloatArray, infeasible: BoolArray) -> None:
    if not infeasible.any():
        validate_costs(flat)
    elif not infeasible.all():
        validate_costs(flat[~infeasible])


def _least_cost(parent: int, matrix: FloatArray) -> float:
    try:
        return float(row_minima(validate_costs(matrix)).sum())
    except InfeasibleError:
        return float(np.inf)
    except ValueError as error:
        raise ValueError(f"costs[{parent}]: {error}") from error
