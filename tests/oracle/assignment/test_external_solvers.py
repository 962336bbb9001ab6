"""Associations and marginals against other people's code: scipy, lap and Pyro."""

import itertools

import numpy as np
import pytest
import torch
from pyro.contrib.tracking.assignment import MarginalAssignment
from scipy.optimize import linear_sum_assignment
from scipy.sparse.csgraph import floyd_warshall

import assignment
from assignment.paths import path_levels, shortest_path
from assignment.ranking.best_one_to_one import lap_columns, one_to_one_columns


def scipy_total(cost):
    rows, columns = linear_sum_assignment(cost)
    return cost[rows, columns].sum()


@pytest.mark.parametrize("seed", range(8))
def test_free_marginals_agree_with_pyro_within_its_clamp(seed):
    """A detection-less outcome of logit 0 is drowned: all other logits lie well above it."""
    rng = np.random.default_rng(seed)
    cost = rng.uniform(-4.0, 4.0, size=(rng.integers(1, 6), rng.integers(1, 4)))
    logits = torch.tensor(35.0 - cost)
    exists = torch.full((cost.shape[1],), 40.0, dtype=torch.float64)
    theirs = MarginalAssignment(exists, logits).assign_dist.probs.numpy()
    assert theirs[:, -1].max() < 1e-12
    ours = assignment.association_marginals(cost).probabilities
    np.testing.assert_allclose(ours, theirs[:, :-1], rtol=0, atol=1e-7)


@pytest.mark.parametrize("offset", [0.0, 3e6, -3e6])
@pytest.mark.parametrize("solve", [lap_columns, one_to_one_columns])
def test_lap_is_right_beyond_its_internal_infinity(solve, offset):
    """Unscaled, the shifted matrix makes lap answer 9000007; 9000005 is right."""
    cost = np.array([[4.0, 1.0, 3.0], [2.0, 0.0, 5.0], [3.0, 2.0, 2.0]]) + offset
    assert cost[np.arange(3), solve(cost)].sum() == 5.0 + 3 * offset
    assert assignment.best_assignment(cost, 1, 1).cost == 5.0 + 3 * offset


@pytest.mark.parametrize("scale", [1e-6, 1.0, 1e7, 1e12])
@pytest.mark.parametrize("size", [2, 31, 90])
def test_lap_agrees_with_scipy_at_every_scale(size, scale):
    cost = np.random.default_rng(size).normal(size=(size, size)) * scale
    total = cost[np.arange(size), lap_columns(cost)].sum()
    assert total == pytest.approx(scipy_total(cost), rel=1e-12)


def test_forbidden_pairs_in_large_one_to_one_problems():
    rng = np.random.default_rng(5)
    cost = rng.normal(size=(60, 60))
    cost[rng.random(cost.shape) < 0.5] = np.inf
    assert assignment.best_assignment(cost, 1, 1).cost == pytest.approx(scipy_total(cost))
    cost[:31] = np.inf
    cost[:31, :30] = 0.0
    with pytest.raises(assignment.InfeasibleError):
        assignment.best_assignment(cost, 1, 1)


@pytest.mark.parametrize("seed", range(6))
@pytest.mark.parametrize("skew", [0.0, 1.5])
def test_best_bounded_association_agrees_with_replicated_columns(seed, skew):
    """Columns may be replicated for the best alone; idle rows fill what stays empty."""
    rng = np.random.default_rng(seed)
    clients, clusters = 40, 4
    cost = rng.normal(size=(clients, clusters)) + skew * np.arange(clusters)
    cost[rng.random(cost.shape) < 0.1] = np.inf
    lower, upper = rng.integers(0, 8, clusters), rng.integers(11, 16, clusters)
    owner = np.repeat(np.arange(clusters), upper)
    needed = np.concatenate(
        [np.arange(most) < least for least, most in zip(lower, upper, strict=True)]
    )
    replicated = np.zeros((len(owner), len(owner)))
    replicated[:clients] = cost[:, owner]
    replicated[clients:, needed] = np.inf
    best = assignment.best_assignment(cost, lower, upper)
    assert best.cost == pytest.approx(scipy_total(replicated), rel=1e-12)
    sizes = np.bincount(best.labels, minlength=clusters)
    assert ((lower <= sizes) & (sizes <= upper)).all()


@pytest.mark.parametrize("seed", range(3))
def test_bounded_ranking_is_the_free_ranking_without_forbidden_sizes(seed):
    rng = np.random.default_rng(seed)
    cost = rng.normal(size=(14, 3))
    cost[rng.random(cost.shape) < 0.1] = np.inf
    cost[:, 0] = rng.normal(size=14)
    lower, upper = np.array([3, 4, 3]), np.array([6, 6, 6])
    allowed = []
    for found in assignment.iter_assignments(cost, solver="heap"):
        sizes = np.bincount(found.labels, minlength=3)
        if ((lower <= sizes) & (sizes <= upper)).all():
            allowed.append(found.cost)
        if len(allowed) == 120:
            break
    ranked = assignment.m_best_assignments(cost, 120, lower, upper)
    np.testing.assert_allclose(ranked.cost, allowed, atol=1e-9)
    assert len(np.unique(ranked.labels, axis=0)) == 120


