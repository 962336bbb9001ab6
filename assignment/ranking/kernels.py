"""Loops of the one-to-one ranking that numba compiles; without it they run as they are, slowly.

They do the same additions in the same order as `assignment.ranking.one_to_one`, and resolve ties by
the same rules, so that both give the same associations in the same order. Clients go by their
place in the order of splitting; node `clients` stands for all free columns together.
"""

from importlib.util import find_spec
from typing import Any

import numpy as np

from assignment.arrays import BoolArray, FloatArray, IntArray
from assignment.ranking.one_to_one_table import ROUNDING


def _jit(function: Any) -> Any:  # noqa: ANN401 - functions and what numba makes of them
    if find_spec("numba") is None:
        return function
    import numba

    return numba.njit(cache=True, nogil=True)(function)


def _cheapest_free(
    cost: FloatArray, cheapest: IntArray, taken: BoolArray, barred: BoolArray, row: int
) -> int:
    """A row's cheapest free column that is not barred, or -1."""
    for place in range(cheapest.shape[1]):
        column = cheapest[row, place]
        if not taken[column] and not barred[column]:
            return int(column) if cost[row, column] < np.inf else -1
    return -1


def _dual_prices(
    cost: FloatArray, required: BoolArray, cheapest: IntArray, best: IntArray, taken: BoolArray
) -> tuple[FloatArray, IntArray]:
    """Prices of the clients' columns and of free ones, and the clients in the order of splitting.

    `taken` becomes the columns of the best association.
    """
    clients = len(best)
    none = np.zeros(len(taken), dtype=np.bool_)
    extra = np.full((clients + 1, clients + 1), np.inf)
    for row in range(clients):
        taken[best[row]] = True
    for row in range(clients):
        matched = cost[row, best[row]]
        for other in range(clients):
            extra[row, other] = cost[row, best[other]] - matched
        free = cheapest_free(cost, cheapest, taken, none, row)
        if free >= 0:
            extra[row, clients] = cost[row, free] - matched
        if cheapest.shape[1] and not required[best[row]]:
            extra[clients, row] = 0.0
    prices, changed = np.zeros(clients + 1), np.ones(clients + 1, dtype=np.bool_)
    for _ in range(clients + 1):
        lower = prices.copy()
        for row in range(clients + 1):
            if changed[row]:
                for other in range(clients + 1):
                    lower[other] = min(lower[other], prices[row] + extra[row, other])
        any_changed = False
        for row in range(clients + 1):
            changed[row] = lower[row] < prices[row]
            any_changed = any_changed or changed[row]
        if not any_changed:
            break
        prices = lower
    leave, enter = np.full(clients + 1, np.inf), np.full(clients + 1, np.inf)
    for row in range(clients + 1):
        for other in range(clients + 1):
            if row != other:
                reduced = max((extra[row, other] + prices[row]) - prices[other], 0.0)
                leave[row] = min(leave[row], reduced)
                enter[other] = min(enter[other], reduced)
    order = np.argsort(-(leave[:clients] + enter[:clients]), kind="mergesort")
    prices[:clients] = prices[order]
    return prices, order


def _mark_barred(parts: Any, part: int, barred: BoolArray, mark: bool) -> None:  # noqa: ANN401
    """Mark or unmark the columns that a part's first client may not have."""
    columns, _, _, first, parents = parts
    while parents[part] >= 0:
        above = parents[part]
        barred[columns[above, first[part]]] = mark
        if first[above] != first[part]:
            return
        part = above


