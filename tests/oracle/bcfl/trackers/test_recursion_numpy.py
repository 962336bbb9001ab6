"""Consensus, multi-hypothesis and captured mass against a numpy recursion over all associations.

The recursion below states BCFL, equations 8-11 and 14-20, for linear-Gaussian models with
diagonal curvature; it enumerates every association of every kept hypothesis.
"""

import itertools
from dataclasses import dataclass, replace

import numpy as np
import pytest

import bcfl
from bcfl.policies.capacity import ClusterSize
from bcfl.trackers import Consensus, Exact, MultiHypothesis
from experiments.models import linear
from tests.recipes import built


@dataclass
class Particle:
    """One hypothesis: its log weight, cluster means and precisions, and serving table."""

    log_weight: float
    means: np.ndarray
    precisions: np.ndarray
    serving: np.ndarray


def log_sum(values):
    peak = max(values)
    return peak + np.log(sum(np.exp(v - peak) for v in values))


def start_of(world):
    precisions = np.repeat(world.prior_precisions[:, None], world.prior_means.shape[1], axis=1)
    return Particle(0.0, world.prior_means.copy(), precisions, np.zeros((0, 0)))


def log_likelihood(world, client, round, mean, temperature):
    design, values = world.of(client, round)
    error = values - design @ mean
    total = -0.5 * (error @ error) - 0.5 * len(values) * np.log(2 * np.pi)
    return total / (len(values) if temperature == "mean" else temperature)


def successor(world, parent, labels, round, temperature):
    """Weight (equation 9, N = 1) and exact posterior update (equation 8) of one association."""
    weight = parent.log_weight
    precisions = parent.precisions.copy()
    shifts = parent.precisions * parent.means
    for client, label in zip(world.clients, labels, strict=True):
        weight += log_likelihood(world, client, round, parent.means[label], temperature)
        design, values = world.of(client, round)
        precisions[label] += (design**2).sum(axis=0)
        shifts[label] += values @ design
    return Particle(weight, shifts / precisions, precisions, np.eye(len(precisions))[list(labels)])


def expanded(world, parents, round, temperature, sizes):
    """All successors of each parent with allowed cluster sizes, best first."""
    every = range(world.num_clusters)
    associations = [
        labels
        for labels in itertools.product(every, repeat=len(world.clients))
        if all(labels.count(cluster) in sizes for cluster in every)
    ]
    return [
        sorted(
            (successor(world, parent, labels, round, temperature) for labels in associations),
            key=lambda p: -p.log_weight,
        )
        for parent in parents
    ]


def multi_hypothesis(world, parents, round, kept, per_parent, temperature, sizes=range(99)):
    """The best successors, normalised, and the share of all weight that they hold."""
    families = expanded(world, parents, round, temperature, sizes)
    looked_at = [p for family in families for p in family[:per_parent]]
    best = sorted(looked_at, key=lambda p: -p.log_weight)[:kept]
    total = log_sum([p.log_weight for family in families for p in family])
    held = log_sum([p.log_weight for p in best])
    return [replace(p, log_weight=p.log_weight - held) for p in best], held - total


def merged(particles):
    """Equations 19 and 20, on the diagonal."""
    shares = np.exp([p.log_weight for p in particles])[:, None, None]
    means = np.stack([p.means for p in particles])
    covariances = 1 / np.stack([p.precisions for p in particles])
    mean = (shares * means).sum(axis=0)
    covariance = (shares * (covariances + means**2 - mean**2)).sum(axis=0)
    serving = (shares * np.stack([p.serving for p in particles])).sum(axis=0)
    return Particle(0.0, mean, 1 / covariance, serving)


def assert_is(hypothesis, particle, model):
    assert hypothesis.log_weight == pytest.approx(particle.log_weight, abs=1e-9)
    np.testing.assert_allclose(hypothesis.association.serving, particle.serving, atol=1e-10)
    for k, posterior in enumerate(hypothesis.clusters):
        np.testing.assert_allclose(posterior.mean(model), particle.means[k], rtol=1e-8)
        np.testing.assert_allclose(posterior.precision(model), particle.precisions[k], rtol=1e-8)


@pytest.mark.parametrize("temperature", [1.0, 4.0, "mean"])
@pytest.mark.parametrize("count", [2, 5, 27])
def test_consensus_merges_as_equations_19_and_20(linear_world, count, temperature):
    world = linear_world(51, clients=3, clusters=3, rounds=3)
    states = world.run(world.method(Consensus(count), temperature=temperature), 3)
    particle = start_of(world)
    for round, state in enumerate(states):
        best, captured = multi_hypothesis(world, [particle], round, count, count, temperature)
        particle = merged(best)
        (hypothesis,) = state.hypotheses
        assert_is(hypothesis, particle, world.model)
        assert state.hypotheses.log_captured_mass == pytest.approx(captured, abs=1e-9)
        labels = particle.serving.argmax(axis=1)
        np.testing.assert_array_equal(hypothesis.association.labels, labels)


def test_merging_widens_what_the_parts_disagree_on(linear_world):
    """The merged variance exceeds the mean of the variances by the spread of the means."""
    world = linear_world(52, clients=3, clusters=2, rounds=1)
    (merged_state,) = world.run(world.method(Consensus(8)), 1)
    (parts,) = world.run(world.method(MultiHypothesis(8)), 1)
    for k in range(2):
        mean_variance = sum(
            np.exp(h.log_weight) / h.clusters[k].precision(world.model).numpy()
            for h in parts.hypotheses
        )
        variance = 1 / merged_state.hypotheses.best.clusters[k].precision(world.model).numpy()
        assert (variance > 1.0001 * mean_variance).all()


