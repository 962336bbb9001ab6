import numpy as np
import pytest

import assignment


def by_hand(scores, seed, draws):
    """Average of exponentiated weighted sums over Dirichlet draws, one at a time."""
    models, units = scores.shape
    total = np.zeros(models)
    for share in np.random.default_rng(seed).dirichlet(np.ones(units), size=draws):
        sums = [units * sum(w * s for w, s in zip(share, row, strict=True)) for row in scores]
        weights = np.exp(np.array(sums) - max(sums))
        total += weights / weights.sum()
    return total / draws


def test_weights_are_averages_over_the_bootstrap():
    scores = np.random.default_rng(0).normal(size=(3, 6))
    measured = assignment.pseudo_bma_weights(scores, np.random.default_rng(5), draws=40)
    np.testing.assert_allclose(measured, by_hand(scores, 5, 40), rtol=1e-12)
    assert measured.sum() == pytest.approx(1)


def test_a_constant_on_a_unit_says_nothing():
    scores = np.random.default_rng(1).normal(size=(4, 5))
    shifted = scores + 2.0 ** np.array([0, 3, 10, 20, -2])
    first, second = (
        assignment.pseudo_bma_weights(s, np.random.default_rng(2)) for s in (scores, shifted)
    )
    np.testing.assert_allclose(first, second, rtol=1e-6)


def test_luck_of_one_unit_takes_less_than_all():
    scores = np.zeros((2, 20))
    scores[0, 0] = 8.0
    weights = assignment.pseudo_bma_weights(scores, np.random.default_rng(0))
    plain = 1 / (1 + np.exp(-8.0))
    assert 0.5 < weights[0] < 0.98 < plain


def test_equal_models_share_equally():
    weights = assignment.pseudo_bma_weights(np.ones((3, 4)), np.random.default_rng(0))
    np.testing.assert_allclose(weights, 1 / 3)


@pytest.mark.parametrize("bad", [np.ones(3), np.ones((0, 3)), np.full((2, 2), np.nan)])
def test_bad_scores_are_refused(bad):
    with pytest.raises(ValueError, match="log_scores must be finite and of shape"):
        assignment.pseudo_bma_weights(bad, np.random.default_rng(0))
