"""Problems of several parent hypotheses, with bounds on the weights of their associations."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from fractions import Fraction

import numpy as np
import numpy.typing as npt

from assignment.arrays import (
    BoolArray,
    FloatArray,
    refuse_mask,
)
from assignment.costs import InfeasibleError, row_gaps, row_minima, validate_costs
from assignment.feasible import best_labels
from assignment.partition import known_log_partition_over_best
from assignment.problem import ClusterSizes, Problem, make_problem
from assignment.weights import exact_sum


@dataclass(frozen=True, eq=False, kw_only=True)
class ParentProblems:
    """Cost matrices of parents, with an upper bound on the weight of each one's children.

    Attributes:
        costs: one matrix of costs in nats per parent, shape (clients, clusters of that parent).
        lower: fewest clients per cluster, as given.
        upper: most clients per cluster, as given.
        gaps: bound on each parent's largest log-weight, in nats below `reference`, float64 of shape
            (parents,), formed from differences between the parents; +inf for a parent without any
            weight.
        reference: bound on the largest log-weight over all parents in nats.
    """

    costs: Sequence[FloatArray]
    lower: ClusterSizes
    upper: ClusterSizes
    gaps: FloatArray
    reference: float

    @property
    def possible(self) -> list[int]:
        """Indices of the parents that have any weight."""
        return np.flatnonzero(np.isfinite(self.gaps)).tolist()

    def problem(self, parent: int) -> Problem:
        """The association problem of one parent."""
        return make_problem(self.costs[parent], self.lower, self.upper)

    def log_partition(self, parent: int) -> float:
        """Log of a parent's summed weights over that of its best association, nats (NaN: unknown).

        -inf where no association is feasible.
        """
        try:
            return known_log_partition_over_best(self.problem(parent))[0]
        except InfeasibleError:
            return float("-inf")

    def best_gap(self, parent: int) -> Fraction:
        """Exact gap in nats from `reference` to the weight of a parent's best association."""
        problem, least = self.problem(parent), Fraction(float(self.gaps[parent]))
        if problem.bounds is None:
            return least
        gaps = row_gaps(problem.cost)[1]
        labels = best_labels(gaps, problem.bounds)
        return least + exact_sum(gaps[np.arange(len(gaps)), labels])


def make_parent_problems(
    costs: Sequence[npt.ArrayLike] | FloatArray,
    parent_log_weights: npt.ArrayLike,
    lower: ClusterSizes,
    upper: ClusterSizes,
) -> ParentProblems:
    """Validate the costs and weights of several parents and keep a private copy of both.

    Args:
        costs: one matrix of costs in nats per parent, or an array (parents, clients, clusters).
        parent_log_weights: log-weights in nats, shape (parents,); -inf leaves a parent out.
        lower: fewest clients per cluster, an integer or shape (clusters,).
        upper: most clients per cluster, an integer or shape (clusters,).

    Returns:
        The parents' problems.

    Raises:
        ValueError: bad costs or weights, or parents with different clients.
        InfeasibleError: no parent has any weight.
    """
    given = refuse_mask("parent_log_weights", parent_log_weights)
    weights = np.asarray(given, dtype=np.float64)
    if weights.shape != (len(costs),) or weights.size == 0:
        raise ValueError(
            f"parent_log_weights must have shape ({len(costs)},), one per cost matrix and at "
            f"least one; got {weights.shape}"
        )
    if np.isnan(weights).any() or np.isposinf(weights).any():
        raise ValueError("parent_log_weights must be below +inf and not NaN")
    matrices, minima = _least_costs(costs)
    possible = (weights > -np.inf) & np.isfinite(minima).all(axis=1)
    if not possible.any():
        raise InfeasibleError("no parent has any weight: log-weight -inf or a row all +inf")
    gaps = np.full(len(weights), np.inf)
    gaps[possible], first = _gaps_below_first(weights[possible], minima[possible])
    reference = float(weights[possible][first] - minima[possible][first].sum())
    return ParentProblems(costs=matrices, lower=lower, upper=upper, gaps=gaps, reference=reference)


LARGEST_SPREAD = 256.0
"""Clients times nats of differences up to which their plain sum is right to 1e-13 nats."""


def _gaps_below_first(weights: FloatArray, minima: FloatArray) -> tuple[FloatArray, int]:
    """Gaps in nats below the largest log-weight minus summed minima, and its index."""
    apart = minima - minima[0]
    if np.abs(apart).max() * len(apart.T) <= LARGEST_SPREAD and np.ptp(weights) <= LARGEST_SPREAD:
        reachable = (weights - weights[0]) - apart.sum(axis=1)
        first = int(np.argmax(reachable))
        gaps: FloatArray = reachable[first] - reachable
        return gaps, first
    exact = [Fraction(w) - exact_sum(row) for w, row in zip(weights.tolist(), minima, strict=True)]
    first = exact.index(max(exact))
    return np.array([float(exact[first] - value) for value in exact]), first


def _least_costs(
    costs: Sequence[npt.ArrayLike] | FloatArray,
) -> tuple[Sequence[FloatArray], FloatArray]:
    """Valid cost matrices, and row minima in nats (parents, clients), +inf where infeasible."""
    if isinstance(costs, np.ndarray) and costs.ndim == 3 and costs.size:
        parents, clients, clusters = costs.shape
        flat = np.array(refuse_mask("costs", costs), dtype=np.float64)
        flat = flat.reshape(parents * clients, clusters)
        minima = row_minima(flat)
        _validate_stack(flat, np.isposinf(minima))
        return list(flat.reshape(costs.shape)), minima.reshape(parents, clients)
    matrices = [np.array(refuse_mask("costs", cost), dtype=np.float64) for cost in costs]
    least = [_row_minima(parent, matrix) for parent, matrix in enumerate(matrices)]
    if len({len(matrix) for matrix in matrices}) > 1:
        raise ValueError(f"costs must share their clients, got {[len(x) for x in matrices]} rows")
    return matrices, np.array(least)


def _validate_stack(flat: FloatArray, infeasible: BoolArray) -> None:
    if not infeasible.any():
        validate_costs(flat)
    elif not infeasible.all():
        validate_costs(flat[~infeasible])


def _row_minima(parent: int, matrix: FloatArray) -> FloatArray:
    try:
        return row_minima(validate_costs(matrix))
    except InfeasibleError:
        return np.full(len(matrix), np.inf)
    except ValueError as error:
        raise ValueError(f"costs[{parent}]: {error}") from error
