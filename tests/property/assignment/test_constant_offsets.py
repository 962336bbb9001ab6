"""A constant added to a client's row changes no probability, against exact rational arithmetic."""

import itertools
from fractions import Fraction

import mpmath
import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

import assignment

EXACT = st.sampled_from([0.0, 2.0**20, -(2.0**35), 2.0**42])
ROUNDING = st.sampled_from([1e15, -1e16, 1e17, 1e20, -1e30])


@st.composite
def problems(draw, offsets):
    """Costs on a grid of 2^-10 nats, an upper bound or none, and an offset of each client."""
    clients, clusters = draw(st.integers(1, 4)), draw(st.integers(1, 3))
    rng = np.random.default_rng(draw(st.integers(0, 2**32 - 1)))
    costs = rng.integers(-4096, 4096, size=(clients, clusters)) / 1024
    costs[rng.random(costs.shape) < draw(st.sampled_from([0.0, 0.2]))] = np.inf
    upper = draw(st.sampled_from([None, 1, 2, np.arange(1, clusters + 1)]))
    shift = np.array(draw(st.lists(offsets, min_size=clients, max_size=clients)))
    return costs, upper, shift


def exact(costs, upper):
    """Exact excess, labels and marginals of all associations, cheapest first."""
    clients, clusters = costs.shape
    most = np.full(clusters, clients) if upper is None else np.broadcast_to(upper, clusters)
    found = []
    for labels in itertools.product(range(clusters), repeat=clients):
        chosen = costs[np.arange(clients), labels]
        if np.isfinite(chosen).all() and (np.bincount(labels, minlength=clusters) <= most).all():
            found.append((sum(map(Fraction, chosen.tolist())), labels))
    if not found:
        return None
    found.sort()
    with mpmath.workdps(40):
        excess = [cost - found[0][0] for cost, _ in found]
        weights = [mpmath.exp(-mpmath.mpf(e.numerator) / e.denominator) for e in excess]
        total = mpmath.fsum(weights)
        shares = np.array([float(weight / total) for weight in weights])
    probabilities = np.zeros(costs.shape)
    for share, (_, labels) in zip(shares, found, strict=True):
        probabilities[np.arange(clients), labels] += share
    return np.array([float(e) for e in excess]), shares, probabilities


def check(costs, upper, right):
    excess, shares, probabilities = right
    ranked = assignment.m_best_assignments(costs, 5, upper=upper)
    size = np.abs(excess[:5]).max()
    np.testing.assert_allclose(ranked.excess, excess[:5], rtol=1e-12, atol=1e-14 * size)
    kept = np.log(min(shares[:5].sum(), 1.0))
    assert ranked.log_captured_mass == pytest.approx(kept, rel=1e-12, abs=1e-12)
    marginals = assignment.association_marginals(costs, upper=upper)
    np.testing.assert_allclose(marginals.probabilities, probabilities, rtol=0, atol=1e-12)
    np.testing.assert_allclose(marginals.probabilities.sum(axis=1), 1.0, rtol=1e-14)
    entropy = -(shares[shares > 0] * np.log(shares[shares > 0])).sum()
    assert marginals.entropy == pytest.approx(entropy, abs=1e-11)


@given(problems(EXACT))
@settings(max_examples=150, deadline=None)
def test_where_the_sum_is_exact_nothing_changes(problem):
    costs, upper, shift = problem
    right = exact(costs, upper)
    if right is not None:
        check(costs + shift[:, None], upper, right)


@given(problems(ROUNDING))
@settings(max_examples=150, deadline=None)
def test_beyond_that_the_rounded_costs_are_taken_exactly(problem):
    costs, upper, shift = problem
    rounded = costs + shift[:, None]
    right = exact(rounded, upper)
    if right is not None:
        check(rounded, upper, right)


@given(problems(EXACT), st.integers(2, 3))
@settings(max_examples=80, deadline=None)
def test_over_parents_offsets_cancel(problem, parents):
    """The parents' costs differ from each other; a client adds the same to all of its own."""
    costs, upper, shift = problem
    if exact(costs, upper) is None:
        return
    matrices = [costs + parent / 8 for parent in range(parents)]
    log_weights = np.log(np.arange(1, parents + 1))
    plain = assignment.m_best_over_parents(matrices, log_weights, 6, upper=upper)
    moved = assignment.m_best_over_parents(
        [matrix + shift[:, None] for matrix in matrices], log_weights, 6, upper=upper
    )
    np.testing.assert_allclose(moved.excess, plain.excess, rtol=0, atol=1e-12)
    assert moved.log_captured_mass == pytest.approx(plain.log_captured_mass, abs=1e-12)


@given(
    st.lists(st.floats(-700, 0), min_size=1, max_size=6),
    st.sampled_from([1e6, -1e15, 1e17, -1e300]),
)
def test_weights_sum_to_one_at_any_scale(differences, offset):
    log_weights = np.array(differences) + offset
    weights = np.exp(assignment.normalise(log_weights))
    assert weights.sum() == pytest.approx(1.0, abs=1e-14)
    below = [float(Fraction(w) - Fraction(log_weights.max())) for w in log_weights.tolist()]
    np.testing.assert_allclose(weights, np.exp(below) / np.exp(below).sum(), rtol=1e-13)
    assert 1.0 <= assignment.effective_number(log_weights) <= len(weights) * (1 + 1e-14)


@given(st.lists(st.floats(-1e300, 1e300), max_size=8))
def test_sums_are_exact(numbers):
    assert assignment.exact_sum(numbers) == sum(map(Fraction, numbers))
