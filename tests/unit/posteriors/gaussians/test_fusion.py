import itertools
import math
from typing import get_args

import pytest
import torch

from posteriors.gaussians.fusion import Fused, FusionRule, fuse
from posteriors.gaussians.gaussian import DiagonalGaussian
from posteriors.gaussians.local_posterior import LocalPosterior

RULES = get_args(FusionRule)


def vector(*values):
    return torch.tensor(values, dtype=torch.float64)


def gaussian(mean, precision):
    return DiagonalGaussian(vector(mean), vector(precision))


def shared_prior_pair():
    """Prior (precision 2, mean 0); local posteriors (5, .4) and (9, .8) trained under it."""
    prior = gaussian(0.0, 2.0)
    return prior, [
        LocalPosterior(mean=vector(0.4), curvature=vector(3.0), used=prior, num_samples=3),
        LocalPosterior(mean=vector(0.8), curvature=vector(7.0), used=prior, num_samples=7),
    ]


def test_exact_counts_a_shared_prior_once():
    prior, local = shared_prior_pair()
    fused = fuse("exact", prior, local).posterior
    assert float(fused.precision) == pytest.approx(12.0, abs=1e-12)
    assert float(fused.mean) == pytest.approx(0.7666666667, abs=1e-10)


def test_literal_counts_it_per_local_posterior():
    prior, local = shared_prior_pair()
    fused = fuse("literal", prior, local).posterior
    assert float(fused.precision) == pytest.approx(14.0, abs=1e-12)
    assert float(fused.mean) == pytest.approx(0.6571428571, abs=1e-10)


def test_normalised_product_is_no_sharper_than_its_members():
    """Powers .3 and .7, the shares in the samples: precision .3 x 5 + .7 x 9."""
    prior, local = shared_prior_pair()
    fused = fuse("normalised", prior, local).posterior
    assert float(fused.precision) == pytest.approx(7.8, abs=1e-12)
    assert float(fused.mean) == pytest.approx((1.5 * 0.4 + 6.3 * 0.8) / 7.8, abs=1e-12)


def test_normalised_product_of_equals_is_that_posterior():
    prior, (first, _) = shared_prior_pair()
    fused = fuse("normalised", prior, [first] * 5).posterior
    assert float(fused.precision) == pytest.approx(5.0, abs=1e-12)
    assert float(fused.mean) == pytest.approx(0.4, abs=1e-12)


def test_normaliser_of_the_shared_prior_product():
    prior, local = shared_prior_pair()
    fused = fuse("exact", prior, local).posterior
    first, second = gaussian(0.4, 5.0), gaussian(0.8, 9.0)
    for x in (-1.0, 0.3, 2.0):
        point = vector(x)
        product = first.log_density(point) + second.log_density(point) - prior.log_density(point)
        assert float(product - fused.log_density(point)) == pytest.approx(0.5609709964, abs=1e-9)


def test_conjugate_shards_give_the_pooled_posterior():
    prior = gaussian(0.0, 2.0)
    local = []
    for shard in ([1.0, 2.0, 0.0], [-1.0, 0.5, 3.0, 2.0]):
        size = float(len(shard))
        local.append(
            LocalPosterior(
                mean=vector(sum(shard) / (2 + size)),
                curvature=vector(size),
                used=prior,
                num_samples=len(shard),
            )
        )
    fused = fuse("exact", prior, local).posterior
    assert float(fused.precision) == pytest.approx(9.0, abs=1e-12)
    assert float(fused.mean) == pytest.approx(0.8333333333, abs=1e-10)


def test_used_defaults_to_the_argument_then_to_the_prior():
    prior, local = shared_prior_pair()
    anonymous = [
        LocalPosterior(
            mean=one.mean, curvature=one.curvature, used=None, num_samples=one.num_samples
        )
        for one in local
    ]
    other = gaussian(1.0, 0.5)
    named = [
        LocalPosterior(
            mean=one.mean, curvature=one.curvature, used=other, num_samples=one.num_samples
        )
        for one in local
    ]
    implicit = fuse("exact", prior, anonymous).posterior
    torch.testing.assert_close(implicit.mean, fuse("exact", prior, local).posterior.mean)
    explicit = fuse("exact", prior, anonymous, other).posterior
    torch.testing.assert_close(explicit.mean, fuse("exact", prior, named).posterior.mean)
    assert not torch.allclose(explicit.mean, implicit.mean)


def test_fedavg_is_precision_weighting_by_sample_counts():
    generator = torch.Generator().manual_seed(0)
    counts = [3, 40, 7]
    means = [torch.randn(50, generator=generator) for _ in counts]
    prior = DiagonalGaussian.isotropic(torch.zeros(50), 0.0)
    local = [
        LocalPosterior(
            mean=mean, curvature=torch.tensor(float(count)), used=None, num_samples=count
        )
        for mean, count in zip(means, counts, strict=True)
    ]
    fused = fuse("precision_weighted", prior, local)
    expected = sum(count * mean for mean, count in zip(means, counts, strict=True)) / 50
    torch.testing.assert_close(fused.posterior.mean, expected)
    assert fused.posterior.precision.numel() == 1
    assert float(fused.posterior.precision) == 50.0
    assert fused.num_floored == 0


