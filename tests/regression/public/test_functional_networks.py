"""Networks with whole-number buffers, or that write into parts of a tensor, have derivatives.

Reported to neighbouring projects: functional calls fail on the batch counters of BatchNorm, and
per-sample gradients on assignments to slices.
"""

import numpy as np
import pytest
import torch
from torch import nn

from posteriors import diagonal_curvature


class Sliced(nn.Module):
    """Writes two halves into one tensor."""

    def __init__(self):
        super().__init__()
        self.left, self.right, self.last = nn.Linear(4, 3), nn.Linear(4, 3), nn.Linear(6, 2)

    def forward(self, x):
        hidden = x.new_empty(len(x), 6)
        hidden[:, ::2] = self.left(x).tanh()
        hidden[:, 1::2] = self.right(x).sigmoid()
        return self.last(hidden)


def counting():
    return nn.Sequential(nn.Linear(4, 5), nn.BatchNorm1d(5), nn.Tanh(), nn.Linear(5, 2))


@pytest.mark.parametrize("build", [Sliced, counting])
def test_diagonal_curvature_is_that_of_single_samples(build, true_diagonal):
    with torch.random.fork_rng(devices=[]):
        torch.manual_seed(0)
        module, inputs = build().double(), torch.randn(6, 4).double()
    expected = true_diagonal(module, inputs)
    found = diagonal_curvature(module, inputs, torch.zeros(6).long())
    torch.testing.assert_close(found, expected, rtol=1e-6, atol=1e-9)


@pytest.mark.parametrize("predictive", ["plug-in", "monte-carlo", "linearised", "probit"])
@pytest.mark.parametrize("build", [Sliced, counting])
def test_runs_and_predictions_are_finite(clients, mlp, federation, build, predictive):
    run = federation(clients(), mlp(build), "bcfl-g").run(rounds=2)
    found = run.predict("c0", np.ones((3, 4), np.float32), predictive)
    np.testing.assert_allclose(found.mean.sum(axis=1), 1)
