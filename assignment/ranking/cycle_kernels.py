"""Least cycles of exchanges, in loops that numba compiles; without it they run as they are, slowly.

They do the same additions in the same order as `assignment.ranking.cycles` and `one_to_one_parts`,
and resolve ties by the same rules. Clients go by their place in the order of splitting; place
`clients` stands for all free columns together.
"""

from importlib.util import find_spec
from typing import Any

import numpy as np

from assignment.arrays import BoolArray, FloatArray, IntArray


def jit(function: Any) -> Any:  # noqa: ANN401 - functions and what numba makes of them
    """The function, compiled at its first call where numba is installed."""
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
    problem: Any,  # noqa: ANN401 - arrays, see `ranking_kernels`
    parts: Any,  # noqa: ANN401 - arrays, see `ranking_kernels`
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
    problem: Any,  # noqa: ANN401 - arrays, see `ranking_kernels`
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
    problem: Any,  # noqa: ANN401 - arrays, see `ranking_kernels`
    parts: Any,  # noqa: ANN401 - arrays, see `ranking_kernels`
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


cheapest_free: Any = jit(_cheapest_free)
dual_prices: Any = jit(_dual_prices)
mark_barred: Any = jit(_mark_barred)
bounds: Any = jit(_bounds)
shortest_cycle: Any = jit(_shortest_cycle)
replace: Any = jit(_replace)
