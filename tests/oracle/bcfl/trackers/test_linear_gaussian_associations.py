"""Association probabilities of linear-Gaussian clients against enumeration of all associations.

The whole federation by names: `bcfl-exact` with joint evidence and exact fusion, clients that score
and train themselves. The enumeration integrates the clusters' parameters out of the data of their
members by dense multivariate normal densities.
"""

import itertools

import numpy as np
import pytest
import torch
from scipy.stats import multivariate_normal

from bcfl import ClientData, Federation, Objective, methods
from experiments.models import linear

MODEL = linear(2, 1, likelihood="gaussian", bias=False)


def drawn(seed, clients, scale=1.5):
    """Design and values by client; each sample depends on one parameter, with unit noise."""
    random = np.random.default_rng(seed)
    truth = random.normal(scale=scale, size=(2, 2))
    data = []
    for index in range(clients):
        rows = random.integers(2, 6)
        design = np.zeros((rows, 2))
        design[np.arange(rows), random.integers(2, size=rows)] = random.uniform(0.3, 1.5, rows)
        data.append((design, design @ truth[index % 2] + random.normal(size=rows)))
    return data


def enumerated(data, prior_means, prior_precision):
    """Every association with its probability under a uniform prior."""
    every = np.array(list(itertools.product(range(len(prior_means)), repeat=len(data))))
    logs = np.zeros(len(every))
    for row, labels in enumerate(every):
        for cluster, mean in enumerate(prior_means):
            members = [one for one, label in zip(data, labels, strict=True) if label == cluster]
            if members:
                design = np.concatenate([d for d, _ in members])
                values = np.concatenate([v for _, v in members])
                spread = np.eye(len(values)) + design @ design.T / prior_precision
                logs[row] += multivariate_normal.logpdf(values, design @ mean, spread)
    weights = np.exp(logs - logs.max())
    return every, weights / weights.sum()


def federation_of(data, clusters, seed, **options):
    """`bcfl-exact` on these data, and the means of its priors."""
    method = methods.build(
        "bcfl-exact",
        num_clusters=clusters,
        fusion="exact",
        temperature=1.0,
        prior_precision=0.8,
        objective=Objective(prior_weight=1.0, curvature_samples=None),
        **options,
    )
    shards = [ClientData.from_arrays(f"c{i}", (x, y[:, None])) for i, (x, y) in enumerate(data)]
    federation = Federation(shards, MODEL, method, seed=seed, dtype=torch.float64, evaluate=False)
    prior = federation.initial_state().hypotheses.best.clusters
    return federation, [posterior.mean(MODEL).numpy() for posterior in prior]


@pytest.mark.parametrize(("seed", "clients", "clusters"), [(0, 6, 2), (1, 4, 3), (2, 7, 2)])
def test_probabilities_are_those_of_the_enumeration(seed, clients, clusters):
    data = drawn(seed, clients)
    federation, means = federation_of(data, clusters, seed, evidence="joint")
    every, weights = enumerated(data, means, 0.8)

    hypotheses = federation.run(1).hypotheses
    found = {tuple(h.association.labels): np.exp(h.log_weight) for h in hypotheses}
    assert len(found) == len(every)
    np.testing.assert_allclose([found[tuple(labels)] for labels in every], weights, atol=1e-10)
    same = every[:, :, None] == every[:, None, :]
    together = np.tensordot(weights, same, 1)
    np.testing.assert_allclose(hypotheses.co_association(), together, atol=1e-10)
    # labels are those of the priors, but clusters of hypotheses are matched before they are mixed
    labelled = np.tensordot(weights, every[:, :, None] == np.arange(clusters), 1)
    mixed = sum(h.association.serving * np.exp(h.log_weight) for h in hypotheses)
    np.testing.assert_allclose(mixed, labelled, atol=1e-10)
    assert hypotheses.log_captured_mass == pytest.approx(0.0, abs=1e-12)


@pytest.mark.parametrize("evidence", ["monte_carlo", "importance"])
def test_many_drawn_models_are_nearly_exact(evidence):
    """Equation 9: the evidence of two parameters is that of 1,000 draws, up to their error."""
    data = drawn(3, 4, scale=0.5)
    federation, means = federation_of(data, 2, 3, evidence=evidence, evidence_draws=1000)
    every, weights = enumerated(data, means, 0.8)
    found = {
        tuple(h.association.labels): np.exp(h.log_weight) for h in federation.run(1).hypotheses
    }
    np.testing.assert_allclose([found[tuple(labels)] for labels in every], weights, atol=0.04)
    assert weights.max() > 0.1
