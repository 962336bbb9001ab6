"""Scores against scikit-learn, plain restatements and values worked out by hand."""

import math
import warnings

import numpy as np
import pytest
from sklearn.metrics import accuracy_score, f1_score, log_loss

from bcfl.analysis import metrics
from bcfl.protocol.statistics.predictions import PredictionSums

CLASSES = 5


def draw_client(random, samples, classes=CLASSES):
    probabilities = random.dirichlet(np.full(classes, 0.3), size=samples)
    targets = random.integers(0, classes, size=samples)
    easy = random.random(samples) < 0.6
    return probabilities, np.where(easy, probabilities.argmax(axis=1), targets)


@pytest.fixture(scope="module")
def predictions():
    random = np.random.default_rng(7)
    drawn = {f"client-{j}": draw_client(random, samples) for j, samples in enumerate([40, 1, 7, 3])}
    one_class = random.dirichlet(np.ones(CLASSES), size=6)
    return drawn | {"client-9": (one_class, np.full(6, 2))}


@pytest.fixture(scope="module")
def sums(predictions):
    return {client: PredictionSums.of(p, y) for client, (p, y) in predictions.items()}


@pytest.fixture(scope="module")
def pooled(predictions):
    return tuple(np.concatenate(parts) for parts in zip(*predictions.values(), strict=True))


def ece_by_loops(probabilities, targets, bins=15):
    total = 0.0
    for number in range(bins):
        low, high = number / bins, (number + 1) / bins
        inside = [
            (max(p), float(np.argmax(p) == y))
            for p, y in zip(probabilities, targets, strict=True)
            if low < max(p) <= high
        ]
        if inside:
            confidence, correct = np.mean(inside, axis=0)
            total += len(inside) / len(targets) * abs(confidence - correct)
    return total


def test_accuracy_is_that_of_all_samples(sums, pooled):
    probabilities, targets = pooled
    expected = accuracy_score(targets, probabilities.argmax(axis=1))
    assert metrics.micro_accuracy(sums) == pytest.approx(expected, abs=1e-12)


def test_macro_f1_is_the_mean_of_the_clients(sums, predictions):
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        scores = [
            f1_score(targets, probabilities.argmax(axis=1), average="macro")
            for probabilities, targets in predictions.values()
        ]
    assert metrics.macro_f1_per_client(sums) == pytest.approx(np.mean(scores), abs=1e-12)


def test_macro_f1_by_hand():
    # True 0 0 1, predicted 0 1 1: F1 is 2/3 for both classes. The third class occurs nowhere.
    sums = PredictionSums.of(np.eye(3)[[0, 1, 1]], np.array([0, 0, 1]))
    assert metrics.macro_f1_per_client({"a": sums}) == pytest.approx(2 / 3)
    # True 0 0, predicted 0 2: 2/3 for the first class, 0 for the class that is only predicted.
    other = PredictionSums.of(np.eye(3)[[0, 2]], np.array([0, 0]))
    assert metrics.macro_f1_per_client({"a": sums, "b": other}) == pytest.approx(
        (2 / 3 + 1 / 3) / 2
    )
    by_samples = metrics.macro_f1_per_client({"a": sums, "b": other}, {"a": 10, "b": 30, "c": 5})
    assert by_samples == pytest.approx((10 * 2 / 3 + 30 * 1 / 3) / 40)
    assert metrics.macro_f1_per_client({"a": sums, "b": other}, {"b": 30}) == pytest.approx(1 / 3)
    assert np.isnan(metrics.macro_f1_per_client({"a": sums}, {}))


def test_nll_and_brier(sums, pooled):
    probabilities, targets = pooled
    assert metrics.nll(sums) == pytest.approx(
        log_loss(targets, probabilities, labels=range(CLASSES)), rel=1e-9
    )
    distances = [
        sum((p[c] - (c == y)) ** 2 for c in range(CLASSES))
        for p, y in zip(probabilities, targets, strict=True)
    ]
    assert metrics.brier(sums) == pytest.approx(np.mean(distances), rel=1e-12)


def test_scores_of_sure_and_of_ignorant_predictions():
    right = metrics.summarise({"a": PredictionSums.of(np.eye(4), np.arange(4))})
    assert right == {"accuracy": 1, "macro_f1": 1, "nll": 0, "ece": 0, "brier": 0}
    wrong = metrics.summarise({"a": PredictionSums.of(np.eye(4), np.array([1, 2, 3, 0]))})
    assert (wrong["accuracy"], wrong["macro_f1"], wrong["ece"], wrong["brier"]) == (0, 0, 1, 2)
    assert math.isfinite(wrong["nll"])
    flat = metrics.summarise({"a": PredictionSums.of(np.full((8, 4), 0.25), np.arange(8) % 4)})
    assert flat["nll"] == pytest.approx(math.log(4))
    assert flat["ece"] == pytest.approx(0)
    assert flat["brier"] == pytest.approx(0.75)


def test_ece_agrees_with_loops_over_bins(sums, pooled):
    assert metrics.ece(sums) == pytest.approx(ece_by_loops(*pooled), abs=1e-12)


def test_ece_has_no_bin_of_its_own_for_full_confidence():
    # Confidences .95 and 1, the first right, the second wrong: |1.95 - 1| / 2 in their common bin.
    probabilities = np.array([[0.95, 0.05], [1.0, 0.0]])
    sums = PredictionSums.of(probabilities, np.array([0, 1]))
    assert metrics.ece({"a": sums}) == pytest.approx(0.475, abs=1e-12)
    assert ece_by_loops(probabilities, [0, 1], bins=10) == pytest.approx(0.475)


