"""One-to-one associations, ranked by splitting with inherited dual prices.

A part of the solution space, once its best association is returned, is split by client into
subproblems: the n-th keeps all clients before the n-th in place and bars the n-th from its column
(Murty, 1968; Lawler, 1972). As in Miller, Stone and Cox (1997) each subproblem takes over the dual
prices of the part, so that reduced costs stay non-negative and its best association is a single
least cycle of exchanges through one client. The least reduced costs of leaving and of entering a
column bound its length, and a subproblem is solved only when no other bound is lower. Free columns
are one node together, so that the work doesn't grow with their number. Where they abound and
conflicts are rare, ranking with free sizes is faster still (`assignment.ranking.wide`).

Of associations of equal excess, the one whose subproblem was split off first comes first; of
subproblems split off together, that of the earlier client in the order of `dual_prices`.
"""

from collections.abc import Iterator
from functools import cache
from heapq import heappop, heappush, heapreplace
from importlib.util import find_spec
from itertools import count, islice

import numpy as np

from assignment.costs import cost_of
from assignment.problem import Problem
from assignment.ranked import Deviations, Search
from assignment.ranking.compiled import compiled_steps
from assignment.ranking.cycles import Part
from assignment.ranking.one_to_one_parts import Split
from assignment.ranking.one_to_one_table import ROUNDING, Table, dual_prices, make_table
from assignment.ranking.wide import distinct_steps


def hungarian_search(problem: Problem, wanted: int | None = None) -> Search:
    """All one-to-one associations in ascending order.

    Raises:
        ValueError: some cluster may take more than one client.
        InfeasibleError: no one-to-one association is permitted.
    """
    table = make_table(problem, wanted)
    return Search(table.best, cost_of(problem.cost, table.best), ascending(table, wanted))


def compiled_search(problem: Problem, wanted: int | None = None) -> Search:
    """As `hungarian_search`, to the bit, by code that numba compiles.

    Raises:
        ValueError: some cluster may take more than one client, or numba is not installed.
        InfeasibleError: no one-to-one association is permitted.
    """
    if not numba_is_installed():
        raise ValueError("solver numba needs the package numba: pip install 'bcfl[compiled]'")
    table = make_table(problem, wanted)
    return Search(table.best, cost_of(problem.cost, table.best), compiled_steps(table, wanted))


@cache
def numba_is_installed() -> bool:
    """Whether the package that compiles is there; it is imported with the first ranking."""
    return find_spec("numba") is not None


def ascending(table: Table, wanted: int | None = None) -> Iterator[tuple[float, Deviations]]:
    """All one-to-one associations in ascending order, lazily, from (0.0, ()) on.

    Args:
        table: the problem.
        wanted: how many will be asked for, if known; those beyond may be left out.

    Yields:
        Excess over the best in nats, and the (client, cluster) pairs that differ from it.
    """
    yield 0.0, ()
    prices, order = dual_prices(table)
    split = Split(table, order, np.argsort(order), float(ROUNDING * np.abs(prices).max()))
    whole = Part(columns=table.best[order], prices=prices, excess=0.0, first=0, barred=())
    ranked = yield from distinct_steps(table, np.append(prices[:-1][split.places], prices[-1]))
    if ranked is not None:
        yield from islice(_by_splitting(split, whole, wanted), ranked - 1, None)


def _by_splitting(
    split: Split, whole: Part, wanted: int | None
) -> Iterator[tuple[float, Deviations]]:
    """All one-to-one associations but the best, see `ascending`."""
    # a bound on the excess or, where `found` is solved, the excess; a serial number; part; client
    heap: list[tuple[float, int, Part, int, Part | None]] = []
    serial = count()
    found: Part | None = whole
    last = 0.0
    limit, least = split.exchange_limit(whole, wanted), [0.0]  # the least excesses, negated
    while True:
        if found is not None:
            for place, bound in split.bounds(found):
                heappush(heap, (bound, next(serial), found, place, None))
        if not heap:
            return
        _, number, part, place, found = heap[0]
        if found is not None:
            heappop(heap)
            columns = found.columns[split.places]
            moved = np.flatnonzero(columns != split.table.best)
            last = max(last, found.excess)  # ties may differ by their rounding
            excess = float(np.ldexp(last, -split.table.exponent))
            yield excess, tuple(zip(moved.tolist(), columns[moved].tolist(), strict=True))
        elif (solved := split.best(part, place, limit)) is None:
            heappop(heap)
        else:
            heappush(least, -solved.excess)
            if wanted is not None and len(least) > wanted:
                heappop(least)
                limit = min(limit, -least[0])
            heapreplace(heap, (solved.excess, number, part, place, solved))
