import math

import numpy as np
import pytest
import torch
from scipy.integrate import quad
from scipy.special import log_expit

from posteriors.evidence.sigma_points import sharpest_directions, sigma_point_log_evidence
from posteriors.gaussians.gaussian import DiagonalGaussian

PRIOR = DiagonalGaussian(torch.tensor([0.5, -1.0]).double(), torch.tensor([4.0, 0.25]).double())
AXES = torch.eye(2, dtype=torch.float64)


def test_a_logistic_likelihood_is_integrated_to_a_hundredth_of_a_nat():
    signs = np.array([1, 1, 1, -1, 1, 1])

    def log_likelihood(vector):
        return torch.nn.functional.logsigmoid(torch.from_numpy(signs) * vector[1]).sum()

    def integrand(x):
        return np.exp(log_expit(signs * x).sum() - 0.125 * (x + 1) ** 2) / math.sqrt(8 * math.pi)

    expected = math.log(quad(integrand, -30, 30)[0])
    estimate = sigma_point_log_evidence(log_likelihood, PRIOR, AXES[1:])
    assert estimate.log_evidence == pytest.approx(expected, abs=0.01)
    both = sigma_point_log_evidence(log_likelihood, PRIOR, AXES)
    assert both.log_evidence == pytest.approx(expected, abs=0.01)


def test_upward_curvature_is_counted_and_spread_as_the_prior():
    estimate = sigma_point_log_evidence(lambda v: 0.1 * v[1].square(), PRIOR, AXES)
    assert estimate.num_floored == 1
    assert math.isfinite(estimate.log_evidence)


def test_without_data_the_evidence_is_one():
    estimate = sigma_point_log_evidence(lambda v: 0.0 * v.sum(), PRIOR, AXES)
    assert estimate.log_evidence == pytest.approx(0.0, abs=1e-12)
    assert estimate.num_floored == 0


def test_sharpest_directions_weigh_curvature_by_the_prior():
    directions = sharpest_directions(torch.tensor([4.0, 0.5]), PRIOR, 1)
    assert directions.tolist() == [[0.0, 1.0]]
    assert sharpest_directions(torch.tensor([9.0, 0.5]), PRIOR, 2).tolist() == [[1, 0], [0, 1]]


@pytest.mark.parametrize(
    ("directions", "temperature", "message"),
    [
        (2 * AXES, 1.0, "orthonormal"),
        (torch.ones(1, 3), 1.0, r"shape \(k, 2\) with at least one row, got \(1, 3\)"),
        (torch.ones(0, 2), 1.0, "at least one row"),
        (AXES, -1.0, "temperature must be positive"),
    ],
)
def test_bad_arguments_are_named(directions, temperature, message):
    with pytest.raises(ValueError, match=message):
        sigma_point_log_evidence(lambda v: v.sum(), PRIOR, directions, temperature)


def test_bad_choices_of_directions_are_named():
    with pytest.raises(ValueError, match="count must be between 1 and 2, got 3"):
        sharpest_directions(torch.ones(2), PRIOR, 3)
    with pytest.raises(ValueError, match=r"curvature must have the prior's shape \(2,\)"):
        sharpest_directions(torch.ones(3), PRIOR, 1)
