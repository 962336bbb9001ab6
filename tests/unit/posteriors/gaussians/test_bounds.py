import math

import pytest
import torch

from posteriors.gaussians.bounds import bound_precision
from posteriors.gaussians.gaussian import DiagonalGaussian


def test_precisions_outside_are_clamped_and_counted():
    mean = torch.tensor([1.0, 2.0, 3.0, 4.0])
    bounded = bound_precision(
        DiagonalGaussian(mean, torch.tensor([0.0, 0.5, 3.0, 1e9])), 1e-2, 100.0
    )
    assert bounded.posterior.precision.tolist() == pytest.approx([1e-2, 0.5, 3.0, 100.0])
    assert bounded.posterior.mean is mean
    assert (bounded.num_floored, bounded.num_capped) == (1, 1)


def test_a_shared_precision_counts_for_all_its_parameters():
    bounded = bound_precision(DiagonalGaussian.isotropic(torch.zeros(2, 5), 7.0), highest=2.0)
    assert bounded.posterior.precision.shape == ()
    assert (bounded.num_floored, bounded.num_capped) == (0, 10)


def test_nothing_to_do_returns_the_same_object():
    posterior = DiagonalGaussian(torch.zeros(2), torch.tensor([0.0, 5.0]))
    assert bound_precision(posterior).posterior is posterior
    assert bound_precision(posterior, highest=5.0).posterior is posterior


@pytest.mark.parametrize(
    ("lowest", "highest"), [(-1.0, 2.0), (3.0, 2.0), (0.0, 0.0), (math.nan, 1.0), (math.inf,) * 2]
)
def test_bad_bounds_are_named(lowest, highest):
    posterior = DiagonalGaussian(torch.zeros(1), torch.ones(1))
    with pytest.raises(ValueError, match="lowest and highest must be"):
        bound_precision(posterior, lowest, highest)
