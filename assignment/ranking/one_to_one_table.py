"""One-to-one problems as a table of costs, with dual prices and the costs of exchanges."""

from dataclasses import dataclass

import numpy as np

from assignment.arrays import BoolArray, FloatArray, IntArray, frozen
from assignment.costs import row_gaps
from assignment.problem import Problem
from assignment.ranking.best_one_to_one import best_columns

SMALLEST_EDGE = 1e-300
"""Zero reduced costs are raised to this, since a sparse graph takes zero for no edge."""

LARGEST_EXPONENT = 900
"""Costs are searched times a power of two that brings the largest below 2 to this power.

No difference between costs is then as small as `SMALLEST_EDGE`, and no path cost overflows.
"""


@dataclass(frozen=True, eq=False, kw_only=True)
class Table:
    """Data of a search for second-best associations.

    Attributes:
        cost: costs times 2 ** exponent in nats, float64 of shape (clients, columns).
        exponent: see `LARGEST_EXPONENT`.
        best: column of every client in the best association of all, int64 of shape (clients,).
        required: columns that must be filled, bool of shape (columns,).
    """

    cost: FloatArray
    exponent: int
    best: IntArray
    required: BoolArray

    @property
    def idle(self) -> bool:
        """Whether some columns are left empty."""
        return bool(self.cost.shape[1] > len(self.cost))

    def free(self, columns: IntArray) -> BoolArray:
        """Columns that no client has, bool of shape (columns,).

        Args:
            columns: column of every client, int64 of shape (clients,).
        """
        unused = np.ones(self.cost.shape[1], dtype=bool)
        unused[columns] = False
        return unused


def make_table(problem: Problem) -> Table:
    """The table of a one-to-one problem, with the best association.

    Args:
        problem: costs and bounds.

    Raises:
        ValueError: some cluster may take more than one client.
        InfeasibleError: no one-to-one association is permitted.
    """
    if not problem.one_to_one:
        raise ValueError("solvers hungarian and numba need one-to-one sizes: at most 1 client each")
    gaps, bounds = row_gaps(problem.cost)[1], problem.bounds
    required = np.zeros(problem.clusters, dtype=bool)
    if bounds is not None:
        gaps, required = np.where(bounds.upper == 0, np.inf, gaps), bounds.lower == 1
    columns = frozen(best_columns(gaps, required))
    largest = np.frexp(np.max(gaps, where=np.isfinite(gaps), initial=0.0))[1]
    exponent = LARGEST_EXPONENT - int(largest)
    cost = np.ldexp(gaps, exponent)
    return Table(cost=cost, exponent=exponent, best=columns, required=required)


def dual_prices(table: Table) -> tuple[FloatArray, FloatArray]:
    """Row and column prices that prove the best optimal, by Bellman and Ford's recursion.

    Args:
        table: the problem.

    Returns:
        Row prices in nats, the idle row, if any, last, and column prices, both float64.
    """
    matched = table.cost[np.arange(len(table.best)), table.best]
    unused = table.free(table.best)
    extra = exchanges(table, table.cost, table.best)
    extra[: len(matched)] -= matched[:, None]
    prices = np.zeros(len(extra))
    for _ in range(len(extra)):
        lower = np.minimum(prices, (prices[:, None] + extra).min(axis=0))
        if np.array_equal(lower, prices):
            break
        prices = lower
    column_prices = np.zeros(len(unused))
    column_prices[table.best] = prices[: len(matched)]
    if not table.idle:
        return matched - prices, column_prices
    column_prices[unused] = prices[-1]
    return np.append(matched - prices[:-1], -prices[-1]), column_prices


def exchanges(table: Table, costs: FloatArray, columns: IntArray) -> FloatArray:
    """Cost in nats of row i taking row k's column, at [i, k]; the idle row, if any, is the last.

    Args:
        table: the problem.
        costs: costs of clients and columns, shape (clients, columns).
        columns: column of every client, int64 of shape (clients,).
    """
    if not table.idle:
        return costs[:, columns]
    clients = len(columns)
    exchange = np.empty((clients + 1, clients + 1))
    exchange[:clients, :clients] = costs[:, columns]
    exchange[:clients, clients] = costs[:, table.free(columns)].min(axis=1)
    exchange[clients, :clients] = np.where(table.required[columns], np.inf, 0.0)
    exchange[clients, clients] = np.inf
    return exchange
