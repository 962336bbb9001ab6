"""What one would write with scipy alone: the baselines that the package is timed against."""

from heapq import heappop, heappush

import numpy as np
from scipy.optimize import linear_sum_assignment


def dense_table_heap(cost, m):
    """M best associations with free sizes: every row sorted, every association written out."""
    order = np.argsort(cost, axis=1)
    gaps = np.take_along_axis(cost, order, axis=1)
    gaps -= gaps[:, :1]
    rows = np.argsort(gaps[:, 1])
    first = gaps[rows, 1]
    table, excesses = np.tile(order[:, 0], (m, 1)), np.zeros(m)
    heap = [(first[0], 0, 1, ())]
    for found in range(1, m):
        excess, position, level, before = heappop(heap)
        row = rows[position]
        deviations = (*before, (row, order[row, level]))
        excesses[found] = excess
        for client, cluster in deviations:
            table[found, client] = cluster
        base = excess - gaps[row, level]
        if level + 1 < cost.shape[1]:
            heappush(heap, (base + gaps[row, level + 1], position, level + 1, before))
        if position + 1 < len(rows):
            heappush(heap, (excess + first[position + 1], position + 1, 1, deviations))
            if level == 1:
                heappush(heap, (base + first[position + 1], position + 1, 1, before))
    return excesses


def murty_with_scipy_children(cost, m, capacity):
    """Murty's partition on labels; every child is one scipy problem on replicated columns."""
    clients, clusters = cost.shape
    cluster_of = np.repeat(np.arange(clusters), capacity)

    def solve(problem, labels, first):
        """Best labels with the clients before `first` in place."""
        left = np.bincount(labels[:first], minlength=clusters)
        columns = np.concatenate(
            [np.flatnonzero(cluster_of == k)[used:] for k, used in enumerate(left)]
        )
        try:
            rows, chosen = linear_sum_assignment(problem[first:, cluster_of[columns]])
        except ValueError:
            return None
        solution = labels.copy()
        solution[first + rows] = cluster_of[columns[chosen]]
        return problem[np.arange(clients), solution].sum(), solution

    total, labels = solve(cost, np.zeros(clients, dtype=np.int64), 0)
    heap, serial, totals = [(total, 0, labels, cost, 0)], 0, []
    while heap and len(totals) < m:
        total, _, labels, problem, first = heappop(heap)
        totals.append(total)
        for client in range(first, clients):
            child = problem.copy()
            child[client, labels[client]] = np.inf
            solved = solve(child, labels, client)
            if solved is not None:
                serial += 1
                heappush(heap, (solved[0], serial, solved[1], child, client))
    return np.array(totals)


def murty_on_rectangles(cost, m):
    """Textbook Murty for one-to-one problems; every child is one rectangular scipy problem."""
    clients = np.arange(len(cost))
    best = linear_sum_assignment(cost)[1]
    heap, serial, totals = [(cost[clients, best].sum(), 0, best, cost, 0)], 0, []
    while heap and len(totals) < m:
        total, _, columns, problem, first = heappop(heap)
        totals.append(total)
        for client in range(first, len(cost)):
            child = problem.copy()
            child[client, columns[client]] = np.inf
            child[client:, columns[:client]] = np.inf
            try:
                chosen = linear_sum_assignment(child[client:])[1]
            except ValueError:
                continue
            solution = np.concatenate([columns[:client], chosen])
            serial += 1
            heappush(heap, (cost[clients, solution].sum(), serial, solution, child, client))
    return np.array(totals)


def replicated_columns(cost, capacity):
    """Cost of the best bounded association by scipy on replicated columns."""
    replicated = np.repeat(cost, capacity, axis=1)
    rows, columns = linear_sum_assignment(replicated)
    return replicated[rows, columns].sum()


def all_parents(costs, log_weights, rank, m):
    """M heaviest log-weights over all parents, every parent ranked in full by `rank`."""
    every = [weight + rank(cost, m) for cost, weight in zip(costs, log_weights, strict=True)]
    return np.sort(np.concatenate(every))[::-1][:m]
