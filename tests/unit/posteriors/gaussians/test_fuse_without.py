"""Leaving factors out of a fusion gives what fusing the others gives."""

from typing import get_args

import pytest
import torch

from posteriors import DiagonalGaussian, fuse, fuse_without
from posteriors.gaussians.fusion import FusionRule
from posteriors.gaussians.local_posterior import LocalPosterior

RULES = get_args(FusionRule)


def random_problem(count=5, size=7, dtype=torch.float64):
    random = torch.Generator().manual_seed(3)

    def draw(*shape):
        return torch.rand(*shape, generator=random, dtype=dtype)

    prior = DiagonalGaussian(draw(size) - 0.5, 0.5 + draw(size))
    local = [
        LocalPosterior(
            mean=draw(size) - 0.5,
            curvature=20 * draw(size),
            used=DiagonalGaussian(draw(size), 0.1 + draw(size)),
            num_samples=3 + i,
            weight=0.0 if i == 3 else 0.5 + i,
        )
        for i in range(count)
    ]
    return prior, local


@pytest.mark.parametrize("rule", RULES)
@pytest.mark.parametrize("left_out", [(), (0,), (1, 4), (3,), (0, 1, 2)])
def test_the_rest_is_fused(rule, left_out):
    prior, local = random_problem()
    (measured,) = fuse_without(rule, prior, local, [left_out])
    rest = [one for index, one in enumerate(local) if index not in left_out]
    right = fuse(rule, prior, rest).posterior
    torch.testing.assert_close(measured.mean, right.mean, rtol=1e-11, atol=1e-12)
    torch.testing.assert_close(measured.precision, right.precision, rtol=1e-11, atol=1e-12)


@pytest.mark.parametrize("rule", RULES)
def test_float32_is_as_exact_as_fusing_the_rest(rule):
    prior, local = random_problem(dtype=torch.float32)
    for index in range(len(local)):
        (measured,) = fuse_without(rule, prior, local, [(index,)])
        right = fuse(rule, prior, local[:index] + local[index + 1 :]).posterior
        torch.testing.assert_close(measured.mean, right.mean, rtol=1e-6, atol=1e-7)


@pytest.mark.parametrize("rule", RULES)
def test_nothing_left_is_the_prior(rule):
    prior, local = random_problem(count=2)
    measured = fuse_without(rule, prior, local, [(0, 1), (1,)])
    assert measured[0] is prior
    assert measured[1] is not prior


def test_shapes_must_agree():
    prior, local = random_problem()
    wrong = DiagonalGaussian(torch.zeros(2, dtype=torch.float64), torch.ones(2).double())
    with pytest.raises(ValueError, match="local means must have the prior's shape"):
        fuse_without("exact", wrong, local, [(0,)])
    with pytest.raises(ValueError, match="rule must be one of"):
        fuse_without("mean", prior, local, [(0,)])
