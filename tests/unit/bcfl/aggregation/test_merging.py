import math
from dataclasses import replace

import numpy as np
import pytest
import torch

from bcfl import Aggregation, Association, Hypothesis
from bcfl.aggregation.merging import merge_hypotheses
from bcfl.hypotheses.posterior import Block, Posterior
from posteriors import DiagonalGaussian

NAMES = ("a", "b")


def posterior(model, key, mean, precision, buffers=()):
    base = DiagonalGaussian.isotropic(torch.zeros(model.layout.num_parameters), 1.0)
    gaussian = DiagonalGaussian.isotropic(torch.full_like(base.mean, float(mean)), precision)
    prior = DiagonalGaussian(gaussian.mean, base.precision)
    return Posterior(
        (
            Block(
                key=key,
                name="model",
                gaussian=gaussian,
                base=base,
                prior=prior,
                buffers=torch.tensor(buffers),
            ),
        )
    )


def hypothesis(clusters, labels, weight, parents=(0,)):
    association = Association(NAMES, np.array(labels), len(clusters))
    return Hypothesis(
        clusters=tuple(clusters),
        association=association,
        log_weight=math.log(weight),
        parents=parents,
    )


def test_the_mixture_becomes_the_gaussian_of_its_mean_and_variance(linear):
    parts = [
        hypothesis([posterior(linear, "x", 1, 4.0)], [0, 0], 0.25, (0,)),
        hypothesis([posterior(linear, "y", 5, 2.0)], [0, -1], 0.75, (1,)),
    ]
    merged = merge_hypotheses(Aggregation(), linear, parts)
    gaussian = merged.clusters[0].blocks[0].gaussian
    mean = 0.25 * 1 + 0.75 * 5
    variance = 0.25 * (1 / 4 + 1) + 0.75 * (1 / 2 + 25) - mean**2
    assert gaussian.mean.tolist() == pytest.approx([mean] * 8)
    assert (1 / gaussian.precision).tolist() == pytest.approx([variance] * 8)
    assert merged.association.serving.flatten().tolist() == pytest.approx([1.0, 0.25])
    assert (merged.parents, merged.log_weight) == ((0, 1), 0.0)


def test_one_stays_the_same_object(linear):
    only = hypothesis([posterior(linear, "x", 1, 4.0)], [0, 0], 1.0)
    assert merge_hypotheses(Aggregation(), linear, [only]) is only


def test_a_model_that_all_share_stays_the_same_object(linear):
    shared = posterior(linear, "x", 1, 4.0)
    parts = [
        hypothesis([shared, posterior(linear, "y", 0, 1.0)], [0, 1], 0.5),
        hypothesis([shared, posterior(linear, "z", 2, 1.0)], [1, 1], 0.5),
    ]
    merged = merge_hypotheses(Aggregation(), linear, parts)
    assert merged.clusters[0] is shared
    assert merged.association.serving.tolist() == [[0.5, 0.5], [0, 1]]


def test_running_statistics_are_pooled_by_weight(batch_norm):
    parts = [
        hypothesis([posterior(batch_norm, k, 0, 1.0, [m] * 4 + [1.0] * 4)], [0, 0], 0.5)
        for k, m in (("x", 0.0), ("y", 2.0))
    ]
    merged = merge_hypotheses(Aggregation(), batch_norm, parts)
    assert merged.clusters[0].buffers(batch_norm).tolist() == [1.0] * 4 + [2.0] * 4


def test_a_weight_that_underflows_counts_for_nothing(linear):
    heavy = hypothesis([posterior(linear, "x", 1, 4.0)], [0, 0], 1.0)
    light = replace(hypothesis([posterior(linear, "y", 5, 4.0)], [0, 0], 1.0), log_weight=-5000.0)
    merged = merge_hypotheses(Aggregation(), linear, [heavy, light])
    assert merged.clusters[0].mean(linear).tolist() == [1.0] * 8
