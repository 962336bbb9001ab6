"""Server optimisers against FedOpt written in numpy (Reddi et al. 2021, algorithm 2).

Clients of softmax regression take one step on all their samples, so that the whole federation is a
few lines of numpy.
"""

import numpy as np
import pytest
import torch
from torch import nn

from bcfl import ClientData, Federation, Model, Objective, checkpoint, methods

RATE, ROUNDS, CLASSES, FEATURES = 0.4, 6, 3, 4
OPTIONS = {
    "momentum": {"server_rate": 0.5, "server_momentum": 0.7},
    "adagrad": {"server_rate": 0.1, "server_momentum": 0.0, "adaptivity": 0.01},
    "yogi": {"server_rate": 0.05, "server_momentum": 0.8, "second_decay": 0.9},
    "adam": {"server_rate": 0.05, "server_momentum": 0.9, "second_decay": 0.95},
}


@pytest.fixture
def samples():
    random = np.random.default_rng(1)
    return {
        f"client {n}": (
            random.normal(size=(n, FEATURES)).astype(np.float32),
            random.integers(0, CLASSES, n),
        )
        for n in (5, 9, 14)
    }


@pytest.fixture
def federation(samples):
    def of(name, **options):
        clients = [ClientData.from_arrays(c, part, None) for c, part in samples.items()]
        model = Model(
            name="softmax",
            build=lambda: nn.Linear(FEATURES, CLASSES),
            input_shape=(FEATURES,),
            num_outputs=CLASSES,
        )
        training = Objective(local_steps=1, batch_size=50, learning_rate=RATE, momentum=0.0)
        method = methods.build(name, objective=training, **options)
        return Federation(clients, model, method, seed=3)

    return of


def gradient(weights, inputs, targets):
    """Of the mean cross-entropy, (classes, features + 1), bias last."""
    padded = np.column_stack([inputs, np.ones(len(inputs))])
    logits = padded @ weights.T
    odds = np.exp(logits - logits.max(axis=1, keepdims=True))
    errors = odds / odds.sum(axis=1, keepdims=True) - np.eye(CLASSES)[targets]
    return errors.T @ padded / len(inputs)


def fedopt(start, samples, rule, options):
    weights, tau = start.copy(), options.get("adaptivity", 1e-3)
    beta, gamma = options["server_momentum"], options.get("second_decay", 0.99)
    first, second = np.zeros_like(start), np.full_like(start, tau**2)
    total = sum(len(targets) for _, targets in samples.values())
    for _ in range(ROUNDS):
        delta = sum(
            -RATE * gradient(weights, *part) * len(part[1]) / total for part in samples.values()
        )
        if rule == "momentum":
            first = beta * first + delta
            weights = weights + options["server_rate"] * first
            continue
        first = beta * first + (1 - beta) * delta
        if rule == "adagrad":
            second = second + delta**2
        elif rule == "yogi":
            second = second - (1 - gamma) * delta**2 * np.sign(second - delta**2)
        else:
            second = gamma * second + (1 - gamma) * delta**2
        weights = weights + options["server_rate"] * first / (np.sqrt(second) + tau)
    return weights


def weights_of(federation, state):
    flat = state.hypotheses.best.clusters[0].mean(federation.model).double().numpy()
    weight = flat[: CLASSES * FEATURES].reshape(CLASSES, FEATURES)
    return np.column_stack([weight, flat[CLASSES * FEATURES :]])


def optimised_by(federation, rule):
    return federation("fedavg-fedopt", server_rule=rule, **OPTIONS[rule])


@pytest.mark.parametrize("rule", OPTIONS)
def test_models_are_those_of_the_algorithm(federation, samples, rule):
    plain, optimised = federation("fedavg"), optimised_by(federation, rule)
    start = weights_of(plain, plain.initial_state())
    run = optimised.run(ROUNDS)
    expected = fedopt(start, samples, rule, OPTIONS[rule])
    np.testing.assert_allclose(weights_of(optimised, run.state), expected, atol=2e-4)
    assert np.abs(weights_of(plain, plain.run(ROUNDS).state) - expected).max() > 1e-2


def test_momentum_of_nothing_at_rate_one_is_fedavg(federation):
    plain = federation("fedavg")
    same = federation("fedavg-fedopt", server_rule="momentum", server_rate=1.0, server_momentum=0.0)
    np.testing.assert_allclose(
        weights_of(same, same.run(3).state), weights_of(plain, plain.run(3).state), atol=1e-6
    )


def test_moments_survive_a_checkpoint(federation, tmp_path):
    whole, begun = (optimised_by(federation, "adam") for _ in range(2))
    checkpoint.save(begun.run(3, planned_rounds=ROUNDS).state, tmp_path)
    restored = checkpoint.load(checkpoint.newest(tmp_path), begun.device, begun.dtype)
    runs = whole.run(ROUNDS), optimised_by(federation, "adam").run(ROUNDS, state=restored)
    first, second = (run.hypotheses.best.clusters[0].blocks[0] for run in runs)
    assert torch.equal(first.gaussian.mean, second.gaussian.mean)
    assert torch.equal(first.moments, second.moments)
