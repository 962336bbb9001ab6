"""Loops of the one-to-one ranking that numba compiles; without it they run as they are, slowly.

They do the same additions in the same order as `assignment.ranking.one_to_one`, and resolve ties by
the same rules, so that both give the same associations in the same order.
"""

from importlib.util import find_spec
from typing import Any

import numpy as np

from assignment.arrays import BoolArray, FloatArray, IntArray
from assignment.ranking.one_to_one_table import SMALLEST_EDGE


def _jit(function: Any) -> Any:  # noqa: ANN401 - functions and what numba makes of them
    if find_spec("numba") is None:
        return function
    import numba

    return numba.njit(cache=True)(function)


def _exchanges(
    cost: FloatArray,
    required: BoolArray,
    columns: IntArray,
    row_prices: FloatArray,
    column_prices: FloatArray,
    links: IntArray,
    link: int,
) -> tuple[FloatArray, IntArray]:
    """Reduced cost of row i taking row k's column, and each row's cheapest free column."""
    clients, clusters = cost.shape
    size = len(row_prices)
    exchange = np.full((size, size), np.inf)
    free = np.full(clients, -1)
    owner = np.full(clusters, clients)
    fixed = np.zeros(clients, dtype=np.bool_)
    barred = np.zeros((clients, clusters), dtype=np.bool_)
    owner[columns] = np.arange(clients)
    chain = link
    while chain >= 0:
        if links[chain, 2] < 0:
            fixed[links[chain, 1]] = True
        else:
            barred[links[chain, 1], links[chain, 2]] = True
        chain = links[chain, 0]
    for row in range(clients):
        if fixed[row]:
            continue
        least = np.inf
        for column in range(clusters):
            other = owner[column]
            if other == row or barred[row, column] or (other < clients and fixed[other]):
                continue
            reduced = (cost[row, column] - row_prices[row]) - column_prices[column]
            if other < clients:
                exchange[row, other] = max(reduced, SMALLEST_EDGE)
            elif reduced < least:
                least, free[row] = reduced, column
        if least < np.inf:
            exchange[row, clients] = max(least, SMALLEST_EDGE)
    if size > clients:
        for other in range(clients):
            if not fixed[other] and not required[columns[other]]:
                reduced = 0.0 - (row_prices[clients] + column_prices[columns[other]])
                exchange[clients, other] = max(reduced, SMALLEST_EDGE)
    return exchange, free


def _cycle_through(
    exchange: FloatArray, leave: FloatArray, start: int, bound: float, distances: FloatArray
) -> tuple[float, int]:
    """Length of the least cycle through a row, at most a bound, and its last row; -1 if none is.

    `distances` becomes least path costs from the row, right up to the length of the cycle.
    """
    size = len(exchange)
    settled = np.zeros(size, dtype=np.bool_)
    distances[:] = np.inf
    distances[start] = 0.0
    length, last = np.inf, -1
    while True:
        nearest, least = -1, np.inf
        for node in range(size):
            if not settled[node] and distances[node] < least:
                nearest, least = node, distances[node]
        if nearest < 0 or least > bound:
            return length, last
        settled[nearest] = True
        closed = least + exchange[nearest, start]
        if closed < length or (closed == length and closed < np.inf and nearest < last):
            length, last = closed, nearest
            bound = min(bound, closed)
        for node in range(size):
            through = least + exchange[nearest, node]
            if through < distances[node] and exchange[nearest, node] + leave[node] <= bound:
                distances[node] = through


def _least_cycle(exchange: FloatArray, clients: int) -> tuple[float, IntArray, FloatArray]:
    """Length, rows and distances of the least cycle through a client; no rows if there is none."""
    size = len(exchange)
    leave, enter, bound = np.full(size, np.inf), np.full(size, np.inf), np.inf
    for row in range(size):
        for other in range(size):
            edge = exchange[row, other]
            leave[row] = min(leave[row], edge)
            enter[other] = min(enter[other], edge)
    for row in range(clients):
        if leave[row] + enter[row] < bound:
            for other in range(row + 1, size):
                bound = min(bound, exchange[row, other] + exchange[other, row])
    length, start, last = np.inf, -1, -1
    distances, chosen = np.empty(size), np.empty(size)
    for row in np.argsort(leave[:clients] + enter[:clients]):
        least = leave[row] + enter[row]
        if not least <= min(bound, length) or least == np.inf or (least == length and row > start):
            continue
        found, end = cycle_through(exchange, leave, row, min(bound, length), distances)
        if found < length or (found == length and end >= 0 and row < start):
            length, start, last = found, row, end
            distances, chosen = chosen, distances
    if start < 0:
        return length, np.empty(0, dtype=np.int64), chosen
    path, at = np.empty(size, dtype=np.int64), size - 1
    path[at] = last
    while path[at] != start:
        node, before, least = path[at], -1, np.inf
        for other in range(size):
            through = chosen[other] + exchange[other, node]
            if through < least and exchange[other, node] + leave[node] <= length:
                before, least = other, through
        at -= 1
        path[at] = before
    reached = np.full(size, length)
    for other in range(size):
        if chosen[other] < length:
            reached[other] = min(reached[other], chosen[other])
            for node in range(size):
                reached[node] = min(reached[node], chosen[other] + exchange[other, node])
    return length, path[at:], reached


