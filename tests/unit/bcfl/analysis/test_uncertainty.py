"""Against scikit-learn, the definitions in loops, and values worked out by hand."""

import math

import numpy as np
import pytest
from sklearn.metrics import accuracy_score, average_precision_score, log_loss, roc_auc_score

from bcfl.analysis import metrics, uncertainty
from bcfl.analysis.selection import Selection, detection
from bcfl.protocol.statistics.predictions import PredictionSums

CLASSES = 4


@pytest.fixture(scope="module")
def predictions():
    random = np.random.default_rng(3)
    probabilities = random.dirichlet(np.full(CLASSES, 0.4), size=157)
    targets = random.integers(0, CLASSES, size=157)
    easy = random.random(157) < 0.7
    return probabilities, np.where(easy, probabilities.argmax(axis=1), targets)


def binary(confidence, correct):
    """Two classes; the first is predicted with a confidence above a half, and right or not."""
    p = np.asarray(confidence, dtype=float)
    return np.column_stack([p, 1 - p]), 1 - np.asarray(correct, dtype=np.int64)


def selection_of(predictions):
    return Selection.by(predictions[0].max(1), uncertainty.wrong_classes(*predictions))


def test_full_confidence_falls_into_the_last_bin():
    found = uncertainty.reliability(*binary([0.95, 1.0], [1, 0]), bins=10)
    assert found.expected_error == pytest.approx(0.475, abs=1e-12)
    assert found.largest_error == pytest.approx(0.475, abs=1e-12)
    assert found.counts.tolist() == [2]


def test_edges_of_bins_belong_below():
    found = uncertainty.reliability(*binary([0.6, 0.7, 0.61], [1, 0, 1]), bins=10)
    assert found.counts.tolist() == [1, 2]


def test_calibration_errors_by_hand():
    arrays = binary([0.55, 0.58, 0.9, 0.95, 0.85, 0.88], [1, 0, 1, 1, 0, 1])
    gaps = [abs(0.565 - 0.5), abs((0.9 + 0.85 + 0.88) / 3 - 2 / 3), abs(0.95 - 1)]
    found = uncertainty.reliability(*arrays, bins=10)
    assert found.expected_error == pytest.approx(np.dot(gaps, [2, 3, 1]) / 6)
    assert found.largest_error == pytest.approx(max(gaps))
    adaptive = uncertainty.adaptive_reliability(*arrays, bins=3)
    gaps = [abs(0.565 - 0.5), abs(0.865 - 0.5), abs(0.925 - 1)]
    assert adaptive.counts.tolist() == [2, 2, 2]
    assert adaptive.expected_error == pytest.approx(np.mean(gaps))


def test_sums_of_clients_give_the_same_numbers(predictions):
    one = {"all": PredictionSums.of(*predictions)}
    found = uncertainty.summarise(*predictions)
    for name in ("accuracy", "nll", "brier", "ece"):
        assert found[name] == pytest.approx(metrics.summarise(one)[name], abs=1e-12)


def test_accuracy_and_log_loss_are_scikit_learns(predictions):
    probabilities, targets = predictions
    found = uncertainty.summarise(*predictions)
    assert found["accuracy"] == pytest.approx(accuracy_score(targets, probabilities.argmax(1)))
    expected = log_loss(targets, probabilities, labels=range(CLASSES))
    assert found["nll"] == pytest.approx(expected, rel=1e-9)


def test_risk_and_coverage_by_loops(predictions):
    probabilities, targets = predictions
    confidence = probabilities.max(1)
    wrong = (probabilities.argmax(1) != targets)[np.argsort(-confidence)]
    risks = [wrong[: k + 1].mean() for k in range(len(wrong))]
    selected = selection_of(predictions)
    assert selected.area == pytest.approx(np.mean(risks))
    low = [k + 1 for k, risk in enumerate(risks) if risk <= 0.05]
    assert selected.coverage_at() == pytest.approx(max(low) / 157)
    assert selected.risk_at() == pytest.approx(wrong[:126].mean())


def test_risk_and_coverage_by_hand():
    selected = selection_of(binary([0.9, 0.8, 0.7, 0.6], [1, 1, 0, 1]))
    assert selected.area == pytest.approx((0 + 0 + 1 / 3 + 1 / 4) / 4)
    assert selected.coverage_at() == 0.5
    assert selected.coverage_at(0.25) == 1.0
    assert selected.risk_at(0.75) == pytest.approx(1 / 3)
    assert selection_of(binary([0.9, 0.8], [0, 1])).coverage_at() == 0.0


def test_equally_confident_samples_have_no_order():
    every = [
        selection_of(binary([0.9, 0.8, 0.8, 0.8, 0.6], correct))
        for correct in ([1, 0, 1, 1, 0], [1, 1, 1, 0, 0])
    ]
    for found in every:
        expected = [0, (1 / 3) / 2, (2 / 3) / 3, 1 / 4, 2 / 5]
        np.testing.assert_allclose(found.risks, expected)
        assert found.reachable.tolist() == [True, False, False, True, True]
    one_level = selection_of(binary([0.8] * 20, [1] * 19 + [0]))
    assert one_level.coverage_at() == 1.0
    assert one_level.coverage_at(0.04) == 0.0


def test_detection_is_scikit_learns(predictions):
    probabilities, targets = predictions
    wrong = probabilities.argmax(1) != targets
    score = 1 - probabilities.max(1)
    found = detection(score, wrong)
    scores = uncertainty.summarise(*predictions)
    assert scores["wrong_auroc"] == found.auroc == pytest.approx(roc_auc_score(wrong, score))
    assert found.aupr == pytest.approx(average_precision_score(wrong, score))
    pairs = (score[wrong][:, None] > score[~wrong]) + 0.5 * (score[wrong][:, None] == score[~wrong])
    assert found.auroc == pytest.approx(pairs.mean())


def test_false_alarms_where_95_percent_are_found():
    wanted = np.array([True] * 20 + [False] * 10)
    score = np.concatenate([np.arange(20.0), [-1, 0.5, 0.7, 1.5, 2.5, 25, 26, 27, 28, 29]])
    assert detection(score, wanted).fpr95 == pytest.approx(0.7)


def test_without_samples_nothing_is_known():
    found = uncertainty.summarise(np.zeros((0, 3)), np.zeros(0, dtype=np.int64))
    assert all(math.isnan(value) for value in found.values())
    perfect = uncertainty.summarise(*binary([0.9, 0.8], [1, 1]))
    assert math.isnan(perfect["wrong_auroc"])
    assert perfect["coverage_at_5_risk"] == 1.0


def test_shapes_that_do_not_fit_are_refused():
    with pytest.raises(ValueError, match=r"got \(2, 2\) and \(3,\)"):
        uncertainty.summarise(np.full((2, 2), 0.5), np.zeros(3, dtype=np.int64))