def test_ece_by_hand():
    # Bins are 1/15 wide. .61, .64, .66 share (.6, .667], one of three right; .70 and .95 are alone.
    confidence = np.array([0.61, 0.64, 0.66, 0.70, 0.95])
    probabilities = np.stack([confidence, 1 - confidence], axis=1)
    sums = PredictionSums.of(probabilities, np.array([0, 1, 1, 0, 1]))
    by_hand = (abs(1.91 - 1) + abs(0.70 - 1) + 0.95) / 5
    assert metrics.ece({"a": sums}) == pytest.approx(by_hand, abs=1e-12)


@pytest.mark.parametrize("edge", range(8, 16))
def test_a_confidence_on_an_edge_belongs_to_the_bin_below(edge):
    confidence = edge / 15
    sums = PredictionSums.of(np.array([[confidence, 1 - confidence]]), np.array([0]))
    assert np.flatnonzero(sums.bin_counts).tolist() == [edge - 1]


def test_ece_pools_clients_before_it_bins():
    confident = np.array([[0.8, 0.2]])
    right, wrong = (PredictionSums.of(confident, np.array([label])) for label in (0, 1))
    assert metrics.ece({"a": right}) == pytest.approx(0.2)
    assert metrics.ece({"a": right, "b": wrong}) == pytest.approx(0.3)


def test_summary_does_not_depend_on_the_order_of_clients(sums):
    assert metrics.summarise(dict(reversed(sums.items()))) == metrics.summarise(sums)
    assert list(metrics.summarise(sums)) == ["accuracy", "macro_f1", "nll", "ece", "brier"]


def test_without_test_data_scores_are_nan():
    empty = PredictionSums.of(np.zeros((0, 3)), np.zeros(0, dtype=np.int64))
    for per_client in ({}, {"a": empty}):
        scores = metrics.summarise(per_client)
        assert len(scores) == 5
        assert all(math.isnan(score) for score in scores.values())


def test_a_client_without_samples_counts_for_nothing(sums):
    empty = PredictionSums.of(np.zeros((0, CLASSES)), np.zeros(0, dtype=np.int64))
    assert metrics.summarise(sums | {"none": empty}) == metrics.summarise(sums)


TRUTH = [0, 0, 1, 1, 2, 2]


@pytest.mark.parametrize(
    ("labels", "ari", "ami"),
    [
        ([0, 0, 1, 1, 2, 2], 1, 1),
        ([5, 5, 0, 0, 3, 3], 1, 1),
        ([0, 0, 1, 1, 1, 2], 0.444444, 0.502361),
        ([0, 0, 0, 0, 0, 0], 0, 0),
        ([0, 1, 2, 3, 4, 5], 0, 0),
        ([0, 3, 1, 1, 2, 2], 0.761905, 0.761905),
    ],
)
def test_ari_and_ami_of_known_clusterings(labels, ari, ami):
    assert metrics.ari(TRUTH, labels) == pytest.approx(ari, abs=2e-6)
    assert metrics.ami(TRUTH, labels) == pytest.approx(ami, abs=2e-6)


@pytest.mark.parametrize(
    ("labels", "homogeneity", "completeness"),
    [
        ([5, 5, 0, 0, 3, 3], 1, 1),
        ([0, 0, 1, 1, 1, 2], 0.710310, 0.771556),
        ([0, 0, 0, 0, 0, 0], 0, 1),
        ([0, 1, 2, 3, 4, 5], 1, 0.613147),
        ([0, 3, 1, 1, 2, 2], 1, 0.826235),
        ([-1, -1, 1, 1, 2, 2], 1, 0.826235),
    ],
)
def test_homogeneity_and_completeness_of_known_clusterings(labels, homogeneity, completeness):
    assert metrics.homogeneity(TRUTH, labels) == pytest.approx(homogeneity, abs=2e-6)
    assert metrics.completeness(TRUTH, labels) == pytest.approx(completeness, abs=2e-6)


def test_clients_that_no_cluster_serves_are_clusters_of_their_own():
    assert metrics.ari(TRUTH, [-1, -1, 1, 1, 2, 2]) == metrics.ari(TRUTH, [0, 3, 1, 1, 2, 2])
    assert metrics.ami(TRUTH, [-1, -1, 1, 1, 2, 2]) == metrics.ami(TRUTH, [0, 3, 1, 1, 2, 2])
    assert metrics.ari(TRUTH, [-1] * 6) == pytest.approx(0)
    labels = np.array([-1, 0, 1, 1, 2, 2])
    metrics.ari(TRUTH, labels)
    assert labels.tolist() == [-1, 0, 1, 1, 2, 2]


def test_many_clients_in_clusters_of_one_give_no_warning():
    assert metrics.ari(np.repeat(range(4), 10), range(40)) == pytest.approx(0)
    assert metrics.ami(np.repeat(range(4), 10), range(40)) == pytest.approx(0, abs=1e-9)


@pytest.mark.parametrize("labels", [[0, 1], [[0] * 6], []])
def test_clusterings_of_other_clients_are_refused(labels):
    with pytest.raises(ValueError, match=r"true_groups and labels must be \(clients,\) both"):
        metrics.ari(TRUTH, labels)
