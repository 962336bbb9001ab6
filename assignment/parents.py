"""M-best associations over several parent hypotheses, visiting only parents that matter."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from fractions import Fraction
from functools import cached_property
from itertools import islice

import numpy as np
import numpy.typing as npt

from assignment.arrays import (
    FloatArray,
    IntArray,
    frozen,
    logsumexp,
    validate_count,
)
from assignment.costs import InfeasibleError, row_minima
from assignment.parent_problems import ParentProblems, make_parent_problems
from assignment.problem import ClusterSizes
from assignment.ranked import Assignment
from assignment.ranking.merging import merge_rankings
from assignment.solvers import SolverName, start_search, validate_solver


@dataclass(frozen=True, eq=False)
class ChildAssignment:
    """An association that follows one parent hypothesis.

    Attributes:
        parent: index of the parent.
        assignment: the association, its cost and its deviations from that parent's best one.
        log_weight: the parent's log-weight minus the association's cost, in nats.
    """

    parent: int
    assignment: Assignment
    log_weight: float

    @property
    def labels(self) -> IntArray:
        """Cluster of every client, int64 of shape (clients,)."""
        return self.assignment.labels


@dataclass(frozen=True, eq=False)
class RankedChildren:
    """The best associations over all parents, in descending order of weight.

    Attributes:
        problems: the parents' problems that they were chosen from.
        children: the associations, best first.
    """

    problems: ParentProblems
    children: tuple[ChildAssignment, ...]

    @cached_property
    def parent(self) -> IntArray:
        """Index of each association's parent, int64 of shape (m,)."""
        return frozen(np.array([child.parent for child in self.children], dtype=np.int64))

    @cached_property
    def log_weight(self) -> FloatArray:
        """Unnormalised log-weights in nats, descending, float64 of shape (m,)."""
        return frozen(np.array([child.log_weight for child in self.children], dtype=np.float64))

    @cached_property
    def labels(self) -> IntArray:
        """Cluster of every client, int64 of shape (m, clients), built on first access."""
        return frozen(np.stack([child.labels for child in self.children]))

    @cached_property
    def log_partition(self) -> float:
        """Log of the summed weights of all associations of all parents in nats; NaN if unknown."""
        return self.problems.reference - float(self._first) + self._log_partition

    @cached_property
    def log_captured_mass(self) -> float:
        """Log of the share of that sum which these hold, in nats, at most 0; NaN if unknown."""
        return float(np.minimum(0.0, float(logsumexp(-self.excess)) - self._log_partition))

    @cached_property
    def excess(self) -> FloatArray:
        """Log-weight below the heaviest in nats, ascending, float64 of shape (m,), exact."""
        below = [
            self._best_gap[c.parent] + Fraction(c.assignment.excess) - self._first
            for c in self.children
        ]
        return frozen(np.array([float(gap) for gap in below]))

    @cached_property
    def _best_gap(self) -> dict[int, Fraction]:
        return {parent: self.problems.best_gap(parent) for parent in set(self.parent.tolist())}

    @cached_property
    def _first(self) -> Fraction:
        first = self.children[0]
        return self._best_gap[first.parent] + Fraction(first.assignment.excess)

    @cached_property
    def _log_partition(self) -> float:
        """Log of the summed weights of all associations over that of the heaviest, nats."""
        terms = []
        for parent in self.problems.possible:
            total = self.problems.log_partition(parent)
            if total > -np.inf or np.isnan(total):
                gap = self._best_gap.get(parent) or self.problems.best_gap(parent)
                terms.append(total - float(gap - self._first))
        return float(logsumexp(np.array(terms)))

    def __len__(self) -> int:
        return len(self.children)

    def __getitem__(self, index: int) -> ChildAssignment:
        return self.children[index]

    def __iter__(self) -> Iterator[ChildAssignment]:
        return iter(self.children)

    def __repr__(self) -> str:
        return (
            f"RankedChildren({len(self)} of {len(self.problems.costs)} parents, best log weight "
            f"{self.children[0].log_weight:.6g} nats)"
        )


