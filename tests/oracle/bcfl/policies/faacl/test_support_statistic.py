"""The p-values of FAACL's support test, against numbers by hand, enumeration and SciPy."""

from itertools import product

import numpy as np
import pytest
import torch
from scipy import stats

from bcfl.protocol.statistics.sample_values import capped
from bcfl.protocol.statistics.support import SampleFit, SupportTest, signed_rank_p_value

SIX = ([0.20, 0.50, 0.90, 1.40, 0.30, 0.70], [0.27, 0.41, 1.15, 1.00, 0.62, 0.75])
EIGHT = ([0.1, 0.2, 0.3, 0.4, 0.5, 0.6, 0.7, 0.8], [0.1, 0.5, 0.2, 0.5, 0.9, 0.4, 1.0, 0.6])
NINE = (
    [0.05, 0.40, 3.1, 0.90, 2.7, 0.02, 0.60, 4.0, 0.30],
    [0.60, 1.10, 2.9, 0.35, 0.80, 0.70, 3.3, 5.2, 0.10],
)
TWELVE = (
    [0.11, 0.35, 0.07, 0.52, 0.90, 0.26, 0.64, 0.18, 0.43, 1.20, 0.05, 0.31],
    [0.20, 0.30, 0.25, 0.60, 0.75, 0.41, 0.58, 0.40, 0.39, 1.75, 0.02, 0.55],
)


def capped_fit(losses, right):
    """Of ten classes."""
    fit = capped(torch.tensor(losses, dtype=torch.float64), torch.from_numpy(right), 10)
    return SampleFit(fit.numpy(), right)


def raw(losses):
    own, other = losses
    return SampleFit.raw(np.array(own)), SampleFit.raw(np.array(other))


@pytest.mark.parametrize(
    ("losses", "margin", "p_value", "num_pairs"),
    [
        (SIX, 0.1, 0.343750, 6),
        (EIGHT, 0.1, 0.406250, 7),
        (NINE, 0.5, 0.365234, 9),
        (TWELVE, 0.0, 0.955566, 12),
        (TWELVE, 0.1, 0.291504, 12),
        (TWELVE, 0.2, 0.036865, 12),
        (TWELVE, 0.3, 0.004639, 12),
    ],
)
def test_raw_losses(losses, margin, p_value, num_pairs):
    found = SupportTest.of(*raw(losses), margin)
    assert found.p_value == pytest.approx(p_value, abs=5e-7)
    assert (found.num_pairs, found.num_samples) == (num_pairs, len(losses[0]))


def test_capped_losses():
    """Ten classes. A sample that both get wrong has no difference and drops out."""
    own_right = np.array([1, 1, 0, 1, 0, 1, 1, 0, 1], dtype=bool)
    other_right = np.array([1, 1, 0, 1, 1, 1, 0, 0, 1], dtype=bool)
    own = capped_fit(NINE[0], own_right)
    other = capped_fit(NINE[1], other_right)
    found = SupportTest.of(own, other, 0.5)
    assert found == SupportTest(0.406250, 7, 9)


def test_no_usable_difference_is_no_support():
    for count in (5, 20, 60):
        assert signed_rank_p_value(np.zeros(count)) == (1.0, 0)
    assert signed_rank_p_value(np.array([1.0, float("nan"), 2.0])) == (1.0, 0)
    assert signed_rank_p_value(np.array([1.0, float("inf")])) == (1.0, 0)


def test_the_smallest_p_value_halves_with_each_pair():
    found = [signed_rank_p_value(np.arange(1.0, n + 1))[0] for n in (1, 2, 3, 4)]
    assert found == [0.5, 0.25, 0.125, 0.0625]


@pytest.mark.parametrize("count", [7, 25, 50, 51, 200])
def test_random_differences_agree_with_scipy(count):
    random = np.random.default_rng(count)
    for _ in range(5):
        differences = random.normal(0.2, 1.0, size=count)
        wanted = stats.wilcoxon(differences, alternative="greater", method="auto").pvalue
        assert signed_rank_p_value(differences)[0] == pytest.approx(wanted, rel=1e-9)


@pytest.mark.parametrize("count", [14, 40, 120])
def test_ties_and_zeros_beyond_enumeration_agree_with_scipy(count):
    random = np.random.default_rng(count)
    for _ in range(5):
        differences = random.integers(-3, 5, size=count) / 10
        wanted = stats.wilcoxon(differences, alternative="greater", method="asymptotic").pvalue
        assert signed_rank_p_value(differences)[0] == pytest.approx(wanted, rel=1e-9)


@pytest.mark.parametrize("count", [3, 6, 9])
def test_ties_and_zeros_among_few_are_enumerated(count):
    random = np.random.default_rng(count)
    for _ in range(5):
        differences = random.integers(-2, 4, size=count) / 10
        used = differences[differences != 0]
        ranks = stats.rankdata(np.abs(used))
        seen = ranks[used > 0].sum()
        sums = [ranks[np.array(s, dtype=bool)].sum() for s in product((0, 1), repeat=len(used))]
        wanted = np.mean([total >= seen - 1e-9 for total in sums]) if len(used) else 1.0
        assert signed_rank_p_value(differences)[0] == pytest.approx(wanted, abs=1e-12)


def test_rounding_of_sums_breaks_no_tie():
    own, other = np.array([0.1, 0.3, 0.7, 1.1]), np.array([0.2, 0.2, 0.8, 1.0])
    found = SupportTest.of(SampleFit.raw(own + 0.1), SampleFit.raw(other + 0.1), 0.0)
    assert found.p_value == 11 / 16  # midranks 2.5 each: at least two of four positive
