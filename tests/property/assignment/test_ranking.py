"""Ranked associations against brute force: sizes, ties, forbidden pairs, offsets, bounds."""

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

import assignment

OFFSETS = st.sampled_from([0.0, 1e5, -1e5])


@st.composite
def cost_matrices(draw, clients=(1, 5), clusters=(1, 4)):
    """Tied integers or reals, with forbidden pairs and a common offset."""
    shape = (draw(st.integers(*clients)), draw(st.integers(*clusters)))
    rng = np.random.default_rng(draw(st.integers(0, 2**32 - 1)))
    tied = draw(st.booleans())
    cost = rng.integers(0, 4, shape).astype(float) if tied else rng.normal(scale=3.0, size=shape)
    cost[rng.random(shape) < draw(st.sampled_from([0.0, 0.15, 0.4]))] = np.inf
    return cost + draw(OFFSETS)


@st.composite
def bounded_problems(draw):
    cost = draw(cost_matrices())
    clusters = cost.shape[1]
    lower = draw(st.lists(st.integers(0, 2), min_size=clusters, max_size=clusters))
    room = draw(st.lists(st.integers(0, 4), min_size=clusters, max_size=clusters))
    return cost, np.array(lower), np.array(lower) + np.array(room)


@st.composite
def one_to_one_problems(draw):
    clients = draw(st.integers(1, 4))
    cost = draw(cost_matrices((clients, clients), (clients, 5)))
    lower = draw(st.lists(st.integers(0, 1), min_size=cost.shape[1], max_size=cost.shape[1]))
    return cost, np.array(lower), np.ones(cost.shape[1], dtype=int)


def ranked_or_none(cost, m, **options):
    try:
        return assignment.m_best_assignments(cost, m, **options)
    except assignment.InfeasibleError:
        return None


def assert_same(ranked, reference, cost, m):
    if reference is None:
        assert ranked is None
        return
    assert ranked is not None
    expected = reference.costs[:m]
    assert len(ranked) == len(expected)
    np.testing.assert_allclose(ranked.cost, expected, rtol=0, atol=1e-8)
    np.testing.assert_allclose(ranked.excess, expected - expected[0], rtol=0, atol=1e-8)
    assert (np.diff(ranked.excess) >= 0).all()
    rows = {tuple(labels) for labels in ranked.labels.tolist()}
    assert len(rows) == len(ranked)
    assert rows <= {tuple(labels) for labels in reference.labels.tolist()}
    own = cost[np.arange(len(cost)), ranked.labels].sum(axis=1)
    np.testing.assert_allclose(ranked.cost, own, rtol=0, atol=1e-8)


COUNTS = st.sampled_from([1, 3, 10, 2000])


@settings(max_examples=500, deadline=None)
@given(cost=cost_matrices(), m=COUNTS)
def test_free_sizes_by_heap(enumerated, cost, m):
    assert_same(ranked_or_none(cost, m, solver="heap"), enumerated(cost), cost, m)


@settings(max_examples=700, deadline=None)
@given(problem=bounded_problems(), m=COUNTS)
def test_bounded_sizes_by_murty(enumerated, problem, m):
    cost, lower, upper = problem
    ranked = ranked_or_none(cost, m, lower=lower, upper=upper, solver="murty")
    assert_same(ranked, enumerated(cost, lower, upper), cost, m)


@settings(max_examples=400, deadline=None)
@given(problem=one_to_one_problems(), m=COUNTS)
def test_one_to_one_by_hungarian(enumerated, problem, m):
    cost, lower, upper = problem
    ranked = ranked_or_none(cost, m, lower=lower, upper=upper, solver="hungarian")
    assert_same(ranked, enumerated(cost, lower, upper), cost, m)


@settings(max_examples=300, deadline=None)
@given(problem=bounded_problems(), max_excess=st.floats(0, 10))
def test_chosen_solver_best_and_excess_limit(enumerated, problem, max_excess):
    cost, lower, upper = problem
    reference = enumerated(cost, lower, upper)
    ranked = ranked_or_none(cost, 5000, lower=lower, upper=upper)
    assert_same(ranked, reference, cost, 5000)
    if reference is None:
        with pytest.raises(assignment.InfeasibleError):
            assignment.best_assignment(cost, lower, upper)
        return
    best = assignment.best_assignment(cost, lower, upper)
    np.testing.assert_array_equal(best.labels, ranked.labels[0])
    assert best.cost == ranked.cost[0]
    within = list(assignment.iter_assignments(cost, lower, upper, max_excess))
    assert len(within) == (ranked.excess <= max_excess).sum()


@settings(max_examples=300, deadline=None)
@given(cost=cost_matrices(), m=COUNTS)
def test_heap_and_murty_agree_on_free_sizes(cost, m):
    heap, murty = (ranked_or_none(cost, m, solver=solver) for solver in ("heap", "murty"))
    assert (heap is None) == (murty is None)
    if heap is not None:
        np.testing.assert_allclose(heap.excess, murty.excess, rtol=0, atol=1e-9)
        assert heap.log_partition == murty.log_partition


@settings(max_examples=200, deadline=None)
@given(problem=one_to_one_problems(), m=COUNTS)
def test_hungarian_and_murty_agree_on_one_to_one(problem, m):
    cost, lower, upper = problem
    options = {"lower": lower, "upper": upper}
    square, general = (
        ranked_or_none(cost, m, **options, solver=solver) for solver in ("hungarian", "murty")
    )
    assert (square is None) == (general is None)
    if square is not None:
        np.testing.assert_allclose(square.excess, general.excess, rtol=0, atol=1e-9)


@settings(max_examples=200, deadline=None)
@given(data=st.data(), problem=bounded_problems(), m=st.sampled_from([1, 5, 40]))
def test_best_over_parents(enumerated, data, problem, m):
    cost, lower, upper = problem
    rng = np.random.default_rng(data.draw(st.integers(0, 2**32 - 1)))
    costs = [cost, cost + rng.integers(0, 3, cost.shape), rng.normal(size=cost.shape)]
    log_weights = rng.normal(scale=2.0, size=3)
    references = [enumerated(matrix, lower, upper) for matrix in costs]
    expected = np.concatenate(
        [
            log_weight - reference.costs
            for log_weight, reference in zip(log_weights, references, strict=True)
            if reference is not None
        ]
        or [np.empty(0)]
    )
    if not len(expected):
        with pytest.raises(assignment.InfeasibleError):
            assignment.m_best_over_parents(costs, log_weights, m, lower, upper)
        return
    found = assignment.m_best_over_parents(costs, log_weights, m, lower, upper)
    np.testing.assert_allclose(found.log_weight, np.sort(expected)[::-1][:m], atol=1e-8)
    total = np.logaddexp.reduce(expected)
    assert found.log_partition == pytest.approx(total, abs=1e-8)
    mass = np.logaddexp.reduce(found.log_weight) - total
    assert found.log_captured_mass == pytest.approx(mass, abs=1e-8)
    assert len({(child.parent, *child.labels.tolist()) for child in found}) == len(found)