def _bounds(
    problem: Any,  # noqa: ANN401 - arrays, see `_rank`
    parts: Any,  # noqa: ANN401 - arrays, see `_rank`
    part: int,
    marks: tuple[BoolArray, BoolArray],
    vectors: Any,  # noqa: ANN401 - arrays of length clients + 1, one of them for the result
) -> None:
    """Lower bounds on the length of the least cycle through each client of a part.

    The last client comes first, so that the least edges between the clients after a client, which
    its cycle may use, are at hand.
    """
    cost, required, cheapest, order, turned = problem
    columns, prices, _, first, _ = parts
    (taken, barred), (lengths, potentials, onward, inward, out, back) = marks, vectors
    clients, start = len(order), first[part]
    held, price = columns[part], prices[part]
    lengths[:], onward[:], inward[:] = np.inf, np.inf, np.inf
    for place in range(clients):
        taken[held[place]] = True
        potentials[place] = cost[order[place], held[place]] - price[place]
    for place in range(clients - 1, start - 1, -1):
        row, column, leave, enter = order[place], held[place], np.inf, np.inf
        out[clients], back[clients] = np.inf, np.inf
        for other in range(place + 1, clients):
            reduced = (cost[row, held[other]] - potentials[place]) - price[other]
            out[other] = max(reduced, 0.0)
            reduced = (turned[column, order[other]] - potentials[other]) - price[place]
            back[other] = max(reduced, 0.0)
        if place == start:
            mark_barred(parts, part, barred, True)
            for other in range(place + 1, clients):
                if barred[held[other]]:
                    out[other] = np.inf
        if cheapest.shape[1]:
            free = cheapest_free(cost, cheapest, taken, barred, row)
            if free >= 0:
                reduced = (cost[row, free] - potentials[place]) - price[clients]
                out[clients] = max(reduced, 0.0)
            if not required[column]:
                back[clients] = max(price[clients] - price[place], 0.0)
        if place == start:
            mark_barred(parts, part, barred, False)
        for other in range(place + 1, clients + 1):
            leave, enter = min(leave, out[other]), min(enter, back[other])
        leaving, entering = np.inf, np.inf
        for other in range(place + 1, clients + 1):
            leaving = min(leaving, out[other] + min(back[other], onward[other] + enter))
            entering = min(entering, back[other] + min(out[other], leave + inward[other]))
            onward[other] = min(onward[other], back[other])
            inward[other] = min(inward[other], out[other])
        onward[place], inward[place] = leave, enter
        lengths[place] = max(leaving, entering)
    for place in range(clients):
        taken[held[place]] = False


def _shortest_cycle(
    problem: Any,  # noqa: ANN401 - arrays, see `_rank`
    held: IntArray,
    price: FloatArray,
    start: int,
    limit: float,
    marks: tuple[BoolArray, BoolArray],
    found: tuple[FloatArray, FloatArray, IntArray, IntArray],
) -> tuple[float, float, int, int]:
    """The least cycle through a client and those after it, by Dijkstra's algorithm.

    It ends when what is nearest cannot enter the client's column at less than is known. Distances
    and the places before go to `found`. Length, infinite if beyond `limit`, radius up to which
    distances are final, last place and free column are returned.
    """
    cost, required, cheapest, order, turned = problem
    (taken, barred), (distances, back, before, unsettled) = marks, found
    clients, number, own = len(order), 0, held[start]
    idle, free, last, length, enter = cheapest.shape[1] > 0, -1, -1, np.inf, np.inf
    distances[clients], back[clients] = np.inf, np.inf
    if idle and not required[own]:
        back[clients] = enter = max(price[clients] - price[start], 0.0)
    for place in range(start + 1, clients):
        row = order[place]
        potential = cost[row, held[place]] - price[place]
        back[place] = max((turned[own, row] - potential) - price[start], 0.0)
        enter = min(enter, back[place])
        distances[place], unsettled[number] = np.inf, place
        number += 1
    place, distance = start, 0.0
    while True:
        nearest, at, least = clients, -1, np.inf
        potential, row = 0.0, 0
        if place < clients:
            row = order[place]
            potential = cost[row, held[place]] - price[place]
            if idle:
                column = cheapest_free(cost, cheapest, taken, barred, row)
                if column >= 0:
                    reduced = max((cost[row, column] - potential) - price[clients], 0.0)
                    if distance + reduced < distances[clients]:
                        distances[clients], before[clients] = distance + reduced, place
                        free = column
        for index in range(number):
            other = unsettled[index]
            column = held[other]
            if place == clients:
                reduced = np.inf if required[column] else max(price[clients] - price[other], 0.0)
            else:
                reduced = max((cost[row, column] - potential) - price[other], 0.0)
                if place == start and barred[column]:
                    reduced = np.inf
            if distance + reduced < distances[other]:
                distances[other], before[other] = distance + reduced, place
            if distances[other] < least or (distances[other] == least and other < nearest):
                nearest, at, least = other, index, distances[other]
        if place == start:
            barred[:] = False
            barred[own] = True
        if idle and distances[clients] < least:
            nearest, at, least = clients, -1, distances[clients]
        if least + enter >= length or least == np.inf or least + enter > limit:
            barred[own] = False
            return (length if length <= limit else np.inf), min(least, length), last, free
        place, distance = nearest, least
        if nearest == clients:
            idle = False
        else:
            number -= 1
            unsettled[at] = unsettled[number]
        if distance + back[place] < length:
            length, last = distance + back[place], place


