"""One-to-one problems as a table of costs, with dual prices and the costs of exchanges."""

from dataclasses import dataclass

import numpy as np

from assignment.arrays import BoolArray, FloatArray, IntArray, frozen
from assignment.costs import row_gaps
from assignment.problem import Problem
from assignment.ranking.best_one_to_one import best_columns

ROUNDING = 1e-12
"""Bounds are lowered by this share of themselves and of the prices, lest rounding reorder parts."""

LARGEST_EXPONENT = 900
"""Costs are searched times a power of two that brings the largest below 2 to this power.

No difference between costs is then as small as `SMALLEST_EDGE`, and no path cost overflows.
"""


@dataclass(frozen=True, eq=False, kw_only=True)
class Table:
    """Data of a search for one-to-one associations.

    Attributes:
        cost: costs times 2 ** exponent in nats, float64 of shape (clients, columns).
        exponent: see `LARGEST_EXPONENT`.
        best: column of every client in the best association of all, int64 of shape (clients,).
        required: columns that must be filled, bool of shape (columns,).
        cheapest: columns of every client in ascending order of cost, as many as can matter, int64
            of shape (clients, columns), or (clients, 0) where no column is left empty.
    """

    cost: FloatArray
    exponent: int
    best: IntArray
    required: BoolArray
    cheapest: IntArray

    @property
    def idle(self) -> bool:
        """Whether some columns are left empty."""
        return bool(self.cost.shape[1] > len(self.cost))


def make_table(problem: Problem, wanted: int | None = None) -> Table:
    """The table of a one-to-one problem, with the best association.

    Args:
        problem: costs and bounds.
        wanted: how many associations will be asked for, if known.

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
    cost, exponent = scaled(gaps)
    return Table(
        cost=cost,
        exponent=int(exponent),
        best=columns,
        required=required,
        cheapest=ascending_columns(gaps, wanted),
    )


def scaled(gaps: FloatArray) -> tuple[FloatArray, IntArray]:
    """Costs times a power of two for each problem, and the exponents.

    Args:
        gaps: costs above each row's minimum in nats, shape (..., clients, columns).
    """
    largest = np.max(gaps, axis=(-2, -1), where=np.isfinite(gaps), initial=0.0)
    exponents = LARGEST_EXPONENT - np.frexp(largest)[1].astype(np.int64)
    return np.ldexp(gaps, exponents[..., None, None]), exponents


def ascending_columns(gaps: FloatArray, wanted: int | None = None) -> IntArray:
    """Columns of every client in ascending order of cost; none where no column is left empty.

    Others have at most one column each, and each association that is ranked bars at most one more:
    the cheapest clients + wanted of a client can matter.

    Args:
        gaps: costs above each row's minimum in nats, shape (..., clients, columns).
        wanted: how many associations will be asked for, if known.
    """
    clients, clusters = gaps.shape[-2:]
    if clusters <= clients:
        return np.empty((*gaps.shape[:-1], 0), dtype=np.int64)
    most = clusters if wanted is None else clients + wanted
    if most < clusters:
        cheap = gaps <= np.partition(gaps, most - 1, axis=-1)[..., most - 1, None]
        if np.count_nonzero(cheap) == gaps.size // clusters * most:  # no ties at the last of them
            columns = np.nonzero(cheap)[-1].reshape(*gaps.shape[:-1], most)
            order = np.argsort(np.take_along_axis(gaps, columns, axis=-1), axis=-1, kind="stable")
            return np.take_along_axis(columns, order, axis=-1)
    return np.argsort(gaps, axis=-1, kind="stable")


def marked(table: Table, columns: IntArray) -> BoolArray:
    """Whether each column of the problem is among some, bool of shape (columns,)."""
    mask = np.zeros(table.cost.shape[1], dtype=bool)
    mask[columns] = True
    return mask


def cheapest_free(
    table: Table, columns: IntArray, rows: IntArray, barred: IntArray
) -> tuple[IntArray, FloatArray]:
    """Every row's cheapest free column that is not barred, int64, and its cost in nats.

    Args:
        table: the problem, with columns left empty.
        columns: columns that clients have, int64.
        rows: clients, int64 of shape (rows,).
        barred: columns not to be taken, int64.
    """
    excluded = marked(table, columns)
    excluded[barred] = True
    cheapest = table.cheapest[rows, : len(columns) + len(barred) + 1]
    place = excluded[cheapest].argmin(axis=1)
    free = cheapest[np.arange(len(rows)), place]
    return free, np.where(excluded[free], np.inf, table.cost[rows, free])


def dual_prices(table: Table) -> tuple[FloatArray, IntArray]:
    """Prices that prove the best association optimal, and the order in which clients are split on.

    The prices come from Bellman and Ford's recursion. The client whose other columns are dearest
    is split on first, so that most associations of little excess fall into small parts.

    Args:
        table: the problem.

    Returns:
        Prices in nats of the clients' columns, in the order of splitting, and of all free ones,
        float64 of shape (clients + 1,), and that order, int64 of shape (clients,).
    """
    rows = np.arange(len(table.best))
    matched = table.cost[rows, table.best]
    extra = np.full((len(rows) + 1, len(rows) + 1), np.inf)
    extra[:-1, :-1] = table.cost[:, table.best] - matched[:, None]
    if table.idle:
        extra[:-1, -1] = cheapest_free(table, table.best, rows, rows[:0])[1] - matched
        extra[-1, :-1] = np.where(table.required[table.best], np.inf, 0.0)
    prices = np.zeros(len(extra))
    for _ in range(len(extra)):
        lower = np.minimum(prices, (prices[:, None] + extra).min(axis=0))
        if np.array_equal(lower, prices):
            break
        prices = lower
    reduced = np.maximum((extra + prices[:, None]) - prices, 0.0)
    np.fill_diagonal(reduced, np.inf)
    bounds = (reduced.min(axis=1) + reduced.min(axis=0))[:-1]
    order = np.argsort(-bounds, kind="stable")
    return np.append(prices[:-1][order], prices[-1]), order
