"""Partition functions: the summed weight of all feasible associations."""

from __future__ import annotations

import numpy as np
import numpy.typing as npt

from assignment.arrays import logsumexp
from assignment.costs import InfeasibleError, row_gaps, row_minima
from assignment.counts import StateBudgetError, count_chain
from assignment.problem import ClusterSizes, Problem, make_problem


def log_partition(
    cost: npt.ArrayLike, lower: ClusterSizes = None, upper: ClusterSizes = None
) -> float:
    """Log of the summed weights of all feasible associations.

    With free cluster sizes clients are independent, so it is the sum over clients of
    logsumexp(-cost) over clusters; with bounds it takes a pass over count vectors.

    Args:
        cost: costs in nats, shape (clients, clusters); +inf forbids a pair.
        lower: fewest clients per cluster, an integer or shape (clusters,); None means 0.
        upper: most clients per cluster, an integer or shape (clusters,); None means no limit.

    Returns:
        log sum over associations of exp(-cost), in nats; -inf if none is feasible.

    Raises:
        ValueError: bad costs or bounds.
        InfeasibleError: a client may join no cluster, or the bounds cannot add up.
        StateBudgetError: bounds need more than `assignment.counts.MAX_STATES` states.
    """
    problem = make_problem(cost, lower, upper)
    try:
        over_best, best_gap = log_partition_over_best(problem)
    except InfeasibleError:
        return -np.inf
    return over_best - (best_gap + float(row_minima(problem.cost).sum()))


def log_partition_over_best(problem: Problem) -> tuple[float, float]:
    """Log partition function in nats above the log weight of the best association.

    Args:
        problem: costs and bounds.

    Returns:
        The log partition function, at least 0, and the best association's cost above the row
        minima; both in nats.

    Raises:
        InfeasibleError: forbidden pairs leave no association within the bounds.
        StateBudgetError: exact counting needs too many states.
    """
    gaps = row_gaps(problem.cost)[1]
    if problem.bounds is None:
        return float(np.sum(logsumexp(-gaps, axis=1))), 0.0
    chain = count_chain(gaps, problem.bounds)
    return chain.log_partition_over_best, chain.best_gap


def known_log_partition_over_best(problem: Problem) -> tuple[float, float]:
    """As `log_partition_over_best`, but NaN (not known) where the state budget is exceeded."""
    try:
        return log_partition_over_best(problem)
    except StateBudgetError:
        return float("nan"), float("nan")
