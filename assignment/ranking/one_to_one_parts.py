"""Parts of the one-to-one associations: bounds on their subproblems, and the best of each."""

from dataclasses import dataclass
from functools import cached_property

import numpy as np

from assignment.arrays import BoolArray, FloatArray, IntArray
from assignment.ranking.cycles import Part, shortest_cycle
from assignment.ranking.one_to_one_table import ROUNDING, Table, cheapest_free, marked


@dataclass(frozen=True, eq=False)
class Split:
    """How parts of one problem are split and solved.

    Attributes:
        table: the problem.
        order: clients in the order of splitting, int64 of shape (clients,).
        places: place of every client in that order, int64 of shape (clients,).
        slack: by how much bounds are lowered, since prices are rounded, in scaled nats.
    """

    table: Table
    order: IntArray
    places: IntArray
    slack: float

    @cached_property
    def _until(self) -> BoolArray:
        """Whether a place is no later than the row's, bool of shape (clients + 1, clients + 1)."""
        return np.tri(len(self.order) + 1, dtype=bool)

    def bounds(self, part: Part) -> list[tuple[int, float]]:
        """Clients whose subproblems may hold associations, and bounds on the excess of these."""
        reduced = self._reduced(part)
        onward = _later_minima(reduced)  # at [l, p]: from l to any place after p
        inward = _later_minima(reduced.T)  # at [l, p]: to l from any place after p
        leave, enter = onward.diagonal()[:, None], inward.diagonal()[:, None]
        leaving = reduced + np.minimum(reduced.T, onward.T + enter)
        entering = reduced.T + np.minimum(reduced, leave + inward.T)
        until = self._until[: len(reduced), : len(reduced)]
        leaving[until], entering[until] = np.inf, np.inf
        lengths = np.maximum(leaving.min(axis=1), entering.min(axis=1))[:-1]
        possible = np.flatnonzero(lengths < np.inf)
        length = lengths[possible]
        bounds = part.excess + (length - (ROUNDING * length + self.slack))
        places = (part.first + possible).tolist()
        return list(zip(places, np.maximum(part.excess, bounds).tolist(), strict=True))

    def _reduced(self, part: Part) -> FloatArray:
        """Reduced cost of client l taking client k's column, at [l, k]; free columns are last."""
        table, rows = self.table, self.order[part.first :]
        columns, prices = part.columns[part.first :], part.prices[part.first :]
        potentials = table.cost[rows, columns] - prices[:-1]
        reduced = np.full((len(prices), len(prices)), np.inf)
        taken = table.cost[rows[:, None], columns]
        reduced[:-1, :-1] = (taken - potentials[:, None]) - prices[:-1]
        if part.barred:
            reduced[0, :-1][marked(table, np.array(part.barred))[columns]] = np.inf
        if table.idle:
            dear = cheapest_free(table, part.columns, rows, rows[:0])[1]
            if part.barred:
                barred = np.array(part.barred)
                dear[:1] = cheapest_free(table, part.columns, rows[:1], barred)[1]
            reduced[:-1, -1] = (dear - potentials) - prices[-1]
            reduced[-1, :-1] = np.where(table.required[columns], np.inf, prices[-1] - prices[:-1])
        np.fill_diagonal(reduced, np.inf)
        np.maximum(reduced, 0.0, out=reduced)
        return reduced

    def exchange_limit(self, whole: Part, wanted: int | None) -> float:
        """An excess within which there are as many associations as wanted: exchanges of columns."""
        if wanted is None or wanted < 2:
            return np.inf
        reduced = self._reduced(whole)
        lengths = (reduced + reduced.T)[~self._until]
        if len(lengths) < wanted - 1:
            return np.inf
        return float(np.partition(lengths, wanted - 2)[wanted - 2]) * (1.0 + ROUNDING) + self.slack

    def best(self, part: Part, place: int, limit: float) -> Part | None:
        """The subproblem of a part in which a client leaves its column, with its best association.

        None if it holds no association, or none of excess up to the limit.
        """
        own = int(part.columns[place])
        barred = (own, *part.barred) if part.first == place else (own,)
        longest = (limit - part.excess) * (1.0 + ROUNDING) + self.slack
        cycle = shortest_cycle(self.table, self.order, part, place, np.array(barred), longest)
        if cycle is None:
            return None
        columns, prices, clients = part.columns.copy(), part.prices.copy(), len(part.columns)
        prices[place + 1 :] -= np.maximum(cycle.radius - cycle.distances, 0.0)
        prices[place] += cycle.length - cycle.radius
        updated, at, previous = prices.copy(), place, cycle.last
        while True:
            if previous < clients:
                columns[previous] = cycle.free if at == clients else part.columns[at]
                prices[previous] = updated[at]
            if previous == place:
                break
            at, previous = previous, int(cycle.before[previous - place - 1])
        excess = max(part.excess, self._excess(columns[self.places]))
        return Part(columns=columns, prices=prices, excess=excess, first=place, barred=barred)

    def _excess(self, columns: IntArray) -> float:
        table = self.table
        rows = np.flatnonzero(columns != table.best)
        extra = table.cost[rows, columns[rows]] - table.cost[rows, table.best[rows]]
        return float(np.add.accumulate(extra)[-1])


def _later_minima(values: FloatArray) -> FloatArray:
    """At [l, p], the least of row l's values after place p, float64 of the shape of `values`."""
    minima = np.full_like(values, np.inf)
    minima[:, :-1] = np.minimum.accumulate(values[:, :0:-1], axis=1)[:, ::-1]
    return minima