def test_precision_weighting_floors_and_counts():
    prior = DiagonalGaussian.isotropic(torch.zeros(2, dtype=torch.float64), 1.0)
    local = [
        LocalPosterior(
            mean=vector(1.0, 1.0), curvature=vector(4.0, 0.0), used=None, num_samples=100
        ),
        LocalPosterior(
            mean=vector(5.0, 4.0), curvature=vector(0.0, 0.0), used=None, num_samples=200
        ),
    ]
    fused = fuse("precision_weighted", prior, local)
    assert fused.num_floored == 3
    torch.testing.assert_close(fused.posterior.mean, vector((4 + 1.0) / 4.2, 3.0))
    torch.testing.assert_close(fused.posterior.precision, vector(5.2, 1.3))
    isotropic = [
        LocalPosterior(mean=vector(1.0, 2.0), curvature=torch.zeros(()), used=None, num_samples=10)
    ]
    assert fuse("precision_weighted", prior, isotropic).num_floored == 2


def test_floor_is_an_argument():
    prior = DiagonalGaussian.isotropic(torch.zeros(1), 0.0)
    local = [
        LocalPosterior(mean=torch.ones(1), curvature=torch.zeros(1), used=None, num_samples=10)
    ]
    fused = fuse("precision_weighted", prior, local, floor=0.5)
    assert float(fused.posterior.precision) == 5.0


def test_cap_is_an_argument_and_counts():
    prior = DiagonalGaussian.isotropic(torch.zeros(2, dtype=torch.float64), 1.0)
    local = [
        LocalPosterior(
            mean=vector(1.0, 1.0), curvature=vector(40.0, 3.0), used=None, num_samples=10
        ),
        LocalPosterior(
            mean=vector(4.0, 4.0),
            curvature=torch.tensor(100.0, dtype=torch.float64),
            used=None,
            num_samples=20,
        ),
    ]
    fused = fuse("precision_weighted", prior, local, cap=2.0)
    assert (fused.num_floored, fused.num_capped) == (0, 3)
    torch.testing.assert_close(fused.posterior.precision, vector(61.0, 44.0))
    torch.testing.assert_close(fused.posterior.mean, vector(3.0, 163 / 43))
    assert fuse("precision_weighted", prior, local).num_capped == 0


@pytest.mark.parametrize("rule", RULES)
def test_weight_two_is_the_same_as_twice(rule):
    prior, (first, second) = shared_prior_pair()
    doubled = LocalPosterior(
        mean=first.mean, curvature=first.curvature, used=prior, num_samples=3, weight=2.0
    )
    once = fuse(rule, prior, [doubled, second]).posterior
    twice = fuse(rule, prior, [first, second, first]).posterior
    torch.testing.assert_close(once.mean, twice.mean)
    torch.testing.assert_close(once.precision, twice.precision)


@pytest.mark.parametrize("rule", RULES)
def test_nothing_to_fuse_gives_the_prior_itself(rule):
    prior, (first, _) = shared_prior_pair()
    ignored = LocalPosterior(
        mean=first.mean, curvature=first.curvature, used=prior, num_samples=3, weight=0.0
    )
    for local in ([], [ignored]):
        fused = fuse(rule, prior, local)
        assert fused.posterior is prior
        assert (fused.num_floored, fused.outside_hull) == (0, 0.0)


@pytest.mark.parametrize("rule", ["exact", "literal", "normalised"])
def test_where_nothing_is_known_the_prior_mean_stays(rule):
    prior = DiagonalGaussian(vector(7.0, 7.0), vector(0.0, 0.0))
    local = [
        LocalPosterior(mean=vector(1.0, 2.0), curvature=vector(0.0, 3.0), used=prior, num_samples=5)
    ]
    fused = fuse(rule, prior, local).posterior
    torch.testing.assert_close(fused.mean, vector(7.0, 2.0))
    torch.testing.assert_close(fused.precision, vector(0.0, 3.0))


def test_exact_sums_unconverged_steps_and_the_hull_shows_it():
    prior = DiagonalGaussian.isotropic(torch.zeros(4), 100.0)
    curvature = torch.tensor([0.1, 0.1, 0.1, 1e12])
    local = [
        LocalPosterior(mean=torch.full((4,), 0.1), curvature=curvature, used=prior, num_samples=10)
        for _ in range(5)
    ]
    exact = fuse("exact", prior, local)
    assert exact.outside_hull == 0.75
    assert float(exact.posterior.mean[0]) > 0.45
    weighted = fuse("precision_weighted", prior, local)
    assert weighted.outside_hull == 0.0
    torch.testing.assert_close(weighted.posterior.mean, torch.full((4,), 0.1))


