import numpy as np
import pytest
import torch

from posteriors.networks.batchnorm import pool_running_statistics


def test_pooling_includes_the_spread_of_the_means():
    mean, variance = pool_running_statistics(
        torch.tensor([[0.0], [1.0]]), torch.tensor([[1.0], [0.5]]), torch.tensor([100, 300])
    )
    assert float(mean) == pytest.approx(0.75)
    assert float(variance) == pytest.approx(0.8125)


def test_pooled_statistics_are_those_of_the_joined_data():
    random = np.random.default_rng(0)
    shards = [random.normal(i, 1 + i, size=(size, 4)) for i, size in enumerate((5, 50, 12))]
    mean, variance = pool_running_statistics(
        torch.tensor(np.array([shard.mean(0) for shard in shards])),
        torch.tensor(np.array([shard.var(0) for shard in shards])),
        torch.tensor([len(shard) for shard in shards]),
    )
    joined = np.concatenate(shards)
    np.testing.assert_allclose(mean, joined.mean(0), rtol=1e-12)
    np.testing.assert_allclose(variance, joined.var(0), rtol=1e-12)


def test_large_offsets_keep_the_variance_in_float32():
    means, variances = torch.tensor([[4096.0], [4096.5]]), torch.full((2, 1), 0.01)
    mean, variance = pool_running_statistics(means, variances, torch.tensor([1.0, 1.0]))
    assert mean.dtype == torch.float32
    assert float(variance) == pytest.approx(0.0725, rel=1e-6)


@pytest.mark.parametrize(
    ("means", "variances", "counts", "message"),
    [
        (torch.zeros(2, 3), torch.ones(2, 2), torch.ones(2), "share a shape"),
        (torch.zeros(0, 3), torch.ones(0, 3), torch.ones(0), "share a shape"),
        (torch.zeros(2, 3), torch.ones(2, 3), torch.ones(3), r"counts must have shape \(2,\)"),
        (torch.zeros(2, 3), -torch.ones(2, 3), torch.ones(2), "variances must be at least 0"),
        (torch.zeros(2, 3) / 0, torch.ones(2, 3), torch.ones(2), "means must be finite"),
        (torch.zeros(2, 3), torch.ones(2, 3), torch.zeros(2), "counts must not all be 0"),
        (torch.zeros(2, 3), torch.ones(2, 3), torch.tensor([1, -1]), "counts must be at least 0"),
    ],
)
def test_bad_statistics_are_named(means, variances, counts, message):
    with pytest.raises(ValueError, match=message):
        pool_running_statistics(means, variances, counts)


def test_integer_statistics_are_refused():
    with pytest.raises(TypeError, match="means must be a float32 or float64 tensor"):
        pool_running_statistics(torch.zeros(2, 3).long(), torch.ones(2, 3), torch.ones(2))