def _push(
    cost: FloatArray,
    required: BoolArray,
    best: IntArray,
    exponent: int,
    parts: Any,  # noqa: ANN401 - arrays of `advance`
    part: int,
    link: int,
    least_excess: float,
) -> None:
    """Find the second best of a part and, if there is one, put it on the heap."""
    all_columns, all_rows, all_prices, excesses, origins, links, heap, counts = parts
    columns, clients = all_columns[part], len(cost)
    exchange, free = exchanges(
        cost, required, columns, all_rows[part], all_prices[part], links, link
    )
    length, rows, reached = least_cycle(exchange, clients)
    if not len(rows):
        return
    new = counts[0]
    counts[0] += 1
    all_columns[new] = columns
    for place in range(len(rows)):
        row, following = rows[place], rows[(place + 1) % len(rows)]
        if following == clients:
            all_columns[new, row] = free[row]
        elif row < clients:
            all_columns[new, row] = columns[following]
    total, begun = 0.0, False
    for row in range(clients):
        if all_columns[new, row] != best[row]:
            extra = cost[row, all_columns[new, row]] - cost[row, best[row]]
            total = total + extra if begun else extra
            begun = True
    excesses[new] = max(least_excess, np.ldexp(total, -exponent))
    first = rows[0]
    all_rows[new] = all_rows[part]
    all_prices[new] = all_prices[part]
    owned = np.zeros(cost.shape[1], dtype=np.bool_)
    for row in range(clients):
        owned[columns[row]] = True
        all_prices[new, columns[row]] -= length - reached[row]
    if len(exchange) > clients:
        for column in range(cost.shape[1]):
            if not owned[column]:
                all_prices[new, column] -= length - reached[clients]
    all_prices[new, columns[first]] += length - reached[first]
    for row in range(len(exchange)):
        all_rows[new, row] += length - reached[row]
    origins[new, 0], origins[new, 1] = part, link
    origins[new, 2], origins[new, 3] = first, columns[first]
    rise(heap, counts, excesses, new)


def _rise(heap: IntArray, counts: IntArray, excesses: FloatArray, entry: int) -> None:
    """Add an entry to the heap; of entries that tie, the earlier comes first."""
    at = counts[1]
    counts[1] += 1
    while at > 0:
        above = (at - 1) // 2
        other = heap[above]
        tied = excesses[other] == excesses[entry] and other < entry
        if excesses[other] < excesses[entry] or tied:
            break
        heap[at] = other
        at = above
    heap[at] = entry


def _pop(heap: IntArray, counts: IntArray, excesses: FloatArray) -> int:
    """Take the least entry off the heap."""
    top = heap[0]
    counts[1] -= 1
    entry, size, at = heap[counts[1]], counts[1], 0
    while 2 * at + 1 < size:
        below = 2 * at + 1
        if below + 1 < size:
            left, right = heap[below], heap[below + 1]
            tied = excesses[left] == excesses[right] and right < left
            if excesses[right] < excesses[left] or tied:
                below += 1
        other = heap[below]
        tied = excesses[other] == excesses[entry] and entry < other
        if excesses[entry] < excesses[other] or tied:
            break
        heap[at] = other
        at = below
    heap[at] = entry
    return int(top)


def _advance(
    cost: FloatArray,
    required: BoolArray,
    exponent: int,
    parts: Any,  # noqa: ANN401 - arrays, see below
    count: int,
    first: bool,
) -> IntArray:
    """Rank further associations.

    Args:
        cost: see `Table`.
        required: see `Table`.
        exponent: see `Table`.
        parts: for each part its columns, row prices, column prices, excess and origin (the part it
            was split from, that one's last link, the client split on and its column), then links
            (previous link, client, column barred from or -1 if fixed), the heap of parts, and the
            numbers of parts, of heap entries and of links. Changed in place.
        count: how many associations.
        first: whether none has been ranked yet; the part 0 is then that of all associations.

    Returns:
        Indices of the parts whose best associations follow, at most `count`.
    """
    all_columns, _, _, excesses, origins, links, heap, counts = parts
    popped = np.empty(count, dtype=np.int64)
    best = all_columns[0]
    if first:
        push(cost, required, best, exponent, parts, 0, -1, 0.0)
    for number in range(count):
        if counts[1] == 0:
            return popped[:number]
        entry = pop(heap, counts, excesses)
        popped[number] = entry
        part, link, row, column = origins[entry]
        for barred_from in (-1, column):
            links[counts[2], 0], links[counts[2], 1] = link, row
            links[counts[2], 2] = barred_from
            counts[2] += 1
            base = part if barred_from < 0 else entry
            push(cost, required, best, exponent, parts, base, counts[2] - 1, excesses[entry])
    return popped


exchanges: Any = _jit(_exchanges)
cycle_through: Any = _jit(_cycle_through)
least_cycle: Any = _jit(_least_cycle)
rise: Any = _jit(_rise)
pop: Any = _jit(_pop)
push: Any = _jit(_push)
advance: Any = _jit(_advance)
