"""Allocation of class counts: largest remainders, Dirichlet shares, minimum sizes."""

import numpy as np
import pytest

from experiments.partitions.allocation import (
    dirichlet_counts,
    largest_remainder,
    raise_to_minimum,
)


@pytest.mark.parametrize(
    ("total", "shares", "expected"),
    [
        (10, [0.23, 0.41, 0.36], [2, 4, 4]),
        (7, [1 / 3, 1 / 3, 1 / 3], [3, 2, 2]),
        (1000, [0.004, 0.0951, 0.3009, 0.6], [4, 95, 301, 600]),
        (0, [0.5, 0.5], [0, 0]),
    ],
)
def test_largest_remainder(total, shares, expected):
    assert largest_remainder(total, np.array(shares)).tolist() == expected


@pytest.mark.parametrize(("alpha", "units"), [(0.1, 4), (10.0, 5)])
def test_dirichlet_shares_have_the_moments_of_the_distribution(alpha, units):
    draws = 20_000
    counts = dirichlet_counts(np.full(draws, 10**6), units, alpha, np.random.default_rng(0))
    shares = counts / 10**6
    assert (counts.sum(axis=0) == 10**6).all()
    variance = (1 / units) * (1 - 1 / units) / (units * alpha + 1)
    np.testing.assert_allclose(shares.mean(axis=1), 1 / units, atol=5 * (variance / draws) ** 0.5)
    np.testing.assert_allclose(shares.var(axis=1), variance, rtol=0.05)


@pytest.mark.parametrize("alpha", [1e-3, 1e6])
def test_dirichlet_counts_at_the_ends_of_alpha(alpha):
    counts = dirichlet_counts(np.array([0, 1, 500]), 50, alpha, np.random.default_rng(0))
    assert counts.sum(axis=0).tolist() == [0, 1, 500]
    assert counts.min() >= 0


def test_raise_to_minimum_takes_from_the_largest_its_richest_class():
    counts = np.array([[9, 3], [1, 0], [4, 5]])
    # The first client is the largest, 12 samples, when it gives two of its richest class.
    assert raise_to_minimum(counts, 3).tolist() == [[7, 3], [3, 0], [4, 5]]
    assert counts.tolist() == [[9, 3], [1, 0], [4, 5]]
    # Three from the first; now both givers have 9, and take turns from the lower index on.
    assert raise_to_minimum(counts, 7).sum(axis=1).tolist() == [7, 7, 8]
    with pytest.raises(ValueError, match="min_samples=8 for 3 clients require 24 samples, got 22"):
        raise_to_minimum(counts, 8)


def test_raise_to_minimum_keeps_to_allowed_classes():
    counts = np.array([[9, 3], [0, 1]])
    allowed = np.array([[True, True], [False, True]])
    assert raise_to_minimum(counts, 3, allowed).tolist() == [[9, 1], [0, 3]]
    with pytest.raises(ValueError, match="no other client can spare"):
        raise_to_minimum(counts, 5, allowed)