def _replace(
    problem: Any,  # noqa: ANN401 - arrays, see `_rank`
    parts: Any,  # noqa: ANN401 - arrays, see `_rank`
    new: int,
    cycle: tuple[float, float, int, int],
    found: tuple[FloatArray, FloatArray, IntArray, IntArray],
) -> None:
    """Exchange the columns of a part along a cycle, with prices that prove the new ones optimal."""
    columns, prices, _, first, _ = parts
    length, radius, previous, free = cycle
    distances, before, clients, start = found[0], found[2], len(problem[3]), first[new]
    held, price = columns[new].copy(), prices[new]
    for place in range(start + 1, clients + 1):
        price[place] -= max(radius - distances[place], 0.0)
    price[start] += length - radius
    updated, at = price.copy(), start
    while True:
        if previous < clients:
            columns[new, previous] = free if at == clients else held[at]
            price[previous] = updated[at]
        if previous == start:
            return
        at = previous
        previous = before[at]


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


def _push_halves(
    problem: Any,  # noqa: ANN401 - arrays, see `_rank`
    parts: Any,  # noqa: ANN401 - arrays, see `_rank`
    part: int,
    queue: Any,  # noqa: ANN401 - arrays, see `_rank`
    scratch: Any,  # noqa: ANN401 - arrays, see `_rank`
    limits: tuple[float, float],
) -> Any:  # noqa: ANN401 - the queue
    """Put the halves of a part on the queue, with bounds on their excess; the queue, grown."""
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


def _solve_half(
    problem: Any,  # noqa: ANN401 - arrays, see `_rank`
    parts: Any,  # noqa: ANN401 - arrays, see `_rank`
    new: int,
    scratch: Any,  # noqa: ANN401 - arrays, see `_rank`
    limit: float,
    wanted: tuple[IntArray, IntArray],
) -> float:
    """Find the best association of a half of a part; its excess, infinite if beyond a limit."""
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
    # of each half: bound or excess; the heap; part, client and, once solved, part of its own; sizes
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
    made, number, part = 1, 0, 0
    while True:
        parts = columns, prices, total, first, parents
        if part >= 0:
            excess[number], labels[number] = total[part], columns[part][places]
            number += 1
            if number < wanted:
                queue = push_halves(problem, parts, part, queue, scratch, (slack, least[0]))
        keys, heap, origins, sizes = queue
        if number == wanted or sizes[0] == 0:
            return number
        entry = heap[0]
        above, first[made], part = origins[entry]
        if part < 0 and keys[entry] <= least[0]:
            parents[made] = above
            limit = (least[0] - total[above]) * (1.0 + ROUNDING) + slack
            keys[entry] = solve_half(problem, parts, made, scratch, limit, (best, places))
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


cheapest_free: Any = _jit(_cheapest_free)
dual_prices: Any = _jit(_dual_prices)
mark_barred: Any = _jit(_mark_barred)
bounds: Any = _jit(_bounds)
shortest_cycle: Any = _jit(_shortest_cycle)
replace: Any = _jit(_replace)
excess_of: Any = _jit(_excess)
rise: Any = _jit(_rise)
sink: Any = _jit(_sink)
keep: Any = _jit(_keep)
longer: Any = _jit(_longer)
push_halves: Any = _jit(_push_halves)
solve_half: Any = _jit(_solve_half)
rank: Any = _jit(_rank)
rank_all: Any = _jit(_rank_all)
