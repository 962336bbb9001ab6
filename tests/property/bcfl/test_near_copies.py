"""Merging near copies keeps the mass, the mean and the variance of the mixture."""

import numpy as np
import pytest
import torch
from hypothesis import given, settings
from hypothesis import strategies as st
from torch import nn

from bcfl import Aggregation, Association, Hypothesis, Model
from bcfl.hypotheses.posterior import Block, Posterior
from bcfl.trackers.near_copies import NearCopies
from posteriors import DiagonalGaussian

CLIENTS = tuple("abcde")


def network():
    return nn.Sequential(nn.Linear(2, 1))


MODEL = Model(name="tiny", build=network, input_shape=(2,), num_outputs=1, likelihood="gaussian")


def posterior(key, mean, precision):
    gaussian = DiagonalGaussian(torch.from_numpy(mean), torch.from_numpy(precision))
    return Posterior(
        (
            Block(
                key=key,
                name="model",
                gaussian=gaussian,
                base=gaussian,
                prior=gaussian,
                buffers=torch.empty(0),
            ),
        )
    )


@st.composite
def mixtures(draw):
    """Hypotheses near one of two truths that are far apart, each under numbers of its own.

    Returns them, which truth each is near, and for each cluster of each which true cluster it is.
    """
    random = np.random.default_rng(draw(st.integers(0, 2**32 - 1)))
    num_clusters, count = draw(st.integers(2, 4)), draw(st.integers(1, 6))
    grid = 20.0 * random.permutation(8)[:num_clusters]
    truths = [grid[:, None] + 1000.0 * t + np.zeros((num_clusters, 3)) for t in range(2)]
    hypotheses, nearest, names = [], [], []
    for index in range(count):
        truth, order = int(random.integers(2)), random.permutation(num_clusters)
        means = truths[truth][order] + random.normal(scale=0.1, size=(num_clusters, 3))
        precisions = random.uniform(0.5, 5.0, size=means.shape)
        clusters = tuple(
            posterior(f"{index} {i}", *pair)
            for i, pair in enumerate(zip(means, precisions, strict=True))
        )
        labels = random.integers(-1 if index % 2 else 0, num_clusters, size=len(CLIENTS))
        association = Association(CLIENTS, labels, num_clusters)
        weight = float(random.normal(scale=2.0))
        hypotheses.append(
            Hypothesis(
                clusters=clusters, association=association, log_weight=weight, parents=(index,)
            )
        )
        nearest.append(truth)
        names.append(order)
    return hypotheses, nearest, names, truths


def mixture_moments(hypotheses, names, cluster):
    """Mass, and mean and variance of one true cluster's model, over some hypotheses."""
    masses = np.exp([h.log_weight for h in hypotheses])
    chosen = [
        h.clusters[int(np.flatnonzero(order == cluster)[0])].blocks[0].gaussian
        for h, order in zip(hypotheses, names, strict=True)
    ]
    means = np.stack([g.mean.numpy() for g in chosen])
    variances = np.stack([1 / g.precision.numpy() for g in chosen])
    shares = (masses / masses.sum())[:, None]
    mean = (shares * means).sum(axis=0)
    return masses.sum(), mean, (shares * (variances + means**2)).sum(axis=0) - mean**2


def true_numbers(hypothesis, truth):
    means = np.stack([p.blocks[0].gaussian.mean.numpy() for p in hypothesis.clusters])
    return np.abs(means[:, None, 0] - truth[None, :, 0]).argmin(axis=1)


def merge(hypotheses):
    return NearCopies().merge(hypotheses, Aggregation(), MODEL)


@settings(max_examples=40, deadline=None)
@given(mixtures())
def test_moments_and_mass_of_the_mixture_are_preserved(mixture):
    hypotheses, nearest, names, truths = mixture
    merged = merge(hypotheses)
    assert len(merged) == len(set(nearest))
    for one in merged:
        truth = int(one.clusters[0].blocks[0].gaussian.mean[0] > 500)
        rows = [i for i, t in enumerate(nearest) if t == truth]
        assert one.parents == tuple(rows)
        own = true_numbers(one, truths[truth])
        assert sorted(own) == list(range(len(own)))
        for cluster in range(len(own)):
            before = mixture_moments(
                [hypotheses[i] for i in rows], [names[i] for i in rows], cluster
            )
            after = mixture_moments([one], [own], cluster)
            for ours, theirs in zip(after, before, strict=True):
                np.testing.assert_allclose(ours, theirs, rtol=1e-7)


@settings(max_examples=40, deadline=None)
@given(mixtures())
def test_serving_models_are_preserved(mixture):
    hypotheses, nearest, names, truths = mixture
    for one in merge(hypotheses):
        truth = int(one.clusters[0].blocks[0].gaussian.mean[0] > 500)
        expected = np.zeros((len(CLIENTS), len(one.clusters)))
        for hypothesis, near, order in zip(hypotheses, nearest, names, strict=True):
            if near == truth:
                for row, label in enumerate(hypothesis.association.labels):
                    if label >= 0:
                        expected[row, order[label]] += np.exp(
                            hypothesis.log_weight - one.log_weight
                        )
        own = true_numbers(one, truths[truth])
        np.testing.assert_allclose(one.association.serving, expected[:, own], atol=1e-12)
        heaviest = max(
            (h for h, near in zip(hypotheses, nearest, strict=True) if near == truth),
            key=lambda h: h.log_weight,
        )
        np.testing.assert_array_equal(true_numbers(heaviest, truths[truth]), own)


@settings(max_examples=40, deadline=None)
@given(mixtures(), st.randoms(use_true_random=False))
def test_the_order_of_the_list_does_not_matter(mixture, random):
    hypotheses = mixture[0]
    shuffled = random.sample(hypotheses, len(hypotheses))
    for one, other in zip(merge(hypotheses), merge(shuffled), strict=True):
        assert one.log_weight == pytest.approx(other.log_weight, abs=1e-12)
        assert [p.key for p in one.clusters] == [p.key for p in other.clusters]
        np.testing.assert_array_equal(one.association.labels, other.association.labels)
