"""Results of a search: one association, or several in ascending order of cost."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from functools import cached_property
from typing import TypeAlias

import numpy as np

from assignment.arrays import FloatArray, IntArray, frozen, logsumexp
from assignment.costs import row_minima
from assignment.partition import known_log_partition_over_best
from assignment.problem import Problem

Deviations: TypeAlias = tuple[tuple[int, int], ...]
"""Pairs (client, cluster) in which an association differs from the best one."""


@dataclass(frozen=True, eq=False)
class Search:
    """A running enumeration: the best association and, on demand, all others in order.

    Attributes:
        labels: clusters of the best association, int64 of shape (clients,), read-only.
        cost: cost of the best association in nats.
        steps: lazy (excess in nats, deviations) in ascending order, from (0.0, ()) on.
    """

    labels: IntArray
    cost: float
    steps: Iterator[tuple[float, Deviations]]


@dataclass(frozen=True, eq=False)
class Assignment:
    """An association of every client with one cluster.

    Attributes:
        best_labels: clusters in the best association of the same problem, int64 (clients,).
        deviations: (client, cluster) pairs in which this association differs from the best one.
        cost: total cost in nats.
        excess: cost above the best association in nats, stored separately so that it is exact
            where the total has rounded it away.
    """

    best_labels: IntArray
    deviations: Deviations
    cost: float
    excess: float

    @cached_property
    def labels(self) -> IntArray:
        """Cluster of every client, int64 of shape (clients,), read-only."""
        if not self.deviations:
            return self.best_labels
        labels = self.best_labels.copy()
        for client, cluster in self.deviations:
            labels[client] = cluster
        return frozen(labels)

    @property
    def log_weight(self) -> float:
        """Unnormalised log-weight in nats, which is minus the cost."""
        return -self.cost

    def __repr__(self) -> str:
        return (
            f"Assignment(cost={self.cost:.6g} nats, excess={self.excess:.6g}, "
            f"clients={len(self.best_labels)}, deviations={len(self.deviations)})"
        )


@dataclass(frozen=True, eq=False, kw_only=True)
class RankedAssignments:
    """The best associations of one problem, in ascending order of cost, without duplicates.

    Attributes:
        problem: the costs and bounds that were searched.
        best_labels: clusters of the best association, int64 of shape (clients,).
        best_cost: its cost in nats.
        excess: cost above the best in nats, ascending, float64 of shape (m,).
        deviations: for each association, the (client, cluster) pairs that differ from the best.
    """

    problem: Problem
    best_labels: IntArray
    best_cost: float
    excess: FloatArray
    deviations: tuple[Deviations, ...]

    @property
    def cost(self) -> FloatArray:
        """Total costs in nats, ascending, float64 of shape (m,)."""
        return self.best_cost + self.excess

    @property
    def log_weight(self) -> FloatArray:
        """Unnormalised log-weights in nats, float64 of shape (m,), which are minus the costs."""
        return -self.cost

    @cached_property
    def labels(self) -> IntArray:
        """Cluster of every client, int64 of shape (m, clients), built on first access."""
        return frozen(label_table(self.best_labels, self.deviations))

    @cached_property
    def log_partition(self) -> float:
        """Log of the summed weights of *all* feasible associations in nats.

        NaN where cluster sizes are bounded and exact counting needs more states than its budget
        (see `assignment.counts`).
        """
        over_best, best_gap = self._log_partition_over_best
        return over_best - (best_gap + float(row_minima(self.problem.cost).sum()))

    @cached_property
    def log_captured_mass(self) -> float:
        """Log of the probability mass of these associations in nats, at most 0; NaN if unknown."""
        log_kept = float(logsumexp(-self.excess))
        return float(np.minimum(0.0, log_kept - self._log_partition_over_best[0]))

    @cached_property
    def _log_partition_over_best(self) -> tuple[float, float]:
        return known_log_partition_over_best(self.problem)

    def __len__(self) -> int:
        return len(self.excess)

    def __getitem__(self, index: int) -> Assignment:
        excess = float(self.excess[index])
        return Assignment(self.best_labels, self.deviations[index], self.best_cost + excess, excess)

    def __iter__(self) -> Iterator[Assignment]:
        return (self[index] for index in range(len(self)))

    def __repr__(self) -> str:
        return (
            f"RankedAssignments({len(self)} of {self.problem.clients} clients in "
            f"{self.problem.clusters} clusters, best cost {self.best_cost:.6g} nats, "
            f"excess up to {self.excess[-1]:.6g})"
        )


def label_table(best_labels: IntArray, deviations: tuple[Deviations, ...]) -> IntArray:
    """Labels of associations that are stored as deviations.

    Args:
        best_labels: clusters of the best association, int64 of shape (clients,).
        deviations: for each association, the (client, cluster) pairs that differ from the best.

    Returns:
        int64 of shape (associations, clients).
    """
    table = np.tile(best_labels, (len(deviations), 1))
    lengths = [len(pairs) for pairs in deviations]
    moved = np.array([pair for pairs in deviations for pair in pairs], dtype=np.int64)
    if moved.size:
        table[np.repeat(np.arange(len(deviations)), lengths), moved[:, 0]] = moved[:, 1]
    return table
