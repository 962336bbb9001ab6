"""BCFL-G-CAM: the additive model inside the hypothesis of BCFL-G, restated in numpy.

Clients choose by the loss of summed logits, train both networks against the other as it was sent
(CAM, equations 8 and 9), and report the diagonal Gauss-Newton matrix of the sum. The server fuses
the shared network over all clients and a cluster's own over its clients, parameter by parameter
with those curvatures as weights (BCFL, equation 8, for a few steps of training).
"""

import numpy as np
import pytest
import torch

import bcfl
from bcfl.methods import build
from tests.oracle.bcfl.methods import paper_methods as paper

SIZES, ROUNDS, CLUSTERS = (20, 33, 12, 41, 9), 4, 2
SIZE = paper.CLASSIFIER.stop
FLOOR = 1e-3


def gauss_newton(weights, data, other=0.0):
    """diag of sum over samples of J^T (diag(p) - p p^T) J, with p of the summed logits."""
    inputs, _ = data
    diagonal = np.zeros_like(weights)
    for row, p in zip(inputs, paper.softmax(paper.logits(weights, inputs) + other), strict=True):
        slopes = np.stack([paper.backward(weights, row[None], e[None]) for e in np.eye(len(p))])
        bend = np.diag(p) - np.outer(p, p)
        diagonal += np.einsum("ci,cd,di->i", slopes, bend, slopes)
    return diagonal


def fused(means, curvatures):
    """Mean weighted by curvature, each at least a thousandth per sample, for each parameter."""
    total = sum(curvatures)
    return sum(f * m for f, m in zip(curvatures, means, strict=True)) / total


def both(g, t, data):
    """A client's new networks and their curvatures."""
    inputs, labels = data
    own = paper.trained(t, data, (), paper.logits(g, inputs))
    new = paper.trained(g, data, (), paper.logits(own, inputs))
    floor = FLOOR * len(labels)
    bend = np.maximum(gauss_newton(new, data, paper.logits(own, inputs)), floor)
    own_bend = np.maximum(gauss_newton(own, data, paper.logits(new, inputs)), floor)
    return new, own, bend, own_bend


@pytest.fixture
def states(turned_clients, states_of):
    objective = bcfl.Objective(
        local_steps=paper.STEPS, batch_size=1000, learning_rate=paper.RATE, momentum=paper.MOMENTUM
    )
    one = bcfl.Federation(
        turned_clients(SIZES),
        bcfl.Model(
            name="two-layers",
            build=paper.network,
            input_shape=(paper.INPUTS,),
            num_outputs=paper.CLASSES,
        ),
        build("bcfl-g-cam", num_clusters=CLUSTERS, objective=objective),
        seed=3,
        device="cpu",
        dtype=torch.float64,
    )
    data = [
        (d.views["train"].inputs.numpy(), d.views["train"].targets.numpy()) for d in one.clients
    ]
    seen = [one.initial_state(), *(state for state, _ in states_of(one, ROUNDS))]
    return data, one.model, [state.hypotheses.best for state in seen]


def test_bcfl_g_cam(states):
    data, model, (start, *rest) = states
    means = [c.mean(model).numpy() for c in start.clusters]
    g, own = means[0][:SIZE], [mean[SIZE:] for mean in means]
    used = set()
    for round, hypothesis in enumerate(rest):
        if round == 0:  # warm-up: all clients train the shared network only
            local = [paper.trained(g, d) for d in data]
            bends = [
                np.maximum(gauss_newton(m, d), FLOOR * len(d[1]))
                for m, d in zip(local, data, strict=True)
            ]
            g = fused(local, bends)
        else:
            chosen = [
                int(np.argmin([paper.loss(t, d, paper.logits(g, d[0])) for t in own])) for d in data
            ]
            assert hypothesis.association.labels.tolist() == chosen
            used |= set(chosen)
            made = [both(g, own[k], d) for k, d in zip(chosen, data, strict=True)]
            g = fused([m[0] for m in made], [m[2] for m in made])
            for k in set(chosen):
                inside = [m for m, label in zip(made, chosen, strict=True) if label == k]
                own[k] = fused([m[1] for m in inside], [m[3] for m in inside])
        served = [np.zeros(SIZE), own[1]] if round == 0 else own  # clients see the shared one alone
        for cluster, t in zip(hypothesis.clusters, served, strict=True):
            np.testing.assert_allclose(cluster.mean(model), [*g, *t], rtol=0, atol=1e-9)
    assert used == {0, 1}


def test_precisions_are_prior_and_summed_curvature(states):
    """The last round's posterior: one, for the prior, and the curvatures of those that fed it."""
    data, model, hypotheses = states
    before, after = hypotheses[-2:]
    means = [c.mean(model).numpy() for c in before.clusters]
    made = [
        both(means[k][:SIZE], means[k][SIZE:], d)
        for k, d in zip(after.association.labels, data, strict=True)
    ]
    for k, cluster in enumerate(after.clusters):
        inside = [
            m[3] for m, label in zip(made, after.association.labels, strict=True) if label == k
        ]
        expected = [*(1 + sum(m[2] for m in made)), *(1 + sum(inside, np.zeros(SIZE)))]
        if inside:
            np.testing.assert_allclose(cluster.precision(model), expected, rtol=1e-8)
