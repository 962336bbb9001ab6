"""Exact marginals, partition functions and captured mass against brute force."""

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

import assignment


@st.composite
def problems(draw):
    shape = (draw(st.integers(1, 5)), draw(st.integers(1, 4)))
    rng = np.random.default_rng(draw(st.integers(0, 2**32 - 1)))
    cost = rng.normal(scale=draw(st.sampled_from([0.0, 1.0, 50.0])), size=shape)
    cost[rng.random(shape) < draw(st.sampled_from([0.0, 0.25]))] = np.inf
    cost += draw(st.sampled_from([0.0, 1e5, -1e5]))
    if draw(st.booleans()):
        return cost, None, None
    lower = np.array(draw(st.lists(st.integers(0, 2), min_size=shape[1], max_size=shape[1])))
    room = np.array(draw(st.lists(st.integers(0, 3), min_size=shape[1], max_size=shape[1])))
    return cost, lower, lower + room


@settings(max_examples=500, deadline=None)
@given(problem=problems(), m=st.sampled_from([1, 4, 2000]))
def test_exact_marginals(enumerated, problem, m):
    cost, lower, upper = problem
    reference = enumerated(cost, lower, upper)
    if reference is None:
        with pytest.raises(assignment.InfeasibleError):
            assignment.association_marginals(cost, lower, upper)
        return
    found = assignment.association_marginals(cost, lower, upper)
    weights, labels = reference.probabilities, reference.labels
    member = labels[:, :, None] == np.arange(cost.shape[1])
    expected = np.einsum("a,aji->ji", weights, member)
    np.testing.assert_allclose(found.probabilities, expected, rtol=0, atol=1e-10)
    together = np.einsum("a,ajk->jk", weights, labels[:, :, None] == labels[:, None, :])
    np.testing.assert_allclose(found.co_association(), together, rtol=0, atol=1e-10)
    assert found.log_partition == pytest.approx(reference.log_partition, rel=1e-14, abs=1e-10)
    entropy = -(weights[weights > 0] * np.log(weights[weights > 0])).sum()
    assert found.entropy == pytest.approx(entropy, abs=1e-9)

    ranked = assignment.m_best_assignments(cost, m, lower, upper)
    assert ranked.log_partition == found.log_partition
    mass = np.log(weights[:m].sum())
    assert ranked.log_captured_mass == pytest.approx(mass, abs=1e-9)


@settings(max_examples=100, deadline=None)
@given(problem=problems(), seed=st.integers(0, 1000))
def test_every_draw_is_feasible(enumerated, problem, seed):
    cost, lower, upper = problem
    reference = enumerated(cost, lower, upper)
    if reference is None:
        return
    draws = assignment.association_marginals(cost, lower, upper).sample(seed, 30)
    assert {tuple(row) for row in draws.tolist()} <= set(map(tuple, reference.labels.tolist()))


@settings(max_examples=200, deadline=None)
@given(
    log_weights=st.lists(st.floats(-800, 800), min_size=1, max_size=8),
    threshold=st.floats(0, 1),
    m=st.integers(1, 9),
)
def test_reductions_keep_ratios_and_bound_mass(log_weights, threshold, m):
    values = np.array(log_weights)
    everything = np.logaddexp.reduce(values)
    for kept, reduced in (
        assignment.prune(values, threshold),
        assignment.cap(values, m),
    ):
        assert np.logaddexp.reduce(reduced) == pytest.approx(0.0, abs=1e-9)
        np.testing.assert_allclose(reduced - reduced[0], values[kept] - values[kept[0]], atol=1e-9)
        assert values.max() in values[kept]
        assert values[kept].min() >= np.delete(values, kept).max(initial=-np.inf) - 1e-9
        mass = assignment.log_captured_mass(values[kept], everything)
        assert mass == pytest.approx(np.logaddexp.reduce(values[kept]) - everything, abs=1e-9)
    assert 1 - 1e-9 <= assignment.effective_number(values) <= len(values) + 1e-9
