import numpy as np
import pytest
import torch

from bcfl.aggregation.buffers import pool_buffers


def test_running_statistics_become_those_of_the_pooled_samples(batch_norm):
    random = np.random.default_rng(0)
    data = [random.normal(loc, 1 + loc, size=(size, 4)) for loc, size in ((0, 5), (3, 20))]
    buffers = [torch.tensor(np.concatenate([d.mean(0), d.var(0)])) for d in data]
    pooled = pool_buffers(batch_norm, "model", buffers, [5, 20])
    everything = np.concatenate(data)
    np.testing.assert_allclose(pooled[:4], everything.mean(0))
    np.testing.assert_allclose(pooled[4:], everything.var(0))


def test_no_buffers_stay_none(linear):
    assert pool_buffers(linear, "model", [torch.empty(0)] * 2, [1, 2]).numel() == 0


def test_statistics_of_one_are_its_own(batch_norm):
    buffers = torch.tensor([1.0, 2, 3, 4, 5, 6, 7, 8])
    assert pool_buffers(batch_norm, "model", [buffers], [3]).tolist() == pytest.approx(range(1, 9))
