"""BCFL as printed goes through all of its rounds, and learns.

"A Bayesian framework for clustered federated learning", equations 8 and 11: each round's posterior
is the next round's prior. The paper runs 100 rounds.
"""

import numpy as np
import pytest
import torch

from bcfl import Aggregation, Federation
from bcfl.aggregation import FusionReport
from bcfl.analysis.metrics import micro_accuracy
from experiments import models
from posteriors import DiagonalGaussian, LocalPosterior, fuse


def test_exact_fusion_over_rounds_counts_each_factor_once():
    posterior = DiagonalGaussian(torch.zeros(1), torch.ones(1))
    for _ in range(100):
        factors = [
            LocalPosterior(
                mean=torch.zeros(1), curvature=torch.tensor([5.0]), used=posterior, num_samples=30
            )
        ] * 10
        posterior = fuse("exact", posterior, factors).posterior
    assert posterior.precision.item() == pytest.approx(1 + 100 * 10 * 5, rel=1e-5)


def test_literal_fusion_over_rounds_stays_finite(divide, build_method):
    clients = divide("two-stage-dirichlet", groups=2, clients=10, samples_per_client=12)
    recipe = build_method(
        "bcfl-g",
        num_clusters=1,
        local_steps=1,
        learning_rate=0.005,
        fusion="literal",
        memory="accumulate",
    )
    run = Federation(clients, models.linear(64, 10), recipe, seed=0, evaluate=False).run(60)
    (cluster,) = run.hypotheses.best.clusters
    assert cluster.mean(run.model).isfinite().all()


@pytest.mark.parametrize("rule", ["exact", "precision_weighted", "literal"])
def test_prior_that_sharpens_does_not_undo_what_was_learnt(divide, build_method, rule):
    clients = divide(
        "two-stage-dirichlet", groups=1, clients=6, alpha=(10, 10), samples_per_client=60
    )
    recipe = build_method(
        "bcfl-g",
        num_clusters=1,
        learning_rate=0.05,
        prior_weight=1.0,
        fusion=rule,
        memory="accumulate",
    )
    run = Federation(clients, models.linear(64, 10), recipe, seed=0).run(20)
    scores = [micro_accuracy(record.evaluations) for record in run.records]

    assert scores[-1] > 0.9 * max(scores)
    assert scores[-1] > 0.5


def test_weights_of_histories_accumulate():
    """Equation 11: the weight of a history is the product over its rounds."""
    assert Aggregation(memory="accumulate").carried_log_weight(-5.0) == -5.0


@pytest.mark.parametrize("rule", ["exact", "literal", "precision_weighted"])
def test_most_probable_histories_last_for_a_hundred_rounds(divide, build_method, rule):
    """Algorithm 3 with equations 10 and 11: the round's posteriors and weights are carried on."""
    clients = divide("two-stage-dirichlet", groups=2, clients=6, samples_per_client=12)
    recipe = build_method(
        "bcfl-histories-3",
        num_clusters=2,
        local_steps=2,
        learning_rate=0.01,
        prior_weight=1.0,
        fusion=rule,
    )
    run = Federation(clients, models.linear(64, 10), recipe, seed=0, evaluate=False).run(100)
    assert np.isfinite(run.hypotheses.log_weights).all()
    assert run.hypotheses.weights.sum() == pytest.approx(1.0)
    for hypothesis in run.hypotheses:
        for cluster in hypothesis.clusters:
            assert cluster.mean(run.model).isfinite().all()
            assert cluster.precision(run.model).isfinite().all()
    worst = sum((record.info.fusion for record in run.records), start=FusionReport())
    assert (worst.outweighed > 0.5) == (rule == "literal")
