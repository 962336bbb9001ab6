"""Partition functions: the summed weight of all feasible associations."""

import numpy as np
import numpy.typing as npt

from assignment.arrays import logsumexp
from assignment.problem import Problem, pose


def log_partition(cost: npt.ArrayLike) -> float:
    """Log of the summed weights of all associations when cluster sizes are free.

    Every client chooses alone, so it is the sum over clients of logsumexp(-cost) over clusters.

    Args:
        cost: costs in nats, shape (clients, clusters); +inf forbids a pair.

    Returns:
        log sum over associations of exp(-cost), in nats.

    Raises:
        ValueError: bad costs (see `validate_costs`).
        InfeasibleError: a client may join no cluster.
    """
    problem = pose(cost)
    return log_partition_over_gaps(problem) - float(problem.cost.min(axis=1).sum())


def log_partition_over_gaps(problem: Problem) -> float:
    """Log partition function in nats after each row's minimum is taken off its costs."""
    minima = problem.cost.min(axis=1)
    return float(np.sum(logsumexp(minima[:, None] - problem.cost, axis=1)))
