import pytest
import torch

from posteriors.gaussians.fusion import fuse
from posteriors.gaussians.gaussian import DiagonalGaussian
from posteriors.gaussians.local_posterior import LocalPosterior
from posteriors.gaussians.memory import carry


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