def test_the_hull_of_exact_includes_the_prior_mean():
    prior = DiagonalGaussian.isotropic(vector(0.0), 8.0)
    flat = DiagonalGaussian.isotropic(vector(0.0), 0.0)
    local = [LocalPosterior(mean=vector(1.0), curvature=vector(2.0), used=flat, num_samples=2)]
    fused = fuse("exact", prior, local)
    assert float(fused.posterior.mean) == pytest.approx(0.2)
    assert fused.outside_hull == 0.0


def test_result_keeps_the_dtype_and_batch_axes():
    prior = DiagonalGaussian.isotropic(torch.zeros(2, 3), 1.0)
    local = [
        LocalPosterior(mean=torch.ones(2, 3), curvature=torch.ones(3), used=None, num_samples=4)
        for _ in range(2)
    ]
    fused = fuse("exact", prior, iter(local))
    assert isinstance(fused, Fused)
    assert fused.posterior.mean.dtype == torch.float32
    assert fused.posterior.mean.shape == (2, 3)
    torch.testing.assert_close(fused.posterior.mean, torch.full((2, 3), 4 / 3))


@pytest.mark.parametrize(
    ("change", "message"),
    [
        ({"mean": vector(math.nan)}, "mean must be finite"),
        ({"curvature": vector(-1.0)}, "curvature must be at least 0"),
        ({"curvature": vector(1.0, 1.0)}, "curvature must be broadcastable"),
        ({"num_samples": 0}, "num_samples must be at least 1, got 0"),
        ({"weight": -0.5}, "weight must be finite and at least 0, got -0.5"),
        ({"weight": math.inf}, "weight must be finite"),
        ({"used": DiagonalGaussian.isotropic(torch.zeros(2), 1.0)}, "used must have"),
    ],
)
def test_bad_local_posteriors_are_named(change, message):
    arguments = {"mean": vector(0.0), "curvature": vector(1.0), "used": None, "num_samples": 1}
    with pytest.raises(ValueError, match=message):
        LocalPosterior(**(arguments | change))


def test_bad_fusions_are_named():
    prior, local = shared_prior_pair()
    with pytest.raises(
        ValueError, match="rule must be one of precision_weighted, exact, literal, norm"
    ):
        fuse("average", prior, local)
    for floor in (0.0, -1.0, math.nan):
        with pytest.raises(ValueError, match="floor must be positive"):
            fuse("precision_weighted", prior, local, floor=floor)
    for cap in (1e-3, -1.0, math.nan):
        with pytest.raises(ValueError, match=r"cap must be larger than the floor 0\.001"):
            fuse("precision_weighted", prior, local, cap=cap)
    wide = LocalPosterior(mean=vector(1.0, 2.0), curvature=vector(1.0), used=None, num_samples=1)
    with pytest.raises(ValueError, match=r"prior's shape \(1,\), got \(2,\)"):
        fuse("exact", prior, [*local, wide])


def test_inputs_are_unmodified():
    prior, local = shared_prior_pair()
    tensors = [prior.mean, prior.precision]
    tensors += itertools.chain.from_iterable((one.mean, one.curvature) for one in local)
    before = [tensor.clone() for tensor in tensors]
    for rule in RULES:
        fuse(rule, prior, local)
    assert all(torch.equal(old, new) for old, new in zip(before, tensors, strict=True))


def recursion(rule, rounds):
    """Fused in each round from ten modes under the posterior of the round before."""
    prior, curvature = DiagonalGaussian(torch.zeros(2), torch.ones(1)), torch.tensor([5.0, 0.0])
    fused = None
    for _ in range(rounds):
        precision = prior.precision + curvature
        mode = (prior.precision * prior.mean + curvature) / precision
        one = LocalPosterior(mean=mode, curvature=curvature, used=prior, num_samples=30)
        fused = fuse(rule, prior, [one] * 10)
        prior = fused.posterior
    return fused


def test_precision_stays_finite_where_each_posterior_is_the_next_prior():
    fused = recursion("literal", 100)
    largest = torch.finfo(torch.float32).max ** 0.5
    torch.testing.assert_close(fused.posterior.precision, torch.full((2,), largest))
    assert bool(fused.posterior.mean.isfinite().all())


@pytest.mark.parametrize(
    ("rule", "rounds", "share"),
    [("literal", 4, 0.0), ("literal", 12, 1.0), ("exact", 100, 0.0), ("precision_weighted", 9, 0)],
)
def test_parameters_that_data_no_longer_move_are_counted(rule, rounds, share):
    """Of the one parameter with curvature; the other says nothing."""
    assert recursion(rule, rounds).outweighed == share
