import math

import numpy as np
import pytest
import torch

from posteriors.gaussians.gaussian import DiagonalGaussian
from posteriors.gaussians.merge import merge, merge_by


def gaussian(mean, precision, dtype=torch.float64):
    return DiagonalGaussian(
        torch.tensor([mean], dtype=dtype), torch.tensor([precision], dtype=dtype)
    )


def test_moments_of_a_mixture_of_two():
    merged = merge([gaussian(-1.0, 2.0), gaussian(1.0, 4.0)], np.log([0.25, 0.75]))
    assert float(merged.mean) == pytest.approx(0.5, abs=1e-12)
    assert float(merged.variance) == pytest.approx(1.0625, abs=1e-12)
    assert float(merged.precision) - 2 == pytest.approx(-1.0588, abs=1e-4)


@pytest.mark.parametrize(
    ("rule", "mean", "precision"),
    [
        ("moment_matched", 0.5, 1 / 1.0625),
        ("reverse_kl", (0.5 * -1 + 3.0 * 1) / 3.5, 3.5),
        ("wasserstein", 0.5, (0.25 * 0.5**0.5 + 0.75 * 0.5) ** -2),
    ],
)
def test_rules_by_hand(rule, mean, precision):
    components = [gaussian(-1.0, 2.0), gaussian(1.0, 4.0)]
    merged = merge_by(rule, components, np.log([0.25, 0.75]) - 3.0)
    assert float(merged.mean) == pytest.approx(mean, abs=1e-12)
    assert float(merged.precision) == pytest.approx(precision, abs=1e-12)


def test_spread_of_near_means_survives_float32():
    components = [gaussian(1000.0, 1e4, torch.float32), gaussian(1000.1, 1e4, torch.float32)]
    merged = merge(components, [0.0, 0.0])
    assert merged.mean.dtype == torch.float32
    assert float(merged.variance) == pytest.approx(0.0026, rel=1e-3)


def test_moments_agree_with_samples_free_expectations_in_many_dimensions():
    generator = torch.Generator().manual_seed(1)
    means = torch.randn(4, 6, generator=generator, dtype=torch.float64)
    variances = torch.rand(4, 6, generator=generator, dtype=torch.float64) + 0.1
    weights = torch.tensor([0.1, 0.2, 0.3, 0.4], dtype=torch.float64)[:, None]
    merged = merge(
        [DiagonalGaussian(m, 1 / v) for m, v in zip(means, variances, strict=True)],
        weights.log().flatten() + 500.0,
    )
    first = (weights * means).sum(0)
    second = (weights * (variances + means**2)).sum(0)
    torch.testing.assert_close(merged.mean, first)
    torch.testing.assert_close(merged.variance, second - first**2)


@pytest.mark.parametrize("rule", ["moment_matched", "reverse_kl", "wasserstein"])
def test_one_component_is_returned_itself(rule):
    one, other = gaussian(1.0, 0.0), gaussian(2.0, 3.0)
    assert merge_by(rule, [one], [-5.0]) is one
    assert merge_by(rule, [one, one, one], [0.0, -1.0, -2.0]) is one
    assert merge_by(rule, [one, other], [-math.inf, 0.0]) is other


@pytest.mark.parametrize("rule", ["moment_matched", "reverse_kl", "wasserstein"])
def test_equal_components_merge_into_their_like_in_their_dtype(rule):
    merged = merge_by(rule, [gaussian(1.5, 4.0, torch.float32) for _ in range(3)], [0.0, 1.0, 2.0])
    assert merged.precision.dtype == torch.float32
    assert float(merged.mean) == pytest.approx(1.5)
    assert float(merged.precision) == pytest.approx(4.0)


def test_an_unknown_rule_is_named():
    with pytest.raises(ValueError, match="rule must be one of moment_matched, reverse_kl, wass"):
        merge_by("average", [gaussian(0.0, 1.0)], [0.0])


def test_a_repeated_component_counts_with_its_summed_weight():
    one, other = gaussian(0.0, 1.0), gaussian(4.0, 1.0)
    assert float(merge([one, other, one], np.log([1, 2, 1])).mean) == pytest.approx(2.0)


def test_isotropic_components_give_a_full_spread():
    components = [
        DiagonalGaussian.isotropic(torch.tensor([0.0, 0.0]), 1.0),
        DiagonalGaussian.isotropic(torch.tensor([0.0, 2.0]), 1.0),
    ]
    torch.testing.assert_close(merge(components, [0, 0]).variance, torch.tensor([1.0, 2.0]))


@pytest.mark.parametrize(
    ("precisions", "log_weights", "message"),
    [
        ((1.0, 0.0), [0.0, 0.0], "positive precision"),
        ((1.0, 2.0), [0.0], r"one number per Gaussian .* got shape \(1,\) for 2"),
        ((1.0, 2.0), [0.0, math.nan], "not NaN"),
        ((1.0, 2.0), [0.0, math.inf], r"below \+inf"),
        ((1.0, 2.0), [-math.inf, -math.inf], "not all -inf"),
        ((), [], "at least one"),
    ],
)
def test_bad_mixtures_are_named(precisions, log_weights, message):
    with pytest.raises(ValueError, match=message):
        merge([gaussian(0.0, precision) for precision in precisions], log_weights)


def test_different_shapes_are_refused():
    wide = DiagonalGaussian.isotropic(torch.zeros(2, dtype=torch.float64), 1.0)
    with pytest.raises(ValueError, match="equal shapes"):
        merge([gaussian(0.0, 1.0), wide], [0.0, 0.0])


@pytest.mark.parametrize("dtype", [torch.float32, torch.float64])
@pytest.mark.parametrize("rule", ["moment_matched", "wasserstein"])
def test_means_too_far_apart_for_the_variance_leave_a_proper_gaussian(rule, dtype):
    far = 1e25 if dtype == torch.float32 else 1e200
    ends = [
        DiagonalGaussian(torch.tensor([sign * far], dtype=dtype), torch.full((1,), p, dtype=dtype))
        for sign, p in ((-1.0, 1.0), (1.0, torch.finfo(dtype).tiny))
    ]
    assert merge_by(rule, ends, [0.0, 0.0]).is_proper
