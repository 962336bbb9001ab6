"""Fusion and evidence against the closed form with all data pooled (numpy and scipy).

Each observation y = a x_k + noise of unit variance informs one parameter x_k, so that the exact
posterior is diagonal.
"""

import numpy as np
import pytest
import torch
from scipy.stats import multivariate_normal
from torch import nn

from posteriors.curvature.diagonal import diagonal_curvature
from posteriors.evidence.closed_form import quadratic_log_evidence
from posteriors.gaussians.fusion import fuse, fuse_without
from posteriors.gaussians.gaussian import DiagonalGaussian
from posteriors.gaussians.local_posterior import LocalPosterior

PARAMETERS = 6


def make_shards(seed, sizes=(5, 1, 12, 30)):
    random = np.random.default_rng(seed)
    shards = []
    for size in sizes:
        design = np.zeros((size, PARAMETERS))
        design[np.arange(size), random.integers(PARAMETERS, size=size)] = random.normal(size=size)
        shards.append((design, random.normal(2.0, 3.0, size=size)))
    prior = DiagonalGaussian(
        torch.from_numpy(random.normal(size=PARAMETERS)),
        torch.from_numpy(random.uniform(0.3, 4.0, size=PARAMETERS)),
    )
    return shards, prior


def closed_form(shards, prior):
    """Posterior mean and covariance by dense linear algebra."""
    design = np.concatenate([shard[0] for shard in shards])
    values = np.concatenate([shard[1] for shard in shards])
    prior_precision = np.diag(prior.precision.numpy())
    precision = prior_precision + design.T @ design
    right = prior_precision @ prior.mean.numpy() + design.T @ values
    return np.linalg.solve(precision, right), np.linalg.inv(precision)


def local_map(shard, used):
    mean, _ = closed_form([shard], used)
    curvature = diagonal_curvature_of(shard)
    return LocalPosterior(
        mean=torch.from_numpy(mean), curvature=curvature, used=used, num_samples=len(shard[1])
    )


def diagonal_curvature_of(shard):
    design, values = (torch.from_numpy(part) for part in shard)
    layer = nn.Linear(PARAMETERS, 1, bias=False).double()
    return diagonal_curvature(layer, design, values[:, None], likelihood="gaussian")


def assert_is_closed_form(posterior, shards, prior):
    mean, covariance = closed_form(shards, prior)
    np.testing.assert_allclose(posterior.mean, mean, rtol=1e-9, atol=1e-10)
    np.testing.assert_allclose(posterior.variance, np.diag(covariance), rtol=1e-9)


@pytest.mark.parametrize("seed", range(5))
def test_exact_fusion_of_local_maps_is_the_pooled_posterior(seed):
    shards, prior = make_shards(seed)
    fused = fuse("exact", prior, [local_map(shard, prior) for shard in shards])
    assert_is_closed_form(fused.posterior, shards, prior)


@pytest.mark.parametrize("seed", range(5))
def test_each_local_posterior_may_have_used_another_prior(seed):
    shards, prior = make_shards(seed)
    random = np.random.default_rng(seed + 100)
    local = []
    for shard in shards:
        used = DiagonalGaussian(
            torch.from_numpy(random.normal(size=PARAMETERS)),
            torch.from_numpy(random.uniform(0.1, 9.0, size=PARAMETERS)),
        )
        local.append(local_map(shard, used))
    assert_is_closed_form(fuse("exact", prior, local).posterior, shards, prior)


def test_literal_and_weighted_rules_are_not_the_pooled_posterior():
    shards, prior = make_shards(0)
    local = [local_map(shard, prior) for shard in shards]
    mean, covariance = closed_form(shards, prior)
    literal = fuse("literal", prior, local).posterior
    assert not np.allclose(literal.variance, np.diag(covariance), rtol=0.05)
    weighted = fuse("precision_weighted", prior, local).posterior
    assert not np.allclose(weighted.mean, mean, rtol=0.05)


@pytest.mark.parametrize("seed", range(5))
def test_quadratic_evidence_is_the_marginal_likelihood(seed):
    """Alone for each shard, and jointly from summed statistics for shards that share the model."""
    shards, prior = make_shards(seed)
    separate, statistics = [], []
    for shard in shards:
        statistic = log_likelihood_terms(shard, prior)
        evidence = quadratic_log_evidence(*statistic, prior.precision)
        assert float(evidence) == pytest.approx(marginal([shard], prior), abs=1e-9)
        separate.append(float(evidence))
        statistics.append(statistic)
    together = [sum(parts) for parts in zip(*statistics, strict=True)]
    joint = float(quadratic_log_evidence(*together, prior.precision))
    assert joint == pytest.approx(marginal(shards, prior), abs=1e-9)
    assert abs(joint - sum(separate)) > 0.1


def log_likelihood_terms(shard, prior):
    """Log likelihood at the prior mean, its gradient, and the curvature."""
    design, values = shard
    residual = values - design @ prior.mean.numpy()
    log_likelihood = -0.5 * residual @ residual - len(values) / 2 * np.log(2 * np.pi)
    return log_likelihood, design.T @ residual, diagonal_curvature_of(shard).numpy()


def marginal(shards, prior):
    design = np.concatenate([shard[0] for shard in shards])
    values = np.concatenate([shard[1] for shard in shards])
    covariance = np.eye(len(values)) + design @ np.diag(prior.variance.numpy()) @ design.T
    return multivariate_normal(design @ prior.mean.numpy(), covariance).logpdf(values)


@pytest.mark.parametrize("seed", range(5))
def test_the_cavity_is_the_pooled_posterior_of_the_other_shards(seed):
    shards, prior = make_shards(seed)
    local = [local_map(shard, prior) for shard in shards]
    left_out = [(index,) for index in range(len(shards))]
    for index, rest in enumerate(fuse_without("exact", prior, local, left_out)):
        assert_is_closed_form(rest, shards[:index] + shards[index + 1 :], prior)
