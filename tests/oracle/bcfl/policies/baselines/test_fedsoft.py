"""FedSoft against numbers worked out by hand and a plain numpy statement of the algorithm."""

import numpy as np
import pytest
import torch

import bcfl
from bcfl.executors.batches import training_batches
from bcfl.policies.baselines.fedsoft import FedSoft, importances
from bcfl.protocol.objective import Objective
from bcfl.protocol.regularizers import Attraction
from bcfl.protocol.statistics.best_counts import BestCounts
from experiments.models import linear

SIZES = (20, 33, 12, 41, 9)
PULL, SMOOTHING = 0.5, 1e-4
OBJECTIVE = Objective(local_steps=4, batch_size=10, learning_rate=0.2, momentum=0.0)
LOSSES = (
    ((0.2, 0.5, 0.9, 0.1, 0.7), (0.4, 0.3, 0.8, 0.2, 0.9), (0.9, 0.9, 0.9, 0.9, 0.95)),
    ((1.0, 0.8, 0.6, 0.9), (0.2, 0.1, 0.7, 0.3), (0.5, 0.6, 0.65, 0.25)),
)


@pytest.mark.parametrize(
    ("losses", "expected"),
    [(LOSSES[0], (0.6, 0.4, 0.0001)), (LOSSES[1], (0.25, 0.5, 0.25))],
)
def test_importance_is_the_share_of_samples_on_which_a_cluster_is_best(losses, expected):
    counts = BestCounts.of(np.array(losses))
    np.testing.assert_allclose(importances(counts, SMOOTHING), expected, rtol=1e-12)


def test_the_pull_and_its_gradient():
    """At (1, -1) towards (0, 0), (2, 0) and (5, 5)."""
    pull = Attraction(0.1, (0.6, 0.4, 0.0001))
    live = torch.tensor([1.0, -1.0], dtype=torch.float64, requires_grad=True)
    centres = [torch.tensor(c, dtype=torch.float64) for c in ((0, 0), (2, 0), (5, 5))]
    loss = pull.weight * pull.penalty(live, live.detach(), centres)
    loss.backward()
    assert loss.item() == pytest.approx(0.10026, abs=1e-12)
    np.testing.assert_allclose(live.grad, [0.01996, -0.10006], atol=1e-12)


def sample_losses(softmax, weights, inputs, labels):
    return -np.log(softmax.probabilities(weights, inputs)[np.arange(len(labels)), labels])


def trained(softmax, start, centres, importance, data, batches):
    """SGD on the mean loss plus PULL / 2 sum_k u_k ||w - c_k||^2."""
    inputs, labels = data
    weights = start
    for batch in batches:
        excess = softmax.probabilities(weights, inputs[batch])
        excess[np.arange(len(batch)), labels[batch]] -= 1
        pull = sum(u * (weights - c) for u, c in zip(importance, centres, strict=True))
        weights = weights - 0.2 * (excess.T @ inputs[batch] / len(batch) + PULL * pull)
    return weights


def fedsoft_round(softmax, centres, own, last, data, batches, estimate):
    """New centres; `own` and `last` (importances) are updated in place."""
    for client, (inputs, labels) in data.items():
        if estimate or client not in last:
            losses = np.stack([sample_losses(softmax, c, inputs, labels) for c in centres])
            counts = np.bincount(losses.argmin(axis=0), minlength=len(centres))
            last[client] = np.where(counts == 0, SMOOTHING, counts / len(labels))
        start = own.get(client, centres[int(last[client].argmax())])
        own[client] = trained(softmax, start, centres, last[client], data[client], batches[client])
    mass = {client: last[client] * len(data[client][1]) for client in data}
    total = sum(mass.values())
    return [sum(mass[c][k] * own[c] for c in data) / total[k] for k in range(len(centres))]


@pytest.mark.parametrize(("client_fraction", "every"), [(1.0, 1), (0.6, 1), (0.6, 2)])
def test_rounds_against_numpy(turned_clients, states_of, softmax, client_fraction, every):
    clients = turned_clients(SIZES)
    method = bcfl.Method(
        policy=FedSoft(
            num_clusters=3, objective=OBJECTIVE, attraction=PULL, smoothing=SMOOTHING, every=every
        )
    )
    one = bcfl.Federation(
        clients,
        linear(4, 3),
        method,
        seed=5,
        device="cpu",
        dtype=torch.float64,
        client_fraction=client_fraction,
    )
    start = one.initial_state().hypotheses.best.clusters
    centres = [softmax.weights(c.mean(one.model), 3) for c in start]
    data, own, last = softmax.arrays(clients), {}, {}
    for round, (state, record) in enumerate(states_of(one, 5)):
        here = {client: data[client] for client in record.participants}
        batches = {
            client: training_batches(len(y), 10, 4, 5, round, client).numpy()
            for client, (_, y) in here.items()
        }
        estimate = round % every == 0
        centres = fedsoft_round(softmax, centres, own, last, here, batches, estimate)
        best = state.hypotheses.best
        for ours, theirs in zip(best.clusters, centres, strict=True):
            np.testing.assert_allclose(
                softmax.weights(ours.mean(one.model), 3), theirs, rtol=0, atol=1e-11
            )
        for client, row in last.items():
            np.testing.assert_allclose(best.served_by(client), row / row.sum(), atol=1e-12)
        assert set(best.carried_models) == {f"own model of {client}" for client in own}
