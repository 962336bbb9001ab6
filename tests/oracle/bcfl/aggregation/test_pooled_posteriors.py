"""Posteriors of linear-Gaussian models against the closed form with the members' data pooled.

Exact fusion of exact local modes, both with clients that answer in closed form and with clients
that run full-batch gradient descent to convergence in float64.
"""

from dataclasses import replace

import numpy as np
import pytest
import torch

import bcfl
from bcfl.policies import FedAvg, LikelihoodAssociation
from bcfl.protocol.objective import Objective
from bcfl.trackers import Exact, Greedy, MultiHypothesis
from experiments.models import linear

CONVERGED = Objective(
    local_steps=500,
    batch_size=1000,
    learning_rate=0.5,
    momentum=0.5,
    prior_weight=1.0,
    curvature="ggn",
    curvature_samples=None,
)


def assert_is(posterior, model, closed_form, rtol=1e-9):
    mean, covariance = closed_form
    np.testing.assert_allclose(posterior.mean(model), mean, rtol=rtol, atol=1e-10)
    np.testing.assert_allclose(torch.diag(1 / posterior.precision(model)), covariance, atol=1e-10)


def members(world, labels, cluster, round):
    return [
        world.of(client, round)
        for client, label in zip(world.clients, labels, strict=True)
        if label == cluster
    ]


@pytest.mark.parametrize("tracker", [Greedy(), MultiHypothesis(5), Exact()])
def test_replace_holds_the_last_rounds_members_alone(
    linear_world, by_path, dense_posterior, tracker
):
    world = linear_world(11, clients=4, clusters=2, rounds=1)
    for state in world.run(world.method(tracker, memory="replace"), 2):
        for path, hypothesis in by_path(state).items():
            for k, posterior in enumerate(hypothesis.clusters):
                shards = members(world, path[-1], k, state.round - 1)
                if shards:
                    closed = dense_posterior(
                        world.prior_means[k], world.prior_precisions[k], shards
                    )
                    assert_is(posterior, world.model, closed)


@pytest.mark.parametrize("tracker", [Greedy(), MultiHypothesis(6)])
def test_accumulate_holds_all_rounds(linear_world, by_path, dense_posterior, tracker):
    world = linear_world(12, clients=5, clusters=3, rounds=4)
    state = world.run(world.method(tracker, memory="accumulate"), 4)[-1]
    for path, hypothesis in by_path(state).items():
        for k, posterior in enumerate(hypothesis.clusters):
            shards = [s for t in range(4) for s in members(world, path[t], k, t)]
            closed = dense_posterior(world.prior_means[k], world.prior_precisions[k], shards)
            assert_is(posterior, world.model, closed)


@pytest.mark.parametrize("memory", ["replace", "forget", "accumulate"])
def test_one_round_is_the_same_for_all_memories(linear_world, dense_posterior, memory):
    world = linear_world(13, clients=4, clusters=2, rounds=1)
    (state,) = world.run(world.method(Greedy(), memory=memory), 1)
    best = state.hypotheses.best
    for k, posterior in enumerate(best.clusters):
        shards = members(world, best.association.labels, k, 0)
        closed = dense_posterior(world.prior_means[k], world.prior_precisions[k], shards)
        assert_is(posterior, world.model, closed)


def test_forget_against_scalar_recursion(linear_world):
    """Precision decays towards the prior before each round's data are added; the mean stays."""
    world = linear_world(14, clients=3, clusters=1, rounds=3, parameters=2)
    method = world.method(Greedy(), memory="forget")
    states = world.run(
        replace(method, aggregation=bcfl.Aggregation(fusion="exact", memory="forget", decay=0.7)), 3
    )
    start = np.full(2, world.prior_precisions[0])
    mean, precision = world.prior_means[0].copy(), start.copy()
    for t, state in enumerate(states):
        if t:
            precision = 0.7 * precision + 0.3 * start
        shift = precision * mean
        for client in world.clients:
            design, values = world.of(client, t)
            precision = precision + (design**2).sum(0)
            shift = shift + values @ design
        mean = shift / precision
        posterior = state.hypotheses.best.clusters[0]
        np.testing.assert_allclose(posterior.mean(world.model), mean, rtol=1e-9)
        np.testing.assert_allclose(posterior.precision(world.model), precision, rtol=1e-9)


def test_literal_product_counts_the_prior_per_client(linear_world):
    """Equation 8 as printed: the product of n local posteriors has the prior n times."""
    world = linear_world(15, clients=4, clusters=1, rounds=1)
    (state,) = world.run(world.method(Greedy(), fusion="literal"), 1)
    prior = world.prior_precisions[0]
    precision, shift = np.zeros(2), np.zeros(2)
    for client in world.clients:
        design, values = world.of(client, 0)
        precision += prior + (design**2).sum(0)
        shift += prior * world.prior_means[0] + values @ design
    posterior = state.hypotheses.best.clusters[0]
    np.testing.assert_allclose(posterior.precision(world.model), precision, rtol=1e-12)
    np.testing.assert_allclose(posterior.mean(world.model), shift / precision, rtol=1e-12)


