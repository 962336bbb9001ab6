"""The exact recursion against Pyro enumerations over all association histories.

Two models are written here on their own: `plug_in` scores each round's data at the cluster means
(separable weights, BCFL, equation 9 with one sample point), `integrated` integrates the cluster
parameters out of all rounds at once (joint weights). Both know the linear-Gaussian model only.
"""

import itertools

import numpy as np
import pyro
import pyro.distributions as dist
import pytest
import torch
from pyro import poutine
from pyro.infer import TraceEnum_ELBO

from bcfl.trackers import Exact

ROUNDS, CLIENTS, CLUSTERS = 3, 3, 2
SITES = [(t, j) for t in range(ROUNDS) for j in range(CLIENTS)]


def site(t, j):
    return f"cluster of {j} in round {t}"


def tensors(world, t, j):
    design, values = world.of(world.clients[j], t)
    return torch.from_numpy(design), torch.from_numpy(values)


def one_hot(labels, cluster):
    return (labels == cluster).double()[..., None]


def plug_in(world):
    """A Pyro program: pick clusters, see data at the clusters' means, update the means."""
    means = [torch.from_numpy(m) for m in world.prior_means]
    precisions = [torch.full_like(m, p) for m, p in zip(means, world.prior_precisions, strict=True)]
    for t in range(ROUNDS):
        labels = [
            pyro.sample(site(t, j), dist.Categorical(torch.ones(CLUSTERS))) for j in range(CLIENTS)
        ]
        shifts = [p * m for p, m in zip(precisions, means, strict=True)]
        for j, label in enumerate(labels):
            design, values = tensors(world, t, j)
            mean = sum(one_hot(label, k) * means[k] for k in range(CLUSTERS))
            expected = (design @ mean[..., None]).squeeze(-1)
            pyro.sample(f"data {t} {j}", dist.Normal(expected, 1.0).to_event(1), obs=values)
            for k in range(CLUSTERS):
                precisions[k] = precisions[k] + one_hot(label, k) * design.square().sum(0)
                shifts[k] = shifts[k] + one_hot(label, k) * (values @ design)
        means = [s / p for s, p in zip(shifts, precisions, strict=True)]


def integrated(world, labels):
    """A Pyro program whose data are correlated through the clusters that `labels` gives them."""
    for k in range(CLUSTERS):
        members = [tensors(world, t, j) for (t, j), label in labels.items() if label == k]
        if not members:
            continue
        design = torch.cat([d for d, _ in members])
        values = torch.cat([v for _, v in members])
        spread = design @ design.T / float(world.prior_precisions[k])
        law = dist.MultivariateNormal(
            design @ torch.from_numpy(world.prior_means[k]), torch.eye(len(values)) + spread
        )
        pyro.sample(f"data of cluster {k}", law, obs=values)


@pytest.fixture(autouse=True)
def in_double():
    torch.set_default_dtype(torch.float64)
    yield
    torch.set_default_dtype(torch.float32)


@pytest.fixture(scope="module")
def histories():
    """(histories, sites) all ways to choose a cluster for each client in each round."""
    return np.array(list(itertools.product(range(CLUSTERS), repeat=len(SITES))))


def normalised(log_weights):
    return log_weights - np.logaddexp.reduce(log_weights)


def plug_in_log_weights(world, histories):
    """Log weights of all histories at once, from the trace of the conditioned program."""
    given = {site(t, j): torch.from_numpy(histories[:, n]) for n, (t, j) in enumerate(SITES)}
    trace = poutine.trace(poutine.condition(plug_in, data=given)).get_trace(world)
    trace.compute_log_prob()
    terms = [node["log_prob"] for name, node in trace.nodes.items() if name.startswith("data")]
    return normalised(sum(terms).numpy())


def integrated_log_weights(world, histories):
    log_weights = []
    for row in histories:
        trace = poutine.trace(integrated).get_trace(world, dict(zip(SITES, row, strict=True)))
        log_weights.append(float(trace.log_prob_sum()))
    return normalised(np.array(log_weights))


def path(row):
    return tuple(tuple(map(int, part)) for part in row.reshape(ROUNDS, CLIENTS))


def final_hypotheses(world, by_path, evidence):
    return by_path(world.run(world.method(Exact(), evidence=evidence), ROUNDS)[-1])


