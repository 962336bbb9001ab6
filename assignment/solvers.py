"""Solvers by name: the best association, the M best, or all in ascending order of cost."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping
from itertools import islice, takewhile
from math import inf
from sys import maxsize
from types import MappingProxyType
from typing import Literal, TypeAlias

import numpy as np
import numpy.typing as npt

from assignment.arrays import validate_count
from assignment.costs import validate_excess
from assignment.problem import ClusterSizes, Problem, make_problem
from assignment.ranked import Assignment, RankedAssignments, Search
from assignment.ranking.bounded import murty_search
from assignment.ranking.one_to_one import (
    compiled_search,
    hungarian_search,
    numba_is_installed,
)
from assignment.ranking.unbounded import argmin_search, heap_search

SolverName: TypeAlias = Literal["auto", "argmin", "heap", "murty", "hungarian", "numba"]


def automatic_search(problem: Problem, wanted: int | None = None) -> Search:
    """Enumerate with the fastest algorithm that supports the problem's bounds."""
    if problem.bounds is None:
        return heap_search(problem)
    if not problem.one_to_one:
        return murty_search(problem)
    return (compiled_search if numba_is_installed() else hungarian_search)(problem, wanted)


SOLVERS: Mapping[str, Callable[[Problem, int | None], Search]] = MappingProxyType(
    {
        "auto": automatic_search,
        "argmin": argmin_search,
        "heap": heap_search,
        "murty": murty_search,
        "hungarian": hungarian_search,
        "numba": compiled_search,
    }
)
"""Search algorithms by name.

`argmin` finds the best association alone and `heap` ranks all, both with free cluster sizes;
`murty` ranks within any bounds, also none; `hungarian` ranks one-to-one associations, and `numba`
ranks them in the same order by compiled code, where numba is installed (`pip install
'bcfl[compiled]'`).
"""


def best_assignment(
    cost: npt.ArrayLike, lower: ClusterSizes = None, upper: ClusterSizes = None
) -> Assignment:
    """The most probable association.

    Args:
        cost: costs in nats, shape (clients, clusters); +inf forbids a pair.
        lower: fewest clients per cluster, an integer or shape (clusters,); None means 0.
        upper: most clients per cluster, an integer or shape (clusters,); None means no limit.

    Returns:
        The association of least cost; with free cluster sizes ties go to the lower cluster.

    Raises:
        ValueError: bad costs or bounds.
        InfeasibleError: no association satisfies the constraints.

    Example:
        >>> import assignment
        >>> cost = [[0.0, 1.0], [0.0, 0.5], [2.0, 0.0]]
        >>> assignment.best_assignment(cost).labels
        array([0, 0, 1])
        >>> assignment.best_assignment(cost, upper=[1, 2]).labels
        array([0, 1, 1])
    """
    search = automatic_search(make_problem(cost, lower, upper))
    return Assignment(search.labels, (), search.cost, 0.0)


def iter_assignments(
    cost: npt.ArrayLike,
    lower: ClusterSizes = None,
    upper: ClusterSizes = None,
    max_excess: float = inf,
    solver: SolverName = "auto",
) -> Iterator[Assignment]:
    """All feasible associations, lazily, in ascending order of cost and without duplicates.

    Args:
        cost: costs in nats, shape (clients, clusters); +inf forbids a pair.
        lower: fewest clients per cluster, an integer or shape (clusters,); None means 0.
        upper: most clients per cluster, an integer or shape (clusters,); None means no limit.
        max_excess: stop beyond this cost above the best, in nats.
        solver: name of a search algorithm (see `assignment.SOLVERS`); "auto" takes the fastest that
            applies.

    Returns:
        A lazy iterator; the first association is the best one.

    Raises:
        ValueError: bad costs, bounds, `max_excess` or solver, before anything is enumerated.
        InfeasibleError: no association satisfies the constraints.

    Example:
        >>> import assignment
        >>> cost = [[0.0, 1.0], [0.0, 0.5], [2.0, 0.0]]
        >>> [each.cost for each in assignment.iter_assignments(cost, max_excess=1.0)]
        [0.0, 0.5, 1.0]
    """
    search = start_search(make_problem(cost, lower, upper), solver)
    limit = validate_excess(max_excess)
    within = takewhile(lambda step: step[0] <= limit, search.steps)
    return (
        Assignment(search.labels, deviations, search.cost + excess, excess)
        for excess, deviations in within
    )


def m_best_assignments(
    cost: npt.ArrayLike,
    m: int,
    lower: ClusterSizes = None,
    upper: ClusterSizes = None,
    max_excess: float = inf,
    solver: SolverName = "auto",
) -> RankedAssignments:
    """The m most probable associations, in ascending order of cost and without duplicates.

    Args:
        cost: costs in nats, shape (clients, clusters); +inf forbids a pair.
        m: number of associations, at least 1; fewer are returned where fewer are feasible.
        lower: fewest clients per cluster, an integer or shape (clusters,); None means 0.
        upper: most clients per cluster, an integer or shape (clusters,); None means no limit.
        max_excess: leave out associations beyond this cost above the best, in nats.
        solver: name of a search algorithm (see `assignment.SOLVERS`); "auto" takes the fastest that
            applies.

    Returns:
        The associations with their log-weights and captured probability mass.

    Raises:
        ValueError: bad costs, m, bounds, `max_excess` or solver.
        InfeasibleError: no association satisfies the constraints.

    Example:
        >>> import assignment
        >>> cost = [[0.0, 1.0], [0.0, 0.5], [2.0, 0.0]]
        >>> ranked = assignment.m_best_assignments(cost, m=2)
        >>> ranked.labels
        array([[0, 0, 1],
               [0, 1, 1]])
        >>> ranked.cost
        array([0. , 0.5])
    """
    count, limit = validate_count(m), validate_excess(max_excess)
    problem = make_problem(cost, lower, upper)
    count = min(count, maxsize)
    search = start_search(problem, solver, count)
    steps = list(takewhile(lambda step: step[0] <= limit, islice(search.steps, count)))
    excess = np.array([step[0] for step in steps], dtype=np.float64)
    excess.flags.writeable = False
    deviations = tuple(step[1] for step in steps)
    return RankedAssignments(
        problem=problem,
        best_labels=search.labels,
        best_cost=search.cost,
        excess=excess,
        deviations=deviations,
    )


def start_search(problem: Problem, solver: str, wanted: int | None = None) -> Search:
    """Start an enumeration.

    Args:
        problem: costs and bounds.
        solver: name of a solver in `SOLVERS`.
        wanted: how many associations will be asked for, if known; it changes no result.

    Raises:
        ValueError: there is no solver of that name, or it does not support the bounds.
        InfeasibleError: no association satisfies the constraints.
    """
    validate_solver(solver)
    return SOLVERS[solver](problem, wanted)


def validate_solver(solver: str) -> None:
    """Check the name of a solver.

    Raises:
        ValueError: there is no solver of that name.
    """
    if solver not in SOLVERS:
        raise ValueError(f"solver must be one of {', '.join(SOLVERS)}; got {solver!r}")