def test_an_empty_cluster_keeps_its_mean(linear_world, by_path):
    """With `replace` its precision falls back to the prior's; with `accumulate` it stays."""
    world = linear_world(16, clients=3, clusters=2, rounds=2)
    full, empty = (0, 0, 0), (1, 1, 1)
    for memory in ("replace", "accumulate"):
        after_one, after_two = world.run(world.method(Exact(), memory=memory), 2)
        before = by_path(after_one)[(full,)].clusters[0]
        emptied = by_path(after_two)[(full, empty)].clusters[0]
        assert torch.equal(emptied.mean(world.model), before.mean(world.model))
        left = emptied.precision(world.model)
        if memory == "accumulate":
            assert torch.equal(left, before.precision(world.model))
        else:
            np.testing.assert_allclose(left, world.prior_precisions[0], rtol=1e-12)


def client_data(world, round):
    return [
        bcfl.ClientData.from_arrays(c, (world.of(c, round)[0], world.of(c, round)[1][:, None]))
        for c in world.clients
    ]


def federation(world, round, aggregation, tracker):
    policy = LikelihoodAssociation(
        num_clusters=world.num_clusters, objective=CONVERGED, temperature=1.0
    )
    method = bcfl.Method(policy=policy, tracker=tracker, aggregation=aggregation)
    return bcfl.Federation(
        client_data(world, round), world.model, method, device="cpu", dtype=torch.float64
    )


@pytest.mark.parametrize("tracker", [Greedy(), MultiHypothesis(3)])
def test_gradient_descent_on_the_same_data(linear_world, by_path, dense_posterior, tracker):
    world = linear_world(21, clients=4, clusters=2, rounds=1)
    one = federation(world, 0, bcfl.Aggregation(fusion="exact", memory="replace"), tracker)
    run = one.run(3, state=world.start())
    for path, hypothesis in by_path(run.state).items():
        for k, posterior in enumerate(hypothesis.clusters):
            shards = members(world, path[-1], k, 0)
            if shards:
                closed = dense_posterior(world.prior_means[k], world.prior_precisions[k], shards)
                assert_is(posterior, world.model, closed)


def test_gradient_descent_on_fresh_data(linear_world, by_path, dense_posterior):
    world = linear_world(22, clients=4, clusters=2, rounds=3)
    state = world.start()
    for t in range(3):
        one = federation(
            world, t, bcfl.Aggregation(fusion="exact", memory="accumulate"), MultiHypothesis(3)
        )
        state = one.run(t + 1, state=state).state
    closed_form_clients = world.run(world.method(MultiHypothesis(3)), 3)[-1]
    expected = by_path(closed_form_clients)
    assert by_path(state).keys() == expected.keys()
    for path, hypothesis in by_path(state).items():
        assert hypothesis.log_weight == pytest.approx(expected[path].log_weight, abs=1e-8)
        for k, posterior in enumerate(hypothesis.clusters):
            shards = [s for t in range(3) for s in members(world, path[t], k, t)]
            closed = dense_posterior(world.prior_means[k], world.prior_precisions[k], shards)
            assert_is(posterior, world.model, closed)


def test_a_single_model_with_several_outputs_and_an_offset():
    """Mutually orthogonal inputs of mean zero make the curvature of weights and offsets exact."""
    random = np.random.default_rng(5)
    inputs = np.linalg.qr(np.column_stack([np.ones(6), random.normal(size=(6, 2))]))[0][:, 1:] * 2
    targets = [random.normal(size=(6, 3)) for _ in range(3)]
    clients = [bcfl.ClientData.from_arrays(f"c{i}", (inputs, y)) for i, y in enumerate(targets)]
    model = linear(2, 3, likelihood="gaussian")
    method = bcfl.Method(
        policy=FedAvg(CONVERGED), aggregation=bcfl.Aggregation(fusion="exact"), prior_precision=0.8
    )
    one = bcfl.Federation(clients, model, method, device="cpu", dtype=torch.float64)
    start = one.initial_state().hypotheses.best.clusters[0].mean(model).numpy()
    posterior = one.run(2).hypotheses.best.clusters[0]
    design = np.column_stack([inputs, np.ones(6)])
    total = 0.8 * np.eye(3) + 3 * design.T @ design
    prior = np.column_stack([start[:6].reshape(3, 2), start[6:]]).T
    coefficients = np.linalg.solve(total, 0.8 * prior + design.T @ sum(targets))
    expected = np.concatenate([coefficients[:2].T.ravel(), coefficients[2]])
    np.testing.assert_allclose(posterior.mean(model), expected, rtol=1e-8, atol=1e-10)
    np.testing.assert_allclose(
        posterior.precision(model), [*np.tile(np.diag(total)[:2], 3), *[total[2, 2]] * 3]
    )


def test_fusing_unconverged_models_exactly_is_not_the_closed_form(linear_world, dense_posterior):
    """The condition matters: after one step the local models are no modes."""
    world = linear_world(21, clients=4, clusters=1, rounds=1)
    method = bcfl.Method(
        policy=FedAvg(replace(CONVERGED, local_steps=1)),
        aggregation=bcfl.Aggregation(fusion="exact"),
    )
    data = client_data(world, 0)
    one = bcfl.Federation(data, world.model, method, device="cpu", dtype=torch.float64)
    posterior = one.run(1, state=world.start()).hypotheses.best.clusters[0]
    mean, _ = dense_posterior(
        world.prior_means[0], world.prior_precisions[0], members(world, (0,) * 4, 0, 0)
    )
    assert np.abs(posterior.mean(world.model).numpy() - mean).max() > 1e-3
