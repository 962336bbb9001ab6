import numpy as np
import pytest
import torch
from sklearn.metrics import brier_score_loss, confusion_matrix, log_loss

from bcfl.protocol.statistics.predictions import Predictions, PredictionSums


@pytest.fixture
def predicted():
    random = np.random.default_rng(0)
    probabilities = random.dirichlet(np.full(4, 0.5), size=200)
    return probabilities, random.integers(0, 4, size=200)


def test_sums_agree_with_scikit_learn(predicted):
    probabilities, targets = predicted
    sums = PredictionSums.of(probabilities, targets)
    assert sums.confusion.tolist() == confusion_matrix(targets, probabilities.argmax(1)).tolist()
    assert sums.nll == pytest.approx(log_loss(targets, probabilities, normalize=False))
    brier = brier_score_loss(targets, probabilities, labels=range(4), scale_by_half=False)
    assert sums.brier / 200 == pytest.approx(brier)
    assert sums.num_samples == 200


def test_bins_are_open_below_and_closed_above():
    probabilities = np.array([[1 / 3, 2 / 3], [0.4, 0.6], [0.0, 1.0], [0.5, 0.5]])
    sums = PredictionSums.of(probabilities, np.array([1, 0, 1, 0]))
    filled = {int(b): int(sums.bin_counts[b]) for b in np.flatnonzero(sums.bin_counts)}
    assert filled == {7: 1, 8: 1, 9: 1, 14: 1}  # (7/15, 8/15], (8/15, 9/15], (9/15, 10/15], top
    assert sums.bin_correct[[7, 8, 9, 14]].tolist() == [1, 0, 1, 1]
    assert sums.bin_confidence[[7, 8, 9, 14]].tolist() == pytest.approx([0.5, 0.6, 2 / 3, 1])


def test_parts_add_up_to_the_whole(predicted):
    probabilities, targets = predicted
    parts = [PredictionSums.of(probabilities[i::3], targets[i::3]) for i in range(3)]
    total, whole = PredictionSums.total(parts), PredictionSums.of(probabilities, targets)
    for name in ("confusion", "nll", "brier", "bin_counts", "bin_confidence", "bin_correct"):
        np.testing.assert_allclose(getattr(total, name), getattr(whole, name))


def test_an_impossible_truth_costs_much_but_not_infinitely():
    sums = PredictionSums.of(np.array([[1.0, 0.0]]), np.array([1]))
    assert sums.nll == pytest.approx(-np.log(np.finfo(float).tiny))
    assert sums.brier == pytest.approx(2)


def test_nothing_to_sum_is_an_error():
    with pytest.raises(ValueError, match="at least one client's sums, got none"):
        PredictionSums.total([])


@pytest.mark.parametrize("pooling", ["probabilities", "logits"])
def test_losses_of_probabilities_that_round_to_zero_come_from_their_logs(pooling):
    logits = [np.array([[0.0, 3000.0], [1.0, 0.0]]), np.array([[0.0, 5000.0], [1.0, 0.0]])]
    sums = Predictions((0.25, 0.75), pooling).combined(logits, torch.tensor([0, 0]), 2)
    sure = np.log1p(np.exp(-1.0))
    expected = 3000.0 - np.log(0.25) if pooling == "probabilities" else 4500.0
    assert sums.nll == pytest.approx(expected + sure, rel=1e-12)