@pytest.mark.parametrize("temperature", [1.0, 4.0, "mean"])
@pytest.mark.parametrize(("kept", "per_parent"), [(1, 1), (3, 3), (6, 2), (4, 10), (30, 5)])
def test_multi_hypothesis_and_captured_mass(linear_world, kept, per_parent, temperature):
    world = linear_world(53, clients=4, clusters=2, rounds=3)
    tracker = MultiHypothesis(kept, max_per_parent=per_parent)
    states = world.run(world.method(tracker, temperature=temperature), 3)
    particles = [start_of(world)]
    for round, state in enumerate(states):
        particles, captured = multi_hypothesis(
            world, particles, round, kept, per_parent, temperature
        )
        assert len(state.hypotheses) == len(particles)
        for hypothesis, particle in zip(state.hypotheses, particles, strict=True):
            assert_is(hypothesis, particle, world.model)
        assert state.hypotheses.log_captured_mass == pytest.approx(captured, abs=1e-9)
        assert captured < -1e-6


@pytest.mark.parametrize(("lower", "upper"), [(1, None), (0, 2), (1, 2), (2, 2)])
def test_bounded_cluster_sizes(linear_world, lower, upper):
    world = linear_world(55, clients=4, clusters=2, rounds=2)
    bounds = ClusterSize(lower, upper)
    method = world.method(MultiHypothesis(5, max_per_parent=4), cluster_size=bounds)
    particles, sizes = [start_of(world)], range(lower, (upper or 4) + 1)
    for round, state in enumerate(world.run(method, 2)):
        particles, captured = multi_hypothesis(world, particles, round, 5, 4, 1.0, sizes)
        assert len(state.hypotheses) == len(particles)
        for hypothesis, particle in zip(state.hypotheses, particles, strict=True):
            assert_is(hypothesis, particle, world.model)
        assert state.hypotheses.log_captured_mass == pytest.approx(captured, abs=1e-9)


def test_all_bounded_associations_hold_all_the_weight(linear_world):
    world = linear_world(56, clients=4, clusters=2, rounds=1)
    method = world.method(Exact(), cluster_size=ClusterSize(1, 3))
    (state,) = world.run(method, 1)
    assert len(state.hypotheses) == 2**4 - 2
    assert state.hypotheses.log_captured_mass == pytest.approx(0.0, abs=1e-12)


@pytest.mark.parametrize(("memory", "power"), [("replace", 0.0), ("forget", 0.9)])
def test_carried_weights(linear_world, memory, power):
    """Of log w(past) `replace` carries nothing and `forget` its share; checked after two rounds."""
    world = linear_world(54, clients=3, clusters=2, rounds=2)
    first, second = world.run(world.method(MultiHypothesis(3), memory=memory), 2)
    families = []
    for parent in first.hypotheses:
        means = [c.mean(world.model).numpy() for c in parent.clusters]
        for labels in itertools.product(range(2), repeat=3):
            weight = sum(
                log_likelihood(world, client, 1, means[label], 1.0)
                for client, label in zip(world.clients, labels, strict=True)
            )
            families.append((power * parent.log_weight + weight, labels))
    families.sort(reverse=True)
    best = np.array([weight for weight, _ in families[:3]])
    expected = best - log_sum(list(best))
    np.testing.assert_allclose(second.hypotheses.log_weights, expected, atol=1e-9)
    captured = log_sum(list(best)) - log_sum([weight for weight, _ in families])
    assert second.hypotheses.log_captured_mass == pytest.approx(captured, abs=1e-9)


@pytest.mark.parametrize("count", [2, 9])
def test_captured_mass_on_real_losses(turned_clients, softmax, count):
    """Losses recomputed in numpy, all associations of five clients with three clusters."""
    clients = turned_clients((8, 5, 11, 7, 6))
    settings = dict(num_clusters=3, objective=bcfl.Objective(local_steps=2), temperature=9.0)
    method = built(f"bcfl-mh-{count}", **settings)
    one = bcfl.Federation(clients, linear(4, 3), method, device="cpu")
    start = [c.mean(one.model) for c in one.initial_state().hypotheses.best.clusters]
    losses = {
        client: [
            len(data[1]) * softmax.mean_loss(softmax.weights(flat.double(), 3), *data) / 9.0
            for flat in start
        ]
        for client, data in softmax.arrays(clients).items()
    }
    weights = sorted(
        (-sum(row[k] for row, k in zip(losses.values(), labels, strict=True)), labels)
        for labels in itertools.product(range(3), repeat=5)
    )[::-1]
    hypotheses = one.run(1).hypotheses
    assert [tuple(h.association.labels) for h in hypotheses] == [w[1] for w in weights[:count]]
    best = [w for w, _ in weights[:count]]
    captured = log_sum(best) - log_sum([w for w, _ in weights])
    np.testing.assert_allclose(hypotheses.log_weights, np.array(best) - log_sum(best), atol=1e-4)
    assert hypotheses.log_captured_mass == pytest.approx(captured, abs=1e-4)
