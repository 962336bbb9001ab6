"""M-best associations of many problems of one shape in one call."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from itertools import islice
from math import perm
from typing import TypeAlias

import numpy as np
import numpy.typing as npt

from assignment.arrays import BoolArray, FloatArray, IntArray, frozen, refuse_mask, validate_count
from assignment.costs import InfeasibleError, row_minima, validate_costs
from assignment.problem import ClusterSizes, make_problem, stated_sizes
from assignment.ranked import RankedAssignments, label_table
from assignment.ranking.best_one_to_one import best_columns, one_to_one_columns
from assignment.ranking.compiled import rank_problems
from assignment.ranking.one_to_one import ascending, numba_is_installed
from assignment.ranking.one_to_one_table import Table, ascending_columns, scaled
from assignment.solvers import SolverName, m_best_assignments, validate_solver


@dataclass(frozen=True, eq=False, kw_only=True)
class RankedBatch:
    """The best associations of several problems, each in ascending order of cost.

    Attributes:
        costs: the problems' costs in nats, float64 of shape (problems, clients, clusters).
        lower: fewest clients per cluster, as given.
        upper: most clients per cluster, as given.
        counts: number of associations of each problem, 0 where none is feasible, int64 of shape
            (problems,).
        labels: cluster of every client, int64 of shape (problems, m, clients); -1 beyond a
            problem's count.
        excess: cost above the problem's best in nats, float64 of shape (problems, m); +inf beyond
            a problem's count, so that such an entry has no weight.
        best_cost: cost of each problem's best association in nats, float64 of shape (problems,);
            +inf where none is feasible.
    """

    costs: FloatArray
    lower: ClusterSizes
    upper: ClusterSizes
    counts: IntArray
    labels: IntArray
    excess: FloatArray
    best_cost: FloatArray

    def __len__(self) -> int:
        return len(self.costs)

    def __getitem__(self, index: int) -> RankedAssignments:
        count = int(self.counts[index])
        if not count:
            raise InfeasibleError(f"costs[{index}] admits no association within its bounds")
        problem = make_problem(self.costs[index], self.lower, self.upper)
        labels = self.labels[index, :count]
        deviations = []
        for one in labels:
            moved = np.flatnonzero(one != labels[0])
            deviations.append(tuple(zip(moved.tolist(), one[moved].tolist(), strict=True)))
        return RankedAssignments(
            problem=problem,
            best_labels=labels[0],
            best_cost=float(self.best_cost[index]),
            excess=self.excess[index, :count],
            deviations=tuple(deviations),
        )

    def __iter__(self) -> Iterator[RankedAssignments]:
        return (self[index] for index in range(len(self)))

    def __repr__(self) -> str:
        return f"RankedBatch({len(self)} problems, {self.counts.sum()} associations)"


def m_best_assignments_batch(
    costs: npt.ArrayLike,
    m: int,
    lower: ClusterSizes = None,
    upper: ClusterSizes = None,
    solver: SolverName = "auto",
) -> RankedBatch:
    """The m most probable associations of every problem, as `m_best_assignments` ranks each.

    One-to-one problems are solved together, which is many times faster for small ones; others are
    solved in turn.

    Args:
        costs: costs in nats, shape (problems, clients, clusters); +inf forbids a pair.
        m: number of associations of each, at least 1; a problem has fewer where fewer are feasible.
        lower: fewest clients per cluster, an integer or shape (clusters,); None means 0.
        upper: most clients per cluster, an integer or shape (clusters,); None means no limit.
        solver: name of a search algorithm (see `assignment.SOLVERS`); "auto" takes the fastest that
            applies.

    Returns:
        The associations of all problems. One that admits none has a count of 0.

    Raises:
        ValueError: bad costs, m, bounds or solver.
    """
    count = validate_count(m)
    validate_solver(solver)
    matrices = _validate(costs)
    least, most = stated_sizes(lower, upper, matrices.shape[1:])
    if (most > 1).any() or solver not in ("auto", "hungarian", "numba"):
        ranked = _in_turn(matrices, count, least, most, solver)
    else:
        count = min(count, perm(matrices.shape[2], matrices.shape[1]) or 1)
        ranked = _together(matrices, count, least, most, solver)
    counts, labels, excess = ranked
    kept = max(1, int(counts.max()))
    chosen = np.take_along_axis(matrices, np.maximum(labels[:, 0, :, None], 0), axis=2)
    best_cost = np.where(counts > 0, chosen[:, :, 0].sum(axis=1), np.inf)
    return RankedBatch(
        costs=matrices,
        lower=lower,
        upper=upper,
        counts=frozen(counts),
        labels=frozen(labels[:, :kept]),
        excess=frozen(excess[:, :kept]),
        best_cost=frozen(best_cost),
    )


def _validate(costs: npt.ArrayLike) -> FloatArray:
    given = np.asarray(refuse_mask("costs", costs))
    if given.ndim != 3 or given.size == 0:
        raise ValueError(
            f"costs must be a non-empty array (problems, clients, clusters), got {given.shape}"
        )
    flat = given.reshape(-1, given.shape[2])
    try:
        flat = validate_costs(flat)
    except InfeasibleError:  # a row that is all +inf leaves its own problem infeasible
        flat = np.asarray(flat, dtype=np.float64)
        if len(filled := flat[np.isfinite(flat).any(axis=1)]):
            validate_costs(filled)
    return frozen(np.array(flat.reshape(given.shape), order="C"))


Ranked: TypeAlias = tuple[IntArray, IntArray, FloatArray]
"""Counts, labels and excess, see `RankedBatch`."""


def _in_turn(
    matrices: FloatArray, count: int, least: IntArray, most: IntArray, solver: SolverName
) -> Ranked:
    found: list[RankedAssignments | None] = []
    for matrix in matrices:
        try:
            found.append(m_best_assignments(matrix, count, least, most, solver=solver))
        except InfeasibleError:
            found.append(None)
    longest = max((len(ranked) for ranked in found if ranked is not None), default=1)
    counts, labels, excess = _empty(matrices, longest)
    for one, ranked in enumerate(found):
        if ranked is not None:
            counts[one] = len(ranked)
            labels[one, : len(ranked)] = ranked.labels
            excess[one, : len(ranked)] = ranked.excess
    return counts, labels, excess


def _empty(matrices: FloatArray, count: int) -> Ranked:
    problems, clients, _ = matrices.shape
    labels = np.full((problems, count, clients), -1, dtype=np.int64)
    return np.zeros(problems, dtype=np.int64), labels, np.full((problems, count), np.inf)


def _together(
    matrices: FloatArray, count: int, least: IntArray, most: IntArray, solver: SolverName
) -> Ranked:
    """As `_in_turn`, for one-to-one problems."""
    gaps, required, feasible = _one_to_one(matrices, least, most)
    counts, labels, excess = _empty(matrices, count)
    demanding = (required.any(axis=1) & (gaps.shape[2] > gaps.shape[1])).tolist()
    for one in np.flatnonzero(feasible).tolist():
        try:
            if demanding[one]:
                labels[one, 0] = best_columns(gaps[one], required[one])
            else:
                labels[one, 0] = one_to_one_columns(gaps[one])
        except InfeasibleError:
            feasible[one] = False
    counts[feasible], excess[feasible, 0] = 1, 0.0
    if count > 1 and feasible.any():
        compiled = solver == "numba" or (solver == "auto" and numba_is_installed())
        rank = _rank_compiled if compiled else _rank_in_numpy
        best = labels[feasible, 0]
        counts[feasible], labels[feasible], excess[feasible] = rank(
            gaps[feasible], required[feasible], best, count
        )
    return counts, labels, excess


def _rank_compiled(gaps: FloatArray, required: BoolArray, best: IntArray, count: int) -> Ranked:
    cost, exponents = scaled(gaps)
    labels = np.empty((len(best), count, best.shape[1]), dtype=np.int64)
    excess = np.empty((len(best), count))
    counts = rank_problems(cost, required, best, ascending_columns(gaps, count), (labels, excess))
    beyond = np.arange(count) >= counts[:, None]
    labels[beyond], excess[beyond] = -1, np.inf
    return counts, labels, np.ldexp(excess, -exponents[:, None])


def _rank_in_numpy(gaps: FloatArray, required: BoolArray, best: IntArray, count: int) -> Ranked:
    cost, exponents = scaled(gaps)
    cheapest = ascending_columns(gaps, count)
    counts, labels, excess = _empty(gaps, count)
    for one in range(len(best)):
        table = Table(
            cost=cost[one],
            exponent=int(exponents[one]),
            best=best[one],
            required=required[one],
            cheapest=cheapest[one],
        )
        steps = list(islice(ascending(table, count), count))
        counts[one] = len(steps)
        excess[one, : len(steps)] = [step[0] for step in steps]
        labels[one, : len(steps)] = label_table(best[one], tuple(step[1] for step in steps))
    return counts, labels, excess


def _one_to_one(
    matrices: FloatArray, least: IntArray, most: IntArray
) -> tuple[FloatArray, BoolArray, BoolArray]:
    """Gaps over row minima, columns that must be filled, and problems that may be feasible."""
    clients = matrices.shape[1]
    joinable = np.isfinite(matrices).sum(axis=1)
    upper = np.minimum(most, joinable)
    lower = np.maximum(least, clients - (upper.sum(axis=1, keepdims=True) - upper))
    closed = np.minimum(upper, clients - (least.sum() - least)) == 0
    minima = row_minima(matrices.reshape(-1, matrices.shape[2])).reshape(-1, clients)
    feasible = np.isfinite(minima).all(axis=1) & (least <= upper).all(axis=1)
    feasible &= (least.sum() <= clients) & (upper.sum(axis=1) >= clients)
    with np.errstate(invalid="ignore"):
        gaps = matrices - minima[:, :, None]
    if closed.any():
        gaps[np.broadcast_to(closed[:, None], gaps.shape)] = np.inf
    unlimited = (most >= joinable).all(axis=1) & ~least.any()
    return gaps, (lower == 1) & ~unlimited[:, None], feasible
