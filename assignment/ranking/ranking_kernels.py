"""The one-to-one ranking in loops that numba compiles, see `assignment.ranking.cycle_kernels`."""

from typing import Any

import numpy as np

from assignment.arrays import BoolArray, FloatArray, IntArray
from assignment.ranking.cycle_kernels import (
    bounds,
    dual_prices,
    jit,
    mark_barred,
    replace,
    shortest_cycle,
)
from assignment.ranking.one_to_one_table import ROUNDING


def _excess(cost: FloatArray, best: IntArray, held: IntArray, places: IntArray) -> float:
    """Cost above the best association, summed over the clients in their own order."""
    total, begun = 0.0, False
    for row in range(len(best)):
        column = held[places[row]]
        if column != best[row]:
            extra = cost[row, column] - cost[row, best[row]]
            total = total + extra if begun else extra
            begun = True
    return total


def _rise(heap: IntArray, size: int, keys: FloatArray, entry: int) -> None:
    """Add an entry to a heap of some size; of entries that tie, the earlier comes first."""
    at = size
    while at > 0:
        above = (at - 1) // 2
        other = heap[above]
        if keys[other] < keys[entry] or (keys[other] == keys[entry] and other < entry):
            break
        heap[at] = other
        at = above
    heap[at] = entry


def _sink(heap: IntArray, size: int, keys: FloatArray, entry: int) -> None:
    """Put an entry in place of the least of a heap."""
    at = 0
    while 2 * at + 1 < size:
        below = 2 * at + 1
        if below + 1 < size:
            left, right = heap[below], heap[below + 1]
            if keys[right] < keys[left] or (keys[right] == keys[left] and right < left):
                below += 1
        other = heap[below]
        if keys[entry] < keys[other] or (keys[entry] == keys[other] and entry < other):
            break
        heap[at] = other
        at = below
    heap[at] = entry


def _keep(largest: FloatArray, value: float) -> None:
    """Put a value in place of the largest, the first of a heap, unless it is larger."""
    at, size = 0, len(largest)
    if value >= largest[0]:
        return
    while 2 * at + 1 < size:
        below = 2 * at + 1
        if below + 1 < size and largest[below + 1] > largest[below]:
            below += 1
        if largest[below] <= value:
            break
        largest[at] = largest[below]
        at = below
    largest[at] = value


def _longer(array: Any) -> Any:  # noqa: ANN401 - an array of any type
    """A copy with twice the room."""
    longer = np.empty((2 * len(array), *array.shape[1:]), dtype=array.dtype)
    longer[: len(array)] = array
    return longer


def _push_subproblems(
    problem: Any,  # noqa: ANN401 - arrays, see `_rank`
    parts: Any,  # noqa: ANN401 - arrays, see `_rank`
    part: int,
    queue: Any,  # noqa: ANN401 - arrays, see `_rank`
    scratch: Any,  # noqa: ANN401 - arrays, see `_rank`
    limits: tuple[float, float],
) -> Any:  # noqa: ANN401 - the queue
    """Put the subproblems of a part on the queue, with bounds on their excess; the queue, grown."""
    keys, heap, origins, sizes = queue
    (marks, vectors, _), (slack, largest) = scratch, limits
    bounds(problem, parts, part, marks, vectors)
    excess = parts[2][part]
    for place in range(parts[3][part], len(problem[3])):
        length = vectors[0][place]
        if length == np.inf:
            continue
        bound = max(excess, excess + (length - (ROUNDING * length + slack)))
        if bound > largest:
            continue
        new = sizes[1]
        if new == len(keys):
            keys, heap, origins = longer(keys), longer(heap), longer(origins)
        keys[new], origins[new, 0], origins[new, 1], origins[new, 2] = bound, part, place, -1
        rise(heap, sizes[0], keys, new)
        sizes += 1
    return keys, heap, origins, sizes


def _solve_subproblem(
    problem: Any,  # noqa: ANN401 - arrays, see `_rank`
    parts: Any,  # noqa: ANN401 - arrays, see `_rank`
    new: int,
    scratch: Any,  # noqa: ANN401 - arrays, see `_rank`
    limit: float,
    wanted: tuple[IntArray, IntArray],
) -> float:
    """Find the best association of a subproblem; its excess, infinite if beyond a limit."""
    columns, prices, excess, first, parents = parts
    marks, _, found = scratch
    (taken, barred), above, (best, places) = marks, parents[new], wanted
    columns[new], prices[new] = columns[above], prices[above]
    for place in range(len(places)):
        taken[columns[above, place]] = True
    mark_barred(parts, new, barred, True)
    cycle = shortest_cycle(problem, columns[above], prices[above], first[new], limit, marks, found)
    for place in range(len(places)):
        taken[columns[above, place]] = False
    if cycle[0] == np.inf:
        return np.inf
    replace(problem, parts, new, cycle, found)
    excess[new] = max(excess[above], excess_of(problem[0], best, columns[new], places))
    return float(excess[new])


