"""Draws from posteriors have their covariance, and repeat with the seed.

Reported to neighbouring projects: draws of a full covariance use the factor the wrong way round,
and a sampler that starts from a variational fit does not repeat.
"""

import pytest
import torch
from torch import nn

from posteriors import DiagonalGaussian
from posteriors.gaussians.covariance import DenseCovariance, StructuredGaussian
from posteriors.local.nuts import NoUTurn
from posteriors.local.variational import Variational


def test_draws_of_a_full_covariance_have_it():
    root = torch.tensor([[2.0, 0, 0], [1.5, 0.4, 0], [-1, 0.3, 0.2]]).double()
    covariance = root @ root.T
    mean = torch.tensor([1.0, -2, 0.5, 7]).double()
    chosen = torch.tensor([0, 2, 3])
    posterior = StructuredGaussian(
        mean, DenseCovariance.from_precision(torch.linalg.inv(covariance), chosen)
    )
    draws = posterior.sample(200_000, torch.Generator().manual_seed(0))
    torch.testing.assert_close(draws[:, 1], torch.full((200_000,), -2.0).double())
    torch.testing.assert_close(draws[:, chosen].T.cov(), covariance, rtol=0.02, atol=0.02)


METHODS = [
    Variational(steps=20, evidence_draws=2),
    NoUTurn(draws=20, warmup=10, evidence_draws=4),
]


@pytest.mark.parametrize("method", METHODS, ids=["variational", "nuts"])
def test_a_fit_repeats_with_its_seed_whatever_came_before(method):
    inputs, targets = torch.linspace(-1, 1, 16).view(8, 2), torch.arange(8) % 2
    prior = DiagonalGaussian(torch.zeros(6), torch.ones(6))

    def fitted(seed):
        with torch.random.fork_rng(devices=[]):
            torch.manual_seed(1)
            network = nn.Linear(2, 2)
        return method.fit(network, inputs, targets, prior, seed=seed).mean

    first, other, again = fitted(0), fitted(5), fitted(0)
    assert torch.equal(first, again)
    assert not torch.equal(first, other)
