import math

import pytest
import torch

from posteriors.evidence.sampling import importance_log_evidence, monte_carlo_log_evidence
from posteriors.gaussians.covariance import DiagonalCovariance, StructuredGaussian
from posteriors.gaussians.gaussian import DiagonalGaussian

PRIOR = DiagonalGaussian.isotropic(torch.zeros(3, dtype=torch.float64), 2.0)


def flat(vector):
    return torch.zeros(())


def generator(seed=0):
    return torch.Generator().manual_seed(seed)


def test_without_data_the_evidence_is_one():
    estimate = monte_carlo_log_evidence(flat, PRIOR, 10, generator())
    assert (estimate.log_evidence, estimate.standard_error) == (pytest.approx(0.0), 0.0)
    assert estimate.effective_draws == pytest.approx(10.0)


def test_known_parameters_of_a_proposal_stay_known():
    """Prior and proposal agree in the uncertain place; the others don't count."""
    covariance = DiagonalCovariance(torch.tensor([2.0]).double(), torch.tensor([1]))
    proposal = StructuredGaussian(torch.tensor([9.0, 0.0, -9.0]).double(), covariance)
    seen = []

    def remember(vector):
        seen.append(vector)
        return torch.zeros(())

    estimate = importance_log_evidence(remember, PRIOR, proposal, 4, generator())
    assert estimate.log_evidence == pytest.approx(0.0, abs=1e-12)
    assert {(float(v[0]), float(v[2])) for v in seen} == {(9.0, -9.0)}
    assert len({float(v[1]) for v in seen}) == 4


def test_impossible_data_have_no_evidence():
    estimate = monte_carlo_log_evidence(lambda v: torch.tensor(-math.inf), PRIOR, 5, generator())
    assert estimate.log_evidence == -math.inf
    assert estimate.effective_draws == 0


def test_draws_come_from_the_generator_alone():
    def quadratic(vector):
        return -vector.square().sum()

    values = [monte_carlo_log_evidence(quadratic, PRIOR, 5, generator(s)) for s in (1, 1, 2)]
    assert values[0] == values[1] != values[2]


@pytest.mark.parametrize(
    ("change", "message"),
    [
        ({"num_draws": 0}, "num_draws must be at least 1, got 0"),
        ({"temperature": 0.0}, "temperature must be positive and finite, got 0"),
        ({"temperature": math.inf}, "temperature must be positive and finite"),
        ({"prior": DiagonalGaussian.isotropic(torch.zeros(3), 0.0)}, "precision is zero"),
        ({"log_likelihood": lambda v: torch.tensor(math.nan)}, "not NaN at every draw"),
    ],
)
def test_bad_arguments_are_named(change, message):
    arguments = {"log_likelihood": flat, "prior": PRIOR, "num_draws": 3, "generator": generator()}
    with pytest.raises(ValueError, match=message):
        monte_carlo_log_evidence(**(arguments | change))