@pytest.mark.parametrize("seed", [0, 1])
@pytest.mark.parametrize(
    ("evidence", "enumerate_all"),
    [("separable", plug_in_log_weights), ("joint", integrated_log_weights)],
)
def test_weight_of_every_history(linear_world, by_path, histories, seed, evidence, enumerate_all):
    world = linear_world(seed, CLIENTS, CLUSTERS, ROUNDS)
    found = final_hypotheses(world, by_path, evidence)
    expected = enumerate_all(world, histories)
    assert len(found) == len(histories) == 512
    weights = [found[path(row)].log_weight for row in histories]
    np.testing.assert_allclose(weights, expected, rtol=0, atol=1e-9)


def test_the_two_evidences_differ(linear_world, histories):
    world = linear_world(0, CLIENTS, CLUSTERS, ROUNDS)
    apart = plug_in_log_weights(world, histories) - integrated_log_weights(world, histories)
    assert np.abs(apart).max() > 0.5


def test_marginals_of_trace_enum(linear_world, by_path):
    """Variable elimination by Pyro gives each client's cluster probabilities in each round."""
    world = linear_world(2, CLIENTS, CLUSTERS, ROUNDS)
    found = final_hypotheses(world, by_path, "separable")

    def nothing(world):
        del world

    elbo = TraceEnum_ELBO(max_plate_nesting=0)
    enumerated = pyro.infer.config_enumerate(plug_in, "parallel")
    marginals = elbo.compute_marginals(enumerated, nothing, world)
    for t, j in SITES:
        ours = np.zeros(CLUSTERS)
        for labels, hypothesis in found.items():
            ours[labels[t][j]] += np.exp(hypothesis.log_weight)
        theirs = marginals[site(t, j)].probs
        np.testing.assert_allclose(ours, theirs.numpy(), rtol=0, atol=1e-10)


@pytest.mark.parametrize("evidence", ["separable", "joint"])
def test_association_marginals_up_to_relabelling(linear_world, by_path, evidence):
    """Two clients share a cluster as often as the enumerated histories say."""
    world = linear_world(4, CLIENTS, CLUSTERS, rounds=1)
    (state,) = world.run(world.method(Exact(), evidence=evidence), 1)
    shared = np.zeros((CLIENTS, CLIENTS))
    for (labels,), hypothesis in by_path(state).items():
        same = np.equal.outer(labels, labels)
        shared += np.exp(hypothesis.log_weight) * same
    factor = state.history[-1].co_association().toarray()
    np.testing.assert_allclose(factor @ factor.T, shared, atol=1e-12)


@pytest.mark.parametrize("evidence", ["separable", "joint"])
def test_posteriors_of_every_history_are_pooled(
    linear_world, by_path, dense_posterior, histories, evidence
):
    world = linear_world(3, CLIENTS, CLUSTERS, ROUNDS)
    found = final_hypotheses(world, by_path, evidence)
    for row in histories:
        for k, posterior in enumerate(found[path(row)].clusters):
            shards = [
                world.of(world.clients[j], t)
                for (t, j), label in zip(SITES, row, strict=True)
                if label == k
            ]
            mean, covariance = dense_posterior(
                world.prior_means[k], world.prior_precisions[k], shards
            )
            np.testing.assert_allclose(posterior.mean(world.model), mean, rtol=1e-9, atol=1e-11)
            precision = posterior.precision(world.model)
            np.testing.assert_allclose(torch.diag(1 / precision), covariance, atol=1e-11)


def test_joint_tells_apart_what_separable_cannot(linear_world):
    """Two alike clients and equal priors: only joint evidence sees that they belong together."""
    world = linear_world(7, clients=2, clusters=2, rounds=1)
    same = world.of("c0", 0)
    alike = type(world)(({"c0": same, "c1": same},), np.zeros_like(world.prior_means), np.ones(2))
    (separable,) = alike.run(alike.method(Exact()), 1)
    (joint,) = alike.run(alike.method(Exact(), evidence="joint"), 1)
    np.testing.assert_allclose(separable.hypotheses.weights, 0.25, atol=1e-12)
    together = [h for h in joint.hypotheses if len(set(h.association.labels)) == 1]
    assert sum(np.exp(h.log_weight) for h in together) > 0.5
    assert joint.hypotheses[0] is together[0]
