import pytest
import torch

from posteriors.gaussians.fusion import fuse
from posteriors.gaussians.gaussian import DiagonalGaussian
from posteriors.gaussians.local_posterior import LocalPosterior
from posteriors.gaussians.memory import Site, carry, damp, product, site_of


def vector(*values):
    return torch.tensor(values, dtype=torch.float64)


def gaussian(mean, precision):
    return DiagonalGaussian(vector(mean), vector(precision))


def precision_after_20_rounds(memory, base, decay=0.9):
    """The same data, curvature 10, seen in 20 rounds that start from precision 1."""
    posterior = gaussian(0.0, 1.0)
    carried = posterior
    for _ in range(20):
        carried = carry(memory, posterior, base, decay)
        local = LocalPosterior(
            mean=vector(0.5), curvature=vector(10.0), used=carried, num_samples=10
        )
        posterior = fuse("exact", carried, [local]).posterior
    return float(posterior.precision)


def test_accumulating_counts_the_same_data_every_round():
    assert precision_after_20_rounds("accumulate", gaussian(0.0, 1.0)) == pytest.approx(201.0)


def test_replacing_counts_them_once():
    assert precision_after_20_rounds("replace", gaussian(0.0, 1.0)) == pytest.approx(11.0)


def test_forgetting_towards_a_flat_base():
    precision = precision_after_20_rounds("forget", gaussian(0.0, 0.0))
    assert precision == pytest.approx(87.9640, abs=1e-4)
    assert precision == pytest.approx(100 - 99 * 0.9**20, rel=1e-12)


def test_forgetting_towards_the_base_prior_has_its_own_limit():
    precision = precision_after_20_rounds("forget", gaussian(0.0, 1.0))
    assert precision == pytest.approx(101 - 100 * 0.9**20, rel=1e-12)


def test_replace_and_accumulate_return_the_same_objects():
    posterior, base = gaussian(1.0, 5.0), gaussian(0.0, 1.0)
    assert carry("replace", posterior, base) is base
    assert carry("accumulate", posterior, base) is posterior


def test_forget_keeps_the_mean_and_mixes_precisions():
    posterior, base = gaussian(1.0, 5.0), gaussian(0.0, 1.0)
    carried = carry("forget", posterior, base, decay=0.75)
    assert carried.mean is posterior.mean
    assert float(carried.precision) == pytest.approx(4.0)
    assert float(carry("forget", posterior, base, decay=0.0).precision) == 1.0


def test_forget_keeps_an_isotropic_precision_small():
    posterior = DiagonalGaussian.isotropic(torch.zeros(100), 4.0)
    base = DiagonalGaussian.isotropic(torch.zeros(100), 2.0)
    assert carry("forget", posterior, base).precision.numel() == 1


def test_bad_memories_are_named():
    posterior, base = gaussian(1.0, 5.0), gaussian(0.0, 1.0)
    with pytest.raises(ValueError, match="memory must be one of replace, forget, accumulate"):
        carry("keep", posterior, base)
    with pytest.raises(ValueError, match=r"decay must be between 0 and 1, got 1\.1"):
        carry("forget", posterior, base, decay=1.1)
    with pytest.raises(ValueError, match="posterior's shape"):
        carry("forget", posterior, DiagonalGaussian.isotropic(torch.zeros(2), 1.0))


def test_sites_add_up_where_subtracting_priors_would_go_negative():
    """Posterior precisions .9, .8, .7 under a prior of 2 can't be divided by the prior twice."""
    used = gaussian(0.0, 2.0)
    curvatures = (0.9, 0.8, 0.7)
    assert sum(curvatures) - 2 * 2.0 == pytest.approx(-1.6)
    sites = [
        site_of(LocalPosterior(mean=vector(0.1), curvature=vector(c), used=used, num_samples=1))
        for c in curvatures
    ]
    assert float(product(used, sites).precision) == pytest.approx(4.4)
    local = [
        LocalPosterior(mean=vector(0.1), curvature=vector(c), used=used, num_samples=1)
        for c in curvatures
    ]
    assert float(fuse("exact", used, local).posterior.precision) == pytest.approx(4.4)


