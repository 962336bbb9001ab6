"""Partition functions: the summed weight of all feasible associations."""

import numpy as np
import numpy.typing as npt

from assignment.arrays import logsumexp
from assignment.costs import row_gaps, row_minima
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
    return log_partition_over_gaps(problem) - float(row_minima(problem.cost).sum())


def log_partition_over_gaps(problem: Problem) -> float:
    """Log partition function in nats after each row's minimum is taken off its costs."""
    gaps = row_gaps(problem.cost)[1]
    if problem.bounds is None:
        return float(np.sum(logsumexp(-gaps, axis=1)))
    return count_chain(gaps, problem.bounds).log_partition_over_gaps


def known_log_partition_over_gaps(problem: Problem) -> float:
    """As `log_partition_over_gaps`, but NaN (not known) where the state budget is exceeded."""
    try:
        return log_partition_over_gaps(problem)
    except StateBudgetError:
        return float("nan")
