"""Scores of co-association probabilities, by hand and by simulation."""

import numpy as np
import pytest

from bcfl.analysis.pairs import NAMES, association_scores, pair_reliability


def test_scores_of_three_clients():
    together = np.array([[1.0, 0.9, 0.2], [0.9, 1.0, 0.3], [0.2, 0.3, 1.0]])
    nll, brier, ece, auroc = association_scores(together, [0, 0, 1]).values()
    assert nll == pytest.approx(-(np.log(0.9) + np.log(0.8) + np.log(0.7)) / 3)
    assert brier == pytest.approx((0.1**2 + 0.2**2 + 0.3**2) / 3)
    assert ece == pytest.approx((0.1 + 0.2 + 0.3) / 3)
    assert auroc == 1


def test_pairs_of_unknown_groups_are_left_out():
    together = np.full((4, 4), 0.5)
    together[0, 1] = together[1, 0] = 0.9
    some = association_scores(together, [0, 0, None, None])
    assert some["association_nll"] == pytest.approx(-np.log(0.9))
    assert np.isnan(some["association_auroc"])
    assert all(np.isnan(value) for value in association_scores(together, [None] * 4).values())
    assert tuple(some) == NAMES


def drawn(seed, clients=30):
    """Memberships drawn from their own probabilities: calibrated pairs."""
    random = np.random.default_rng(seed)
    rows = random.dirichlet([0.4] * 3, size=clients)
    groups = [int(random.choice(3, p=row)) for row in rows]
    return rows @ rows.T, groups


def test_intervals_cover_the_diagonal_of_calibrated_pairs():
    bins = pair_reliability([drawn(seed) for seed in range(8)])
    assert bins.counts.sum() == 8 * 30 * 29 / 2
    assert (bins.low <= bins.observed).all()
    assert (bins.observed <= bins.high).all()
    inside = (bins.low <= bins.predicted) & (bins.predicted <= bins.high)
    assert np.average(inside, weights=bins.counts) > 0.7
    again = pair_reliability([drawn(seed) for seed in range(8)])
    np.testing.assert_array_equal(bins.low, again.low)


def test_certain_pairs_have_bins_at_the_ends():
    hard = np.eye(2)[[0, 0, 1, 1]]
    bins = pair_reliability([(hard @ hard.T, [0, 0, 1, 1])])
    assert bins.predicted.tolist() == bins.observed.tolist() == [0, 1]
    assert bins.counts.tolist() == [4, 2]


def test_plots_of_runs_show_pairs(run):
    axes = run.plot_association_reliability()
    groups = [run.groups[client] for client in run.clients]
    bins = pair_reliability([(run.co_association(), groups)])
    (line,) = (line for line in axes.lines if line.get_gid() == "pairs-run")
    assert line.get_ydata().tolist() == bins.observed.tolist()
    assert [text.get_text() for text in axes.texts] == [str(count) for count in bins.counts]