def test_replaced_sites_count_each_data_set_once_in_all_rounds():
    base, targets, curvatures = gaussian(0.0, 1.0), (2.0, -1.0), (10.0, 4.0)
    sites = [Site(vector(0.0), vector(0.0)), Site(vector(0.0), vector(0.0))]
    for round_number in range(20):
        for j, (target, curvature) in enumerate(zip(targets, curvatures, strict=True)):
            used = product(base, sites[:j] + sites[j + 1 :])
            precision = used.precision + curvature
            mean = (used.shift + curvature * target) / precision
            sites[j] = site_of(
                LocalPosterior(mean=mean, curvature=vector(curvature), used=used, num_samples=5)
            )
        if round_number in (0, 1, 19):
            assert float(product(base, sites).precision) == pytest.approx(15.0, abs=1e-12)
    assert float(product(base, sites).mean) == pytest.approx((20.0 - 4.0) / 15, abs=1e-12)


def test_site_holds_the_weighted_likelihood_factor():
    used = gaussian(0.5, 2.0)
    site = site_of(
        LocalPosterior(
            mean=vector(0.8), curvature=vector(3.0), used=used, num_samples=4, weight=0.5
        )
    )
    assert float(site.precision) == pytest.approx(1.5)
    assert float(site.shift) == pytest.approx(0.5 * (5 * 0.8 - 2 * 0.5))
    with pytest.raises(ValueError, match=r"local\.used must be the prior"):
        site_of(LocalPosterior(mean=vector(0.8), curvature=vector(3.0), used=None, num_samples=4))


def test_product_with_a_flat_base_keeps_its_mean_where_nothing_is_known():
    base = DiagonalGaussian(vector(7.0, 7.0), vector(0.0, 0.0))
    posterior = product(base, [Site(vector(0.0, 2.0), vector(0.0, 3.0))])
    torch.testing.assert_close(posterior.mean, vector(7.0, 1.5))
    with pytest.raises(ValueError, match="sites must have shifts of shape"):
        product(base, [Site(vector(1.0), vector(1.0))])


def test_damping_mixes_natural_parameters():
    old, new = Site(vector(4.0), vector(2.0)), Site(vector(8.0), vector(-2.0))
    damped = damp(old, new, 0.25)
    assert (float(damped.precision), float(damped.shift)) == (5.0, 1.0)
    assert float(damp(old, new, 1.0).shift) == -2.0


def test_parallel_damped_updates_reach_the_same_fixed_point():
    base, targets, curvatures = gaussian(0.0, 1.0), (2.0, -1.0), (10.0, 4.0)
    sites = [Site(vector(0.0), vector(0.0)) for _ in targets]
    for _ in range(60):
        refreshed = []
        for j, (target, curvature) in enumerate(zip(targets, curvatures, strict=True)):
            used = product(base, sites[:j] + sites[j + 1 :])
            precision = used.precision + curvature
            mean = (used.shift + curvature * target) / precision
            refreshed.append(
                site_of(
                    LocalPosterior(mean=mean, curvature=vector(curvature), used=used, num_samples=5)
                )
            )
        sites = [damp(old, new, 0.4) for old, new in zip(sites, refreshed, strict=True)]
    assert float(product(base, sites).precision) == pytest.approx(15.0, abs=1e-9)
    assert float(product(base, sites).mean) == pytest.approx(16.0 / 15, abs=1e-9)


@pytest.mark.parametrize("share", [0.0, 1.5, float("nan")])
def test_bad_damping_is_named(share):
    site = Site(vector(1.0), vector(1.0))
    with pytest.raises(ValueError, match="share must be above 0 and at most 1"):
        damp(site, site, share)
    with pytest.raises(ValueError, match="shifts of one shape"):
        damp(site, Site(vector(1.0), vector(1.0, 2.0)), 0.5)


def test_bad_sites_are_named():
    with pytest.raises(ValueError, match="precision must be at least 0"):
        Site(vector(-1.0), vector(0.0))
    with pytest.raises(ValueError, match="shift must be finite"):
        Site(vector(1.0), vector(float("nan")))
