"""Ranked and best associations against baselines on scipy: side by side in one run.

Times are the least of several turns, of CPU time, since the machine may be shared.
"""

from functools import partial
from time import process_time

import numpy as np
from scipy.optimize import linear_sum_assignment

import assignment
from assignment.ranking.one_to_one import numba_is_installed
from tests.bench.assignment import baselines
from tests.bench.row import Row


def side_by_side(name, ours, baseline, limit, repeats=(7, 3)):
    """Time two ways to the same numbers in turn; AssertionError if the numbers differ."""
    np.testing.assert_allclose(ours(), baseline(), rtol=1e-9, atol=1e-9)
    return in_turn(name, ours, baseline, limit, repeats)


def in_turn(name, ours, baseline, limit, repeats=(7, 7)):
    """Time two calls in turn."""
    times = {ours: [], baseline: []}
    for turn in range(max(repeats)):
        for call, wanted in zip((ours, baseline), repeats, strict=True):
            if turn < wanted:
                start = process_time()
                call()
                times[call].append((process_time() - start) * 1e3)
    fast, slow = min(times[ours]), min(times[baseline])
    return Row(name, fast, slow, slow / fast, limit)


def run():
    """All comparisons of the assignment package."""
    rng = np.random.default_rng(0)
    return [
        free(rng),
        free_table(rng),
        bounded(rng, 50, 5, 20, (7, 5)),
        bounded(rng, 200, 10, 100, (7, 1)),
        square(rng),
        parents(rng),
        best_bounded(rng),
        best_one_to_one(rng),
        *ties(rng),
        many_clients(rng),
        *(wide(rng, clusters, solver) for clusters in (500, 2000) for solver in one_to_one()),
        *(hundred_best(rng, size, solver) for size in (50, 100, 200) for solver in one_to_one()),
        *(batch(rng, *case) for case in ((10, 1), (10, 100), (20, 100))),
        *marginals(rng),
    ]


def free(rng):
    cost = rng.normal(size=(10_000, 20))
    return side_by_side(
        "free sizes, 10000 clients, 20 clusters, 1000 best",
        lambda: assignment.m_best_assignments(cost, 1000).excess,
        lambda: baselines.dense_table_heap(cost, 1000),
        "1000 steps of a heap in Python; the baseline sorts every row and writes a table",
        (15, 5),
    )


def free_table(rng):
    cost = rng.normal(size=(10_000, 20))
    return side_by_side(
        "the same with all labels written out",
        lambda: _excess_with_labels(cost, 1000),
        lambda: baselines.dense_table_heap(cost, 1000),
        "memory traffic: the table of labels takes 80 MB",
        (7, 5),
    )


def _excess_with_labels(cost, m):
    ranked = assignment.m_best_assignments(cost, m)
    return ranked.excess + 0.0 * ranked.labels[0, 0]


def bounded(rng, clients, clusters, m, repeats):
    cost = rng.normal(size=(clients, clusters))
    capacity = clients // clusters + 1
    return side_by_side(
        f"sizes up to {capacity}, {clients} clients, {clusters} clusters, {m} best",
        lambda: assignment.m_best_assignments(cost, m, upper=capacity).cost,
        lambda: baselines.murty_with_scipy_children(cost, m, capacity),
        f"{2 * m} least cycles on {clusters + 1} nodes, some 30 numpy calls each",
        repeats,
    )


def square(rng):
    cost = rng.uniform(size=(100, 100))
    return side_by_side(
        "one-to-one, 100 clients, 100 best",
        lambda: assignment.m_best_assignments(cost, 100, upper=1).cost,
        lambda: baselines.murty_with_scipy_children(cost, 100, 1),
        "some 700 shortest paths in numpy, or 300 compiled ones",
        (5, 1),
    )


def parents(rng):
    costs, log_weights = rng.normal(size=(100, 200, 10)), rng.normal(size=100)
    return side_by_side(
        "100 parents, 200 clients, 10 clusters, 100 best",
        lambda: assignment.m_best_over_parents(costs, log_weights, 100).log_weight,
        lambda: baselines.all_parents(
            costs,
            log_weights,
            lambda cost, m: assignment.m_best_assignments(cost, m).log_weight,
            100,
        ),
        "copying and checking 200000 costs is half of it",
        (15, 5),
    )


