import numpy as np
import pytest
import torch

from bcfl import Association, Hypothesis, Objective
from bcfl.hypotheses.posterior import Block, Posterior
from bcfl.policies import candidate
from bcfl.policies.bayes.drawn import DrawnEvidence, Draws, drawn_models
from bcfl.protocol.statistics.loss import LossSum
from posteriors import DiagonalGaussian


def cluster(model, key, prior_precision, precision):
    mean, buffers = model.initial(3)
    prior = DiagonalGaussian.isotropic(mean, prior_precision)
    block = Block(
        key=key,
        name=model.blocks[0].name,
        gaussian=DiagonalGaussian.isotropic(mean, precision),
        base=prior,
        prior=prior,
        buffers=buffers,
    )
    return Posterior((block,))


@pytest.fixture
def trained(linear):
    """Two clusters whose posteriors are four times as precise as the prior."""
    clusters = (cluster(linear, "one", 0.25, 1.0), cluster(linear, "two", 0.25, 1.0))
    return Hypothesis(clusters=clusters, association=Association.unseen(("a", "b", "c"), 2))


def test_models_are_drawn_from_the_prior_with_equal_weights(linear, trained):
    draws = drawn_models(trained, linear, "monte_carlo", 1000, seed=1)
    assert draws.log_weights.shape == (2, 1000)
    np.testing.assert_allclose(draws.log_weights, -np.log(1000))
    vectors = torch.stack([posterior.mean(linear) for posterior in draws.models[0]])
    mean = trained.clusters[0].mean(linear)
    torch.testing.assert_close(vectors.mean(0), mean, rtol=0, atol=0.3)
    torch.testing.assert_close(vectors.std(0), torch.full_like(mean, 2.0), rtol=0.1, atol=0)


def test_draws_from_the_posterior_are_weighted_by_prior_over_posterior(linear, trained):
    draws = drawn_models(trained, linear, "importance", 5, seed=1)
    mean = trained.clusters[1].mean(linear)
    for posterior, log_weight in zip(draws.models[1], draws.log_weights[1], strict=True):
        squares = float((posterior.mean(linear) - mean).square().sum())
        ratio = 0.5 * len(mean) * np.log(0.25) + 0.5 * (1.0 - 0.25) * squares
        assert log_weight == pytest.approx(ratio - np.log(5), abs=1e-5)


def test_an_unchanged_cluster_has_the_same_draws(linear, trained):
    first, again, other = (
        drawn_models(trained, linear, "monte_carlo", 3, seed=seed) for seed in (1, 1, 2)
    )
    key = first.models[0][0].key
    assert key == again.models[0][0].key
    assert torch.equal(first.models[0][0].mean(linear), again.models[0][0].mean(linear))
    assert not torch.equal(first.models[0][0].mean(linear), other.models[0][0].mean(linear))
    assert len({p.key for row in first.models for p in row}) == 6


def test_likelihoods_are_multiplied_before_they_are_averaged(linear, trained):
    models = drawn_models(trained, linear, "monte_carlo", 2, seed=1).models
    draws = Draws(models, np.log([[0.25, 0.75], [0.5, 0.5]]))
    losses = {"a": [1.0, 3.0, 2.0, 2.0], "b": [2.0, 1.0, 9.0, 9.0], "c": [4.0, 4.0, 0.5, 1.5]}
    keys = [posterior.key for row in models for posterior in row]
    scores = {
        client: {k: LossSum(loss, 0.0, 4) for k, loss in zip(keys, row, strict=True)}
        for client, row in losses.items()
    }

    def log_evidence(labels, temperature):
        evidence = DrawnEvidence(draws, temperature)
        chosen = candidate(trained, labels, Objective())
        return evidence.log_weight(chosen, scores) + float(evidence.reference(scores))

    first = np.log(0.25 * np.exp(-1.0 - 2.0) + 0.75 * np.exp(-3.0 - 1.0))
    second = np.log(0.5 * np.exp(-0.5) + 0.5 * np.exp(-1.5))
    chosen = {"a": 0, "b": 0, "c": 1}
    assert log_evidence(chosen, 1.0) == pytest.approx(first + second)
    mean = np.log(0.25 * np.exp(-3.0 / 4) + 0.75 * np.exp(-4.0 / 4))
    mean += np.log(0.5 * np.exp(-0.5 / 4) + 0.5 * np.exp(-1.5 / 4))
    assert log_evidence(chosen, "mean") == pytest.approx(mean)
    alone = np.log(0.25 * np.exp(-1.0 - 2.0 - 4.0) + 0.75 * np.exp(-3.0 - 1.0 - 4.0))
    assert log_evidence({"a": 0, "b": 0, "c": 0}, 1.0) == pytest.approx(alone)


def test_what_all_losses_have_in_common_changes_nothing(linear, trained):
    models = drawn_models(trained, linear, "monte_carlo", 2, seed=1).models
    evidence = DrawnEvidence(Draws(models, np.full((2, 2), -np.log(2))), 1.0)
    chosen = candidate(trained, {"a": 0}, Objective())
    keys = [posterior.key for row in models for posterior in row]

    def scores(offset):
        return {"a": {key: LossSum(offset + i, 0.0, 4) for i, key in enumerate(keys)}}

    expected = np.log(0.5 + 0.5 * np.exp(-1))
    assert evidence.log_weight(chosen, scores(0.0)) == pytest.approx(expected)
    far = DrawnEvidence(Draws(models, np.full((2, 2), -np.log(2))), 1.0)
    assert far.log_weight(chosen, scores(2.0**50)) == pytest.approx(expected)
    assert float(far.reference(scores(2.0**50))) == -(2.0**50)