def murty_with_scipy(cost, m):
    """Murty's algorithm as in the textbook: every child is solved from scratch."""
    clients = len(cost)
    queue = [(scipy_total(cost), cost, 0)]
    found = []
    while queue and len(found) < m:
        queue.sort(key=lambda entry: entry[0])
        total, problem, first = queue.pop(0)
        columns = linear_sum_assignment(problem)[1]
        found.append(total)
        for client in range(first, clients):
            child = problem.copy()
            for fixed in range(client):
                keep = child[fixed, columns[fixed]]
                child[fixed] = np.inf
                child[fixed, columns[fixed]] = keep
            child[client, columns[client]] = np.inf
            try:
                queue.append((scipy_total(child), child, client))
            except ValueError:
                continue
    return np.array(found)


@pytest.mark.parametrize(("rows", "columns"), [(9, 9), (6, 10), (14, 14)])
@pytest.mark.parametrize("tied", [False, True])
def test_one_to_one_ranking_agrees_with_murty_from_scratch(rows, columns, tied):
    rng = np.random.default_rng(rows)
    cost = rng.normal(size=(rows, columns))
    if tied:
        cost = np.round(cost)
    ours = assignment.m_best_assignments(cost, 40, upper=1)
    np.testing.assert_allclose(ours.cost, murty_with_scipy(cost, 40), atol=1e-9)
    assert len(np.unique(ours.labels, axis=0)) == 40


def test_idle_clusters_are_no_different_associations():
    ranked = assignment.m_best_assignments([[np.inf, 11, 8], [8, np.inf, 7]], 10, upper=1)
    np.testing.assert_array_equal(ranked.cost, [16, 18, 19])
    np.testing.assert_array_equal(ranked.labels, [[2, 0], [1, 2], [1, 0]])


def recursion(solver, rounds=12, parents=6):
    """A multi-hypothesis recursion over cost matrices that depend on the parent's labels."""
    labels, log_weights = np.zeros((1, 10), dtype=np.int64), np.zeros(1)
    history = []
    for step in range(rounds):
        rng = np.random.default_rng(step)
        base = rng.normal(size=(10, 3))
        costs = np.stack([base + 0.7 * (parent[:, None] != np.arange(3)) for parent in labels])
        found = assignment.m_best_over_parents(costs, log_weights, parents, solver=solver)
        log_weights = assignment.normalise(found.log_weight)
        labels = found.labels
        history.append((found.parent, labels, log_weights))
    return history


def test_heap_and_murty_agree_through_a_whole_run():
    for (heap_parent, heap_labels, heap_weights), (parent, labels, weights) in zip(
        recursion("heap"), recursion("murty"), strict=True
    ):
        np.testing.assert_array_equal(heap_parent, parent)
        np.testing.assert_array_equal(heap_labels, labels)
        np.testing.assert_allclose(heap_weights, weights, atol=1e-10)


def test_ranking_of_many_clients_agrees_with_all_single_and_double_moves():
    """The first few of many clients differ from the best in two clients at most."""
    rng = np.random.default_rng(11)
    cost = rng.normal(size=(60, 3))
    best = cost.argmin(axis=1)
    gaps = cost - cost.min(axis=1, keepdims=True)
    moves = [
        (gaps[client, cluster], client)
        for client in range(60)
        for cluster in range(3)
        if cluster != best[client]
    ]
    sums = [0.0] + [gap for gap, _ in moves]
    sums += [a + b for (a, j), (b, k) in itertools.combinations(moves, 2) if j != k]
    ranked = assignment.m_best_assignments(cost, 7)
    np.testing.assert_allclose(ranked.excess, np.sort(sums)[:7], atol=1e-12)


@pytest.mark.parametrize("nodes", [1, 2, 7, 180])
def test_shortest_paths_agree_with_floyd_warshall(nodes):
    rng = np.random.default_rng(nodes)
    graph = rng.uniform(0.1, 1.0, size=(nodes, nodes))
    graph[rng.random(graph.shape) < 0.7] = np.inf
    np.fill_diagonal(graph, 0.0)
    levels = path_levels(graph)
    np.testing.assert_allclose(levels[-1], floyd_warshall(graph), rtol=1e-12)
    for target in np.flatnonzero(np.isfinite(levels[-1][0]))[:20]:
        path = shortest_path(levels, 0, int(target))
        steps = [graph[one, other] for one, other in itertools.pairwise(path)]
        assert sum(steps) == pytest.approx(levels[-1][0, target])