def m_best_over_parents(
    costs: Sequence[npt.ArrayLike] | FloatArray,
    parent_log_weights: npt.ArrayLike,
    m: int,
    lower: ClusterSizes = None,
    upper: ClusterSizes = None,
    solver: SolverName = "auto",
) -> RankedChildren:
    """M-best associations over all parents; a parent is searched only if it can contribute.

    Parents are visited in order of log-weight minus least possible cost (`merge_rankings`); the
    search ends as soon as m associations outweigh the bounds of all others.

    Args:
        costs: one matrix of costs in nats per parent, each (clients, clusters of that parent), or
            an array of shape (parents, clients, clusters).
        parent_log_weights: log-weights in nats, shape (parents,); -inf leaves a parent out.
        m: number of associations, at least 1; fewer are returned where fewer are feasible.
        lower: fewest clients per cluster, an integer or shape (clusters,).
        upper: most clients per cluster, an integer or shape (clusters,).
        solver: name of the search algorithm used for every parent.

    Returns:
        The associations, heaviest first; ties go to the lower parent. A parent under which no
        association is feasible has none.

    Raises:
        ValueError: bad costs, weights, m, bounds or solver, or parents with different clients.
        InfeasibleError: no parent admits any association.
    """
    count = validate_count(m)
    validate_solver(solver)
    problems = make_parent_problems(costs, parent_log_weights, lower, upper)
    children = tuple(islice(_heaviest_first(problems, solver), count))
    if not children:
        raise InfeasibleError("no parent admits any association within its forbidden pairs/sizes")
    return RankedChildren(problems, children)


def iter_over_parents(
    costs: Sequence[npt.ArrayLike] | FloatArray,
    parent_log_weights: npt.ArrayLike,
    lower: ClusterSizes = None,
    upper: ClusterSizes = None,
    solver: SolverName = "auto",
) -> Iterator[ChildAssignment]:
    """All associations over all parents, lazily, heaviest first.

    Args:
        costs: one matrix of costs in nats per parent, each (clients, clusters of that parent), or
            an array of shape (parents, clients, clusters).
        parent_log_weights: log-weights in nats, shape (parents,); -inf leaves a parent out.
        lower: fewest clients per cluster, an integer or shape (clusters,).
        upper: most clients per cluster, an integer or shape (clusters,).
        solver: name of the search algorithm used for every parent.

    Returns:
        A lazy iterator, in the order of `m_best_over_parents`.

    Raises:
        ValueError: bad costs, weights, bounds or solver, or parents with different clients.
        InfeasibleError: no parent has any weight.
    """
    validate_solver(solver)
    problems = make_parent_problems(costs, parent_log_weights, lower, upper)
    return _heaviest_first(problems, solver)


def _heaviest_first(problems: ParentProblems, solver: SolverName) -> Iterator[ChildAssignment]:
    rankings = [_ranking(problems, parent, solver) for parent in range(len(problems.costs))]
    for gap, parent, assignment in merge_rankings(rankings, problems.gaps):
        yield ChildAssignment(parent, assignment, problems.reference - gap)


def _ranking(
    problems: ParentProblems, parent: int, solver: SolverName
) -> Iterator[tuple[float, Assignment]]:
    """Associations of one parent with the gaps of their weights below the reference, in nats."""
    try:
        problem = problems.problem(parent)
        search = start_search(problem, solver)
    except InfeasibleError:
        return
    least = float(problems.gaps[parent])
    if problem.bounds is not None:
        chosen = problem.cost[np.arange(problem.clients), search.labels]
        least = float(problems.gaps[parent] + (chosen - row_minima(problem.cost)).sum())
    for excess, deviations in search.steps:
        yield least + excess, Assignment(search.labels, deviations, search.cost + excess, excess)
