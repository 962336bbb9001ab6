"""Borrowed evidence against the marginal likelihood of linear-Gaussian data, by covariances."""

import numpy as np
import pytest
from scipy.stats import multivariate_normal

from bcfl.policies.bayes.borrowing import borrowing_gains, expected_power


def drawn(random, truth, count):
    """Design with orthogonal columns, so that its curvature is diagonal, and noisy targets."""
    design = np.zeros((count * len(truth), len(truth)))
    design[np.arange(len(design)), np.repeat(np.arange(len(truth)), count)] = random.uniform(
        0.5, 1.5, size=len(design)
    )
    return design, design @ truth + random.normal(size=len(design))


def expansion(design, targets, mean):
    return design.T @ (targets - design @ mean), (design**2).sum(axis=0)


def predictive(own, other, power, mean, precision):
    """log p(own targets | other targets, noise variance 1/power): the power is a precision."""
    designs = [own[0]] if power == 0 else [own[0], other[0]]
    noise = np.ones(len(own[1]))
    if power > 0:
        noise = np.concatenate([noise, np.full(len(other[1]), 1 / power)])

    def log_density(rows):
        design = np.concatenate(designs)[rows]
        targets = np.concatenate([own[1], other[1]])[: len(noise)][rows]
        covariance = design @ np.diag(1 / precision) @ design.T + np.diag(noise[rows])
        return multivariate_normal(design @ mean, covariance).logpdf(targets)

    everything, lent = slice(None), slice(len(own[1]), None)
    return log_density(everything) - (log_density(lent) if power > 0 else 0.0)


@pytest.mark.parametrize("seed", range(4))
def test_gains_are_differences_of_predictive_densities(seed):
    random = np.random.default_rng(seed)
    mean, precision = random.normal(size=3), random.uniform(0.5, 2, size=3)
    own = drawn(random, random.normal(size=3), 2)
    other = drawn(random, random.normal(size=3), 4)
    powers = (0.0, 0.3, 1.0)
    gains = borrowing_gains(expansion(*own, mean), expansion(*other, mean), precision, powers)
    alone = predictive(own, other, 0.0, mean, precision)
    wanted = [predictive(own, other, power, mean, precision) - alone for power in powers]
    np.testing.assert_allclose(gains, wanted, atol=1e-9)
    assert gains[0] == pytest.approx(0, abs=1e-12)


def test_the_expected_power_is_a_weighted_mean():
    gains = np.log([1.0, 2.0, 5.0])
    assert expected_power(gains, (0.0, 0.5, 1.0)) == pytest.approx((0.5 * 2 + 5) / 8)
    assert expected_power(np.array([0.0, -800.0]), (0.0, 1.0)) == 0.0


def test_a_share_is_borrowed_of_many_that_differ_a_little_and_few_such_are_borrowed_whole():
    """Data on their expected values: 5 samples and 500, true parameters 0.5 apart.

    The own data's mean has variance 1 / 5 and is 0.5 from the others': their variance should be
    0.25 - 0.2, that of 20 of 500. The many see the few at a variance of 1 / (5 power) + 1 / 500.
    """
    few = (np.array([5 * 0.0]), np.array([5.0]))
    many = (np.array([500 * 0.5]), np.array([500.0]))
    precision = np.array([0.01])
    lent_to_few, lent_to_many = (
        borrowing_gains(own, other, precision, (0.0, 1.0))[1]
        for own, other in ((few, many), (many, few))
    )
    assert lent_to_few == pytest.approx(lent_to_many)  # mutual information has no direction
    powers = np.linspace(0.0, 1.0, 101)
    best = [
        powers[borrowing_gains(*pair, precision, powers).argmax()]
        for pair in ((few, many), (many, few))
    ]
    assert best == pytest.approx([20 / 500, 1 / (5 * (0.25 - 1 / 500))], abs=0.02)
