import math

import numpy as np
import pytest
import torch

from posteriors.evidence.closed_form import log_association_weight, quadratic_log_evidence

LOSSES = 300 * np.array([[0.35, 0.42, 2.1]])


def softmax(logs):
    return np.exp(logs - np.logaddexp.reduce(logs, axis=-1))


def test_weights_of_300_samples_at_temperature_one():
    weights = softmax(log_association_weight(LOSSES, [300], 1))[0]
    assert weights[0] == pytest.approx(0.9999999992, abs=1e-10)
    assert weights[1] == pytest.approx(7.58e-10, rel=1e-3)
    assert weights[2] == pytest.approx(9.9e-229, rel=1e-2)


def test_weights_at_temperature_21():
    weights = softmax(log_association_weight(LOSSES, [300], 21.0))[0]
    assert weights[:2] == pytest.approx([0.73105858, 0.26894142], abs=1e-8)
    assert weights[2] == pytest.approx(1.0e-11, rel=2e-2)


def test_weights_of_the_mean_loss():
    weights = softmax(log_association_weight(LOSSES, [300], "mean"))[0]
    assert weights == pytest.approx([0.47480, 0.44270, 0.08251], abs=1e-5)


def test_large_sums_keep_small_differences():
    losses = torch.tensor([[1e5, 1e5 + 0.003]], dtype=torch.float64)
    logs = log_association_weight(losses, torch.tensor([40_000]), 1)
    assert logs.dtype == np.float64
    assert logs[0, 0] - logs[0, 1] == pytest.approx(0.003, rel=1e-6)


def test_counts_belong_to_rows():
    losses = np.array([[2.0, 4.0], [30.0, 60.0]])
    expected = [[-1.0, -2.0], [-3.0, -6.0]]
    assert log_association_weight(losses, [2, 10], "mean").tolist() == expected
    assert log_association_weight(losses, [[2], [10]], "mean").tolist() == expected
    assert log_association_weight(losses[0], 2, "mean").tolist() == expected[0]


def test_an_impossible_model_gets_log_weight_minus_infinity():
    assert log_association_weight([1.0, math.inf], 3, "mean")[1] == -math.inf


@pytest.mark.parametrize(
    ("losses", "counts", "temperature", "message"),
    [
        ([[1.0, math.nan]], [3], 1, "losses_sum must hold numbers"),
        ([[1.0, -math.inf]], [3], 1, "losses_sum must hold numbers"),
        ([[1.0, 2.0]], [0], "mean", "num_samples must be positive, smallest is 0"),
        ([[1.0, 2.0]], [3, 4], "mean", "num_samples must be one number or one per leading index"),
        ([[1.0], [2.0]], [[3, 3]], "mean", "num_samples must be one number"),
        ([[1.0, 2.0]], [3], 0, "temperature must be .* a positive, finite number, got 0"),
        ([[1.0, 2.0]], [3], -2.0, "temperature must be .* a positive, finite number, got -2"),
        ([[1.0, 2.0]], [3], math.inf, "temperature must be .* a positive, .* got inf"),
        (
            [[1.0, 2.0]],
            [3],
            "average",
            "'mean' or a positive, .* got 'average'",
        ),
    ],
)
def test_bad_weights_are_named(losses, counts, temperature, message):
    with pytest.raises(ValueError, match=message):
        log_association_weight(losses, counts, temperature)


def gaussian_log_likelihood(data, mean):
    return -0.5 * sum((x - mean) ** 2 for x in data) - len(data) / 2 * math.log(2 * math.pi)


@pytest.mark.parametrize("temperature", ["mean", 1])
def test_weight_and_evidence_are_different_numbers(temperature):
    data = [1.0, 2.0, 0.0]
    log_likelihood = gaussian_log_likelihood(data, 0.0)
    weight = log_association_weight([-log_likelihood], 3, temperature)[0]
    evidence = quadratic_log_evidence(log_likelihood, [3.0], [3.0], [2.0])
    assert float(evidence) == pytest.approx(-4.8149609656, abs=1e-9)
    assert weight != pytest.approx(float(evidence), abs=0.1)


def test_expected_log_likelihood_is_not_the_evidence():
    """Averaged over the posterior (precision 5, mean .6) it is another, larger deviation."""
    data, mean, variance = [1.0, 2.0, 0.0], 0.0, 0.5
    expected = gaussian_log_likelihood(data, mean) - 0.5 * len(data) * variance
    assert expected == pytest.approx(-6.0068155996, abs=1e-9)
    evidence = quadratic_log_evidence(gaussian_log_likelihood(data, 0.0), [3.0], [3.0], [2.0])
    assert abs(float(evidence) - expected) > 1


def test_evidence_takes_batches_and_tensors():
    log_likelihood = torch.tensor([-5.0, -7.0])
    gradient = torch.tensor([[1.0, 2.0], [0.5, -1.0]])
    curvature = torch.tensor([[3.0, 0.0], [1.0, 4.0]])
    together = quadratic_log_evidence(log_likelihood, gradient, curvature, 2.0)
    single = [
        quadratic_log_evidence(log_likelihood[i], gradient[i], curvature[i], [2.0, 2.0])
        for i in range(2)
    ]
    assert together.shape == (2,)
    assert together.dtype == np.float64
    assert together == pytest.approx(np.array(single), abs=1e-12)


def test_without_data_the_evidence_is_the_likelihood():
    assert float(quadratic_log_evidence(0.0, [0.0, 0.0], 0.0, 1.0)) == 0.0


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        ((math.nan, [1.0], [1.0], 1.0), "log_likelihood must be finite"),
        ((0.0, [math.inf], [1.0], 1.0), "gradient must be finite"),
        ((0.0, 1.0, [1.0], 1.0), "gradient must have shape"),
        ((0.0, [1.0], [-1.0], 1.0), "curvature must be at least 0, smallest is -1"),
        ((0.0, [1.0], [1.0], 0.0), "prior_precision must be positive, smallest is 0"),
        ((0.0, [1.0, 2.0], [1.0, 2.0, 3.0], 1.0), "broadcast"),
    ],
)
def test_bad_evidence_is_named(arguments, message):
    with pytest.raises(ValueError, match=message):
        quadratic_log_evidence(*arguments)