def best_bounded(rng):
    cost = rng.normal(size=(1000, 20)) + 0.3 * np.arange(20)
    return side_by_side(
        "best only, sizes up to 51, 1000 clients, 20 clusters, skewed",
        lambda: assignment.best_assignment(cost, upper=51).cost,
        lambda: baselines.replicated_columns(cost, 51),
        "price updates over all clients, then single shortest paths",
        (7, 5),
    )


def best_one_to_one(rng):
    cost = rng.uniform(size=(500, 500))
    return side_by_side(
        "best only, one-to-one, 500 clients",
        lambda: assignment.best_assignment(cost, upper=1).cost,
        lambda: baselines.replicated_columns(cost, 1),
        "lap's compiled Jonker-Volgenant; checking and reducing costs come on top",
        (7, 7),
    )


def ties(rng):
    """Costs that tie, beside normal ones of the same size."""
    clients, clusters, size = 10_000, 20, 500
    normal = rng.normal(size=(clients, clusters))
    kinds = {
        "equal costs": np.zeros((clients, clusters)),
        "costs 0 or 1": rng.integers(0, 2, size=(clients, clusters)).astype(float),
        "equal rows": np.tile(rng.normal(size=clusters), (clients, 1)),
    }
    return [
        in_turn(
            f"best only, {kind}, sizes of {size}, beside normal costs",
            partial(assignment.best_assignment, cost, size, size),
            partial(assignment.best_assignment, normal, size, size),
            "one path for each cluster, each a pass over all clients",
        )
        for kind, cost in kinds.items()
    ]


def many_clients(rng):
    cost = rng.normal(size=(10_000, 20))
    return in_turn(
        "sizes of 500, 10000 clients, 20 clusters, 10 best, beside the best alone",
        partial(assignment.m_best_assignments, cost, 10, 500, 500),
        partial(assignment.best_assignment, cost, 500, 500),
        "20 passes over all clients",
    )


def one_to_one():
    """Names of the solvers that can rank one-to-one associations here."""
    return ("numba", "hungarian") if numba_is_installed() else ("hungarian",)


def wide(rng, clusters, solver):
    cost = rng.normal(size=(10, clusters))
    return side_by_side(
        f"one-to-one, 10 clients, {clusters} clusters, 20 best by {solver}",
        lambda: assignment.m_best_assignments(cost, 20, upper=1, solver=solver).cost,
        lambda: baselines.murty_on_rectangles(cost, 20),
        "checking and sorting costs; in numpy, a heap in Python",
    )


def hundred_best(rng, size, solver):
    """The 100 best beside scipy's best alone, of ten problems: the ratio's inverse is a price."""
    costs = rng.uniform(size=(10, size, size))
    return in_turn(
        f"one-to-one, {size} clients, 100 best by {solver}, beside scipy's best alone, 10 of each",
        lambda: [assignment.m_best_assignments(c, 100, upper=1, solver=solver) for c in costs],
        lambda: [linear_sum_assignment(cost) for cost in costs],
        "bounds on subproblems of 100 parts, some 300 shortest paths",
        (2, 5),
    )


def batch(rng, size, m):
    """Many small problems in one call beside as many calls of scipy, which finds the best alone."""
    problems = 1000 if numba_is_installed() or m == 1 else 20
    costs = rng.uniform(size=(problems, size, size))
    return in_turn(
        f"one-to-one, {problems} problems of {size} clients, {m} best, beside scipy's best alone",
        lambda: assignment.m_best_assignments_batch(costs, m, upper=1),
        lambda: [linear_sum_assignment(cost) for cost in costs],
        "scipy's calls"
        if m == 1
        else "bounds on subproblems of 100 parts, some 300 shortest paths",
        (5, 9),
    )


def marginals(rng):
    cost = rng.normal(size=(1000, 10))
    exact = partial(assignment.association_marginals, cost)
    return [
        in_turn(
            f"{method}, 1000 clients, sizes up to 120, 10 clusters, beside free sizes",
            partial(assignment.association_marginals, cost, upper=120, method=method),
            exact,
            limit,
            (1, 3),
        )
        for method, limit in (
            ("bp", "some 20 rounds of messages, each two passes over the clients"),
            ("mcmc", "220000 draws of one client each in 16 chains, and Fourier transforms"),
        )
    ]


if __name__ == "__main__":
    for row in run():
        print(f"{row.name:62} {row.ours_ms:9.2f} {row.baseline_ms:9.1f} {row.ratio:6.1f}x")
