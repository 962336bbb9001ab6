"""FAACL's support test against all signs by hand, and against scipy.

"Asymmetric clustering in federated continual learning", algorithm 2: the one-sided signed-rank test
of the own loss plus a margin against the offered model's.
"""

import itertools

import numpy as np
import pytest
from scipy.stats import rankdata, wilcoxon

from bcfl.protocol.statistics.support import SampleFit, SupportTest


def by_all_signs(differences):
    """P(rank sum of the positive >= the observed) when each sign is a fair coin; zeros dropped."""
    used = np.round(differences, 12)
    used = used[used != 0]
    ranks = rankdata(np.abs(used))
    observed = ranks[used > 0].sum()
    sums = [ranks @ signs for signs in itertools.product((0, 1), repeat=len(used))]
    return np.mean(np.array(sums) >= observed - 1e-9)


def p_value(own, other, margin):
    return SupportTest.of(SampleFit.raw(own), SampleFit.raw(other), margin).p_value


@pytest.mark.parametrize("seed", range(12))
def test_few_samples(seed):
    rng = np.random.default_rng(seed)
    own, other = np.round(rng.exponential(size=(2, 4 + seed % 8)), 1)
    assert p_value(own, other, 0.1) == pytest.approx(by_all_signs(own + 0.1 - other), rel=1e-12)


@pytest.mark.parametrize("seed", range(6))
def test_many_samples(seed):
    """The normal approximation of scipy, which is what the published program calls."""
    rng = np.random.default_rng(seed)
    own, other = np.round(rng.exponential(size=(2, 60 + 20 * seed)), seed % 2 + 1)
    differences = np.round(own + 0.2 - other, 12)
    right = wilcoxon(differences, alternative="greater", method="approx").pvalue
    assert p_value(own, other, 0.2) == pytest.approx(right, rel=1e-9)


def test_capped_losses_pay_what_guessing_costs():
    own = np.array([0.05, 0.40, 3.1, 0.90, 2.7, 0.02, 0.60, 4.0, 0.30])
    right = np.array([1, 1, 0, 1, 0, 1, 1, 0, 1], dtype=bool)
    offered = np.array([0.60, 1.10, 2.9, 0.35, 0.80, 0.70, 3.3, 5.2, 0.10])
    also_right = np.array([1, 1, 0, 1, 1, 1, 0, 0, 1], dtype=bool)
    margin, guess = 0.5, np.log(10)
    left = np.where(right, own + margin, guess)
    differences = left - np.where(also_right, offered, guess)
    measured = SupportTest.of(
        SampleFit.capped(own, right, 10), SampleFit.capped(offered, also_right, 10), margin
    )
    assert measured.p_value == pytest.approx(by_all_signs(differences), rel=1e-12)


def test_equal_losses_are_no_support():
    assert p_value(np.ones(20), np.ones(20), 0.0) == 1.0