def _rank(
    cost: FloatArray,
    required: BoolArray,
    best: IntArray,
    cheapest: IntArray,
    labels: IntArray,
    excess: FloatArray,
) -> int:
    """Rank the one-to-one associations of one problem.

    Args:
        cost: see `Table`.
        required: see `Table`.
        best: see `Table`.
        cheapest: see `Table`.
        labels: where the columns of every client go, int64 of shape (count, clients).
        excess: where the excess goes, in scaled nats, float64 of shape (count,).

    Returns:
        How many there are, at most `count`.
    """
    (clients, clusters), wanted = cost.shape, len(labels)
    marks = np.zeros(clusters, dtype=np.bool_), np.zeros(clusters, dtype=np.bool_)
    root, order = dual_prices(cost, required, cheapest, best, marks[0])
    marks[0][:] = False
    places = np.empty(clients, dtype=np.int64)
    places[order] = np.arange(clients)
    slack = ROUNDING * np.abs(root).max()
    room, entries = wanted + 1, 4 * wanted
    # columns and prices of each part, its excess, its first client, and what it was split from
    columns, prices = np.empty((room, clients), dtype=np.int64), np.empty((room, clients + 1))
    total, first, parents = np.empty(room), np.zeros(room, np.int64), np.zeros(room, np.int64)
    columns[0], prices[0], total[0], parents[0] = best[order], root, 0.0, -1
    # of each subproblem: bound or excess; the heap; part, client and, once solved, its own part;
    # sizes
    queue = (
        np.empty(entries),
        np.empty(entries, dtype=np.int64),
        np.empty((entries, 3), dtype=np.int64),
        np.zeros(2, dtype=np.int64),
    )
    size = clients + 1
    vectors = (
        np.empty(size),
        np.empty(size),
        np.empty(size),
        np.empty(size),
        np.empty(size),
        np.empty(size),
    )
    found = (
        np.empty(size),
        np.empty(size),
        np.empty(size, dtype=np.int64),
        np.empty(size, dtype=np.int64),
    )
    turned = np.ascontiguousarray(cost.T)
    problem, scratch = (cost, required, cheapest, order, turned), (marks, vectors, found)
    least = np.full(wanted, np.inf)  # the least excesses found so far
    keep(least, 0.0)
    made, number, part, last = 1, 0, 0, 0.0
    while True:
        parts = columns, prices, total, first, parents
        if part >= 0:
            last = max(last, total[part])
            excess[number], labels[number] = last, columns[part][places]
            number += 1
            if number < wanted:
                queue = push_subproblems(problem, parts, part, queue, scratch, (slack, least[0]))
        keys, heap, origins, sizes = queue
        if number == wanted or sizes[0] == 0:
            return number
        entry = heap[0]
        above, first[made], part = origins[entry]
        if part < 0 and keys[entry] <= least[0]:
            parents[made] = above
            limit = (least[0] - total[above]) * (1.0 + ROUNDING) + slack
            keys[entry] = solve_subproblem(problem, parts, made, scratch, limit, (best, places))
            if keys[entry] <= least[0] and keys[entry] < np.inf:
                keep(least, total[made])
                origins[entry, 2] = made
                sink(heap, sizes[0], keys, entry)
                made += 1
                if made == len(total):
                    columns, prices, total = longer(columns), longer(prices), longer(total)
                    first, parents = longer(first), longer(parents)
                continue
        sizes[0] -= 1
        sink(heap, sizes[0], keys, heap[sizes[0]])


def _rank_all(
    costs: FloatArray,
    required: BoolArray,
    best: IntArray,
    cheapest: IntArray,
    labels: IntArray,
    excess: FloatArray,
) -> IntArray:
    """As `_rank` for several problems, which the first axis of every array tells apart."""
    counts = np.empty(len(costs), dtype=np.int64)
    for one in range(len(costs)):
        counts[one] = rank(
            costs[one], required[one], best[one], cheapest[one], labels[one], excess[one]
        )
    return counts


excess_of: Any = jit(_excess)
rise: Any = jit(_rise)
sink: Any = jit(_sink)
keep: Any = jit(_keep)
longer: Any = jit(_longer)
push_subproblems: Any = jit(_push_subproblems)
solve_subproblem: Any = jit(_solve_subproblem)
rank: Any = jit(_rank)
rank_all: Any = jit(_rank_all)
